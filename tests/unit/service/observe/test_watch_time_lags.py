"""Rounds remember where partitions ended, whatever becomes of the clock, the cluster or a list."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from rules.facts.partitions import Partitions
from rules.time_lag import WhyAbsent
from service.observe.watch import WatchedRound
from tests.factories import commits, group, offsets, partitions
from tests.unit.service.observe.watchers import INTERVAL, Script, watcher_of

HOUR = timedelta(hours=1)


def observe(end: int, *, read_after: float = 0.0) -> dict[str, Any]:
    """Return an observation of a partition of which a group has read 104 offsets."""
    return {
        "partitions": partitions({"orders": 1}),
        "offsets": offsets(1, high_watermark=[end], last_stable_offset=[end]),
        "groups": (group(),),
        "commits": commits((0, 0, 104)),
        "ends_read_after": timedelta(seconds=read_after),
    }


def made(
    *observations: dict[str, Any] | None, set_by: timedelta = timedelta(0)
) -> list[WatchedRound]:
    """Make rounds; somebody sets the clock after the second."""
    script = Script(*observations)
    watcher, rounds = watcher_of(script), []
    for number in range(len(observations)):
        rounds.append(watcher.make_round())
        script.pass_time(clock_set_by=set_by if number == 1 else timedelta(0))
    return rounds


def seconds(found: WatchedRound) -> float:
    assert found.time_lags is not None
    return float(found.time_lags.read_committed.seconds[0])


@pytest.mark.parametrize("set_by", [timedelta(0), HOUR, -HOUR])
def test_a_clock_that_is_set_changes_no_time_lag(set_by: timedelta) -> None:
    first, second, third, fourth = made(
        observe(100), observe(108), observe(108), observe(108), set_by=set_by
    )
    assert first.time_lags is not None
    assert first.time_lags.read_committed.why(0) is WhyAbsent.BEYOND_END
    came = 5 / 9 * INTERVAL  # 104 is the fifth of eight
    expected = [INTERVAL - came, 2 * INTERVAL - came, 3 * INTERVAL - came]
    assert [seconds(one) for one in (second, third, fourth)] == pytest.approx(expected, abs=1e-5)


def test_a_round_that_saw_nothing_tells_no_time_lag_and_forgets_none() -> None:
    _, _, blind, last = made(observe(100), observe(108), None, observe(108))
    assert blind.time_lags is None
    assert seconds(last) == pytest.approx(3 * INTERVAL - 5 / 9 * INTERVAL, abs=1e-5)


def test_a_topic_that_an_incomplete_list_left_out_is_not_forgotten() -> None:
    hidden = {"partitions": Partitions.none(), "placement_complete": False}
    *_, last = made(observe(100), observe(108), hidden, observe(108))
    assert seconds(last) == pytest.approx(3 * INTERVAL - 5 / 9 * INTERVAL, abs=1e-5)


def test_ends_count_from_when_they_were_read_and_not_from_the_beginning_of_the_round() -> None:
    _, second = made(observe(100), observe(108, read_after=9.0))
    assert seconds(second) == pytest.approx((INTERVAL + 9) * 4 / 9, abs=1e-5)
