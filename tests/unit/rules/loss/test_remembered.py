"""What is remembered of losses and of the lines of a returning leader: how much, and for how long."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from rules.facts.last_observation import microseconds
from rules.facts.loss_memory import LossMemory, ReplicaEvent
from rules.facts.memory import merge_stored, shift_times
from rules.loss import remembered
from rules.remembering import view_of_round
from tests.factories import at, offsets, snapshot
from tests.unit.rules.loss.playing import RETURNED, memory_of, play, played
from tests.unit.rules.loss.replica_lines import (
    CLEAN,
    LATER,
    LINES,
    PROVEN,
    alone,
    cut,
    forbidden,
    led_by_1,
    led_by_2,
    loaded,
    started,
    written,
)


def test_a_healthy_restart_leaves_nothing_behind_for_long() -> None:
    lines = (alone(), loaded(), started(), cut())
    observations = (*map(forbidden, CLEAN), forbidden(LATER) | written(*lines))
    memory = memory_of(*observations)
    assert (memory.losses.reported, memory.losses.quiet) == ((), ())
    assert len(memory.losses.lines) == len(lines)
    later = snapshot(taken_at=at(3000), **forbidden(LATER))
    [kept] = view_of_round(later, memory).memory.losses.lines
    assert kept.event == alone(), "a leader may be alone for long before it dies"


def test_a_change_that_seems_to_be_clean_is_held_for_an_hour() -> None:
    memory = memory_of(*CLEAN)
    assert len(memory.losses.quiet) == 1
    lines = LATER | written(*LINES)
    hour = 60 * 60 // 15
    assert play(lines, memory=memory, first=hour - 1) != []
    assert play(lines, memory=memory, first=hour + 2) == []


def test_lines_that_came_on_two_ways_are_kept_once() -> None:
    memory = memory_of(*PROVEN, LATER | written(*LINES), LATER | written(*LINES))
    assert len(memory.losses.lines) == len(LINES)


def test_of_too_many_lines_those_of_losses_and_of_cuts_are_kept(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(remembered, "MAX_LINES", 4)
    others = [replace(started(), partition=number) for number in range(1, 20)]
    elsewhere: list[ReplicaEvent] = [replace(started(), partition=30), replace(cut(), partition=30)]
    lines: tuple[ReplicaEvent, ...] = (cut(), started(), *elsewhere, *others)
    memory = memory_of(*PROVEN, LATER | written(*lines))
    assert {line.event.partition for line in memory.losses.lines} == {0, 30}


def test_of_too_many_losses_the_latest_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remembered, "MAX_REPORTED", 1)
    memory = memory_of(*PROVEN)
    older = replace(memory.losses.reported[0], leader_epoch_before=1, reported_us=1)
    full = replace(memory, losses=LossMemory(reported=(older, *memory.losses.reported)))
    kept = view_of_round(snapshot(taken_at=at(60), **LATER), full).memory.losses.reported
    assert kept == memory.losses.reported


def test_a_step_of_the_clock_moves_what_is_remembered() -> None:
    memory = memory_of(*PROVEN, LATER | written(*LINES))
    by_us = timedelta(hours=30) // timedelta(microseconds=1)
    moved = shift_times(memory, by_us).losses
    assert moved.reported[0].reported_us - memory.losses.reported[0].reported_us == by_us
    assert moved.lines[0].read_us - memory.losses.lines[0].read_us == by_us
    assert moved.lines[0].event == memory.losses.lines[0].event


def test_what_an_earlier_process_told_is_settled_by_one_that_began_without_it() -> None:
    stored = memory_of(*PROVEN)
    seen = view_of_round(snapshot(taken_at=at(60), **LATER | written(*LINES)), None).memory
    joined = merge_stored(stored, seen)
    assert [one.key for one in joined.losses.reported] == [
        one.key for one in stored.losses.reported
    ]
    [said] = play(LATER, memory=joined, first=5)
    assert said.finding.reason == RETURNED


def test_a_new_leader_that_tells_half_of_its_offsets_makes_no_second_loss() -> None:
    half = led_by_2() | {"offsets": offsets(1, leader_epoch=[6], last_stable_offset=[None])}
    back = half | written(loaded(), started(), cut())
    for second, why in ((half, "lost"), (back, RETURNED)):
        said, memory = played(led_by_1(), second, led_by_2(), LATER)
        assert [(one.number, one.finding.reason) for one in said] == [(1, why)]
        assert [one.reported_us for one in memory.losses.reported] == [microseconds(at(15))]
