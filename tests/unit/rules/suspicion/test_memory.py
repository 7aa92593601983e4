"""What is remembered of suspicions: over a restart, in older checkpoints, for an hour and a day."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Final

import pytest

from rules.facts.memory import Memory, merge_stored, shift_times
from service.storage.formats.checkpoint import FORMAT, Checkpoint, decode, encode
from tests.factories import at
from tests.unit.rules.suspicion.counted import (
    LATE,
    QUIET,
    ROSE,
    SETTLED,
    errors,
    judged,
    only,
    play,
    seen,
)


def through_a_restart(memory: Memory) -> Memory:
    kept = decode(encode(Checkpoint(memory=memory)), FORMAT).memory
    assert kept is not None
    return kept


ROUNDS: Final = (
    seen(QUIET, **LATE),
    seen(ROSE, **LATE),
    seen(ROSE, newest={0: (7,)}, **LATE),
    seen(ROSE, **LATE),
)


@pytest.mark.parametrize("number", range(1, len(ROUNDS)))
def test_it_survives_a_restart(number: int) -> None:
    before = play(*ROUNDS[:number])[-1].memory
    stored = through_a_restart(before)
    assert stored.suspicions.suspicions == before.suspicions.suspicions
    after = play(*ROUNDS[number:], memory=stored, first=number)[-1].memory.suspicions
    whole = play(*ROUNDS)[-1].memory.suspicions
    [one], [other] = after.suspicions, whole.suspicions
    assert (one.count, one.outcome, one.partitions) == (
        other.count,
        other.outcome,
        other.partitions,
    )


def test_what_was_counted_while_tidemark_was_down_is_compared_once() -> None:
    stored = through_a_restart(play(seen(QUIET, **LATE))[-1].memory)
    unseen = errors(total=7)
    rounds = [
        seen(second=40, **LATE),
        seen(unseen, second=60, **LATE),
        seen(unseen, second=75, **LATE),
    ]
    views = play(*rounds, memory=stored, first=4)
    assert [len(view.memory.suspicions.open) for view in views] == [0, 1, 1]
    assert (only(views[-1]).count, only(views[-1]).until_us) == (
        3,
        round(at(60).timestamp() * 1_000_000),
    )
    anew = seen(errors(total=1), second=60, **LATE)
    assert only(play(anew, memory=stored, first=4)[-1]).count == 1  # its process began anew
    same = seen(QUIET, second=60, **LATE)
    assert play(same, memory=stored, first=4)[-1].memory.suspicions.open == ()
    merged = merge_stored(stored, play(seen(second=40, **LATE))[-1].memory)
    assert only(play(rounds[1], memory=merged, first=4)[-1]).count == 3


def test_an_older_checkpoint_has_no_suspicions() -> None:
    memory = play(seen(QUIET, **LATE), seen(ROSE, **LATE))[-1].memory
    older = through_a_restart(replace(memory, suspicions=type(memory.suspicions)()))
    assert older.suspicions.suspicions == ()


def test_it_is_open_for_an_hour_and_kept_for_a_day() -> None:
    memory = play(seen(QUIET, **LATE), seen(ROSE, **LATE))[-1].memory
    rounds = [seen(ROSE, **LATE)] * 5
    minute, hour, day = 4, 4 * 60, 4 * 60 * 24
    [*_, soon] = play(*rounds, memory=memory, first=2)
    assert len(soon.memory.suspicions.open) == 1
    [later] = play(rounds[0], memory=soon.memory, first=hour + minute)
    assert (len(later.memory.suspicions.open), len(later.memory.suspicions.ended)) == (0, 1)
    assert judged(later) == SETTLED
    [gone] = play(rounds[0], memory=later.memory, first=day + hour + 2 * minute)
    assert gone.memory.suspicions.suspicions == ()


def test_a_step_of_the_clock_moves_it() -> None:
    memory = play(seen(QUIET, **LATE), seen(ROSE, **LATE))[-1].memory
    by_us = timedelta(hours=2) // timedelta(microseconds=1)
    moved = shift_times(memory, by_us).suspicions
    [before], [after] = memory.suspicions.open, moved.open
    for name in ("since_us", "until_us", "opened_us"):
        assert getattr(after, name) - getattr(before, name) == by_us
    assert set(moved.addresses.values()) == {
        timestamp + by_us for timestamp in memory.suspicions.addresses.values()
    }
