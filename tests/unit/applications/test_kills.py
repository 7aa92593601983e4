"""When instances are killed and come back."""

from __future__ import annotations

import random
from itertools import pairwise

import pytest

from tests.applications.kills import draw_kills


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize(("seconds", "count"), [(60.0, 1), (900.0, 8)])
def test_no_two_are_away_at_once_and_all_come_back_in_time(
    seed: int, seconds: float, count: int
) -> None:
    kills = draw_kills(random.Random(seed), seconds=seconds, count=count, instances=2)
    assert len(kills) == count
    assert all(0 < one.killed < one.back < seconds for one in kills)
    assert all(one.back < later.killed for one, later in pairwise(kills))
    assert {one.instance for one in kills} <= {0, 1}


def test_the_times_differ_from_run_to_run() -> None:
    drawn = {
        draw_kills(random.Random(seed), seconds=60, count=1, instances=2)[0] for seed in range(20)
    }
    assert len(drawn) == 20
    assert {one.instance for one in drawn} == {0, 1}
