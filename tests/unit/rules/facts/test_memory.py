"""What is remembered keeps its durations when the clock is set."""

from __future__ import annotations

from rules.facts.last_look import microseconds
from rules.facts.memory import Memory, advance, shifted
from rules.facts.snapshot import Snapshot
from tests.factories import at, commits, group, offsets, snapshot

HOUR = 3600


def held(seconds: float) -> Snapshot:
    """Return a look at three partitions: one stuck, one held open, one at rest; a group waits."""
    return snapshot(
        taken_at=at(seconds),
        offsets=offsets(
            3,
            last_stable_offset=[100, 90, 100],
            log_end_offset=[120, 100, 100],
        ),
        groups=(group(),),
        commits=commits((0, 0, 50), (0, 2, 100)),
    )


def times(memory: Memory) -> list[list[int | None]]:
    """Return all times of a memory, in seconds after noon."""
    columns = (
        memory.looks.looked_at_us,
        memory.high_watermark.since_us,
        memory.last_stable_offset.since_us,
        memory.commits.standing.since_us,
    )
    noon = microseconds(at(0))
    return [
        [None if moment is None else (moment - noon) // 10**6 for moment in column.to_list()]
        for column in columns
    ]


def test_a_shift_moves_every_time_and_nothing_else() -> None:
    memory = advance(held(10))
    assert times(memory) == [[10, 10, 10], [10, None, None], [None, 10, None], [10, None]]
    moved = shifted(memory, -HOUR * 10**6)
    early = 10 - HOUR
    assert times(moved) == [
        [early] * 3,
        [early, None, None],
        [None, early, None],
        [early, None],
    ]
    assert moved.high_watermark.values is memory.high_watermark.values
    assert times(shifted(moved, HOUR * 10**6)) == times(memory)


def test_times_of_the_future_are_pulled_back_to_now() -> None:
    ahead = advance(held(HOUR))
    now = advance(held(0), ahead)
    assert times(now) == [[0, 0, 0], [0, None, None], [None, 0, None], [0, None]]


def test_times_of_the_past_stay() -> None:
    now = advance(held(60), advance(held(0)))
    assert times(now) == [[60, 60, 60], [0, None, None], [None, 0, None], [0, None]]


def test_a_round_that_saw_nothing_keeps_no_time_of_the_future() -> None:
    blind = snapshot(taken_at=at(0), gaps=(), placement_complete=False)
    none = snapshot(partitions=blind.partitions, offsets=offsets(3), taken_at=at(HOUR))
    kept = advance(blind, advance(none))
    assert times(kept)[0] == [0, 0, 0]
