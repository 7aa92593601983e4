"""kill -9 between every two steps: nothing lost, nothing out of order, at most one repetition."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

import pytest

from service.runtime.clock import monotonic
from tests.integration.delivering.chain import POINTS, Play
from tests.integration.delivering.stage import Company, check, company, ids_of, names_in, rows_of
from tests.integration.notify.receiving import receiving
from tests.integration.storage.conftest import MakeDatabase

pytestmark = pytest.mark.integration
ALERTS, GROUPS = 12, 2
AT_ONCE = 2  # each group has one under way at most


@pytest.fixture(scope="module")
def actors() -> Iterator[Company]:
    with company() as found:
        yield found


@pytest.mark.parametrize(("point", "on"), [*((point, 2) for point in POINTS), ("sent", 6)])
def test_a_process_that_dies_between_two_steps(
    actors: Company, new_database: MakeDatabase, point: str, on: int
) -> None:
    engine = new_database()
    with receiving() as receiver:
        play = Play(
            database=engine.url.render_as_string(hide_password=False),
            receiver=receiver.address,
            epoch=monotonic(),
            speed=20,
            alerts=ALERTS,
            groups=GROUPS,
        )
        actors.start(replace(play, stop_at=point, stop_on=on))
        assert actors.end() == -9
        actors.start(play)
        assert actors.end() == 0
    check(rows_of(engine), receiver.got)
    repeats = Counter(ids_of(receiver.got))
    assert max(repeats.values()) <= 2, "one crash repeats a notification once at most"
    again = sum(count - 1 for count in repeats.values())
    assert 1 <= again <= AT_ONCE if point == "sent" else again == 0
    assert len(names_in(receiver.got)) == ALERTS
