"""What is remembered of brokers: over rounds that did not see them, restarts and steps of the clock."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from rules.facts.broker_memory import BrokerMemory, ControllerTerm, merge_brokers
from rules.facts.brokers import BrokerContact, ControllerState, Quorum
from rules.facts.column import Ragged
from rules.facts.identity import BrokerId
from rules.facts.last_observation import microseconds
from rules.facts.memory import Memory, advance, merge_stored, shift_times
from rules.facts.snapshot import Snapshot
from tests.factories import NOON, at, broker, partitions, snapshot

REMAINING = (broker(1), broker(3))


def without_2(seconds: float, *, is_complete: bool = True, topics: int = 3) -> dict[str, object]:
    placed = partitions({"orders": topics}, isr=Ragged.of([(1, 3)] * topics))
    return {
        "brokers": REMAINING,
        "partitions": placed,
        "placement_complete": is_complete,
        "taken_at": at(seconds),
    }


def test_a_topic_that_was_not_listed_does_not_bring_a_broker_back() -> None:
    gone = advance(snapshot(**without_2(0)))
    hidden = snapshot(**without_2(60, is_complete=False, topics=0))
    assert advance(hidden, gone).brokers.gone_us == {2: microseconds(NOON)}
    complete = snapshot(**without_2(60, topics=0))
    assert advance(complete, gone).brokers.gone_us == {}


def test_a_restart_continues_the_times_of_what_is_still_so() -> None:
    stored = advance(snapshot(**without_2(0)))
    seen = advance(snapshot(**without_2(600)))
    merged = merge_stored(stored, seen)
    assert merged.brokers.gone_us == {2: microseconds(NOON)}
    assert merged.replication.since_us.to_list() == [microseconds(NOON)] * 3
    assert merged.brokers.listed.keys() == {1, 3}


def test_a_restart_continues_a_gone_broker_whose_topics_were_not_listed_yet() -> None:
    stored = advance(snapshot(**without_2(0)))
    unlisted = merge_stored(stored, advance(snapshot(**without_2(60, is_complete=False, topics=0))))
    assert advance(snapshot(**without_2(75)), unlisted).brokers.gone_us == {2: _us(0)}
    moved = snapshot(**without_2(75, topics=0))
    assert advance(moved, unlisted).brokers.gone_us == {}


def test_a_restart_does_not_continue_what_was_seen_to_end() -> None:
    stored = advance(snapshot(**without_2(0)))
    back = advance(snapshot(taken_at=at(600)))
    assert merge_stored(stored, back).brokers.gone_us == {}
    gone_again = advance(snapshot(**without_2(660)), back)
    assert merge_stored(stored, gone_again).brokers.gone_us == {2: microseconds(at(660))}


def test_a_restart_does_not_continue_an_isr_that_was_seen_whole_or_unseen_for_long() -> None:
    stored = advance(snapshot(**without_2(0)))
    whole = advance(snapshot(taken_at=at(60)))
    again = merge_stored(stored, advance(snapshot(**without_2(75)), whole))
    assert again.replication.since_us.to_list() == [_us(75)] * 3
    late = merge_stored(stored, advance(snapshot(**without_2(7200))))
    assert late.replication.since_us.to_list() == [_us(7200)] * 3
    unseen = advance(snapshot(partitions=partitions(isr=Ragged.of([None] * 3)), taken_at=at(60)))
    assert merge_stored(stored, unseen).replication.since_us.to_list() == [_us(0)] * 3


def silent_without_controller(seconds: float) -> Snapshot:
    answers = frozenset({BrokerId(1), BrokerId(3)})
    return snapshot(
        contact=BrokerContact(answered=answers, silent={BrokerId(2): "no answer within 5.0 s"}),
        quorum=Quorum(state=ControllerState.NO_ANSWER),
        taken_at=at(seconds),
    )


def test_a_restart_continues_silence_and_absence_unless_it_saw_them_end() -> None:
    stored = advance(silent_without_controller(0))
    directly = merge_stored(stored, advance(silent_without_controller(60))).brokers
    assert (directly.silent_us, directly.no_controller_us) == ({2: _us(0)}, _us(0))
    well = advance(snapshot(taken_at=at(60)))
    again = merge_stored(stored, advance(silent_without_controller(75), well)).brokers
    assert (again.silent_us, again.no_controller_us) == ({2: _us(75)}, _us(75))
    late = merge_stored(stored, advance(silent_without_controller(7200))).brokers
    assert late.no_controller_us == _us(7200)


def test_a_step_of_the_clock_moves_all_times_along() -> None:
    memory = replace(advance(snapshot(**without_2(0))), taken_us=0)
    ages = _times_of(memory)
    assert _times_of(shift_times(memory, 5)) == [time + 5 for time in ages]


def test_a_clock_that_was_set_back_makes_nothing_begin_in_the_future() -> None:
    memory = advance(snapshot(**without_2(3600)))
    later = advance(snapshot(**without_2(0)), memory)
    assert max(_times_of(later)) == microseconds(NOON)


def test_elections_are_counted_once_over_a_restart() -> None:
    first, second = (
        ControllerTerm(leader=100 + n, leader_epoch=n, seen_us=microseconds(NOON) + n)
        for n in (1, 2)
    )
    merged = merge_brokers(BrokerMemory(terms=(first,)), BrokerMemory(terms=(first, second)))
    assert merged.terms == (first, second)
    assert merged.changes_since(microseconds(NOON - timedelta(hours=1))) == (second,)


def _us(seconds: float) -> int:
    return microseconds(at(seconds))


def _times_of(memory: Memory) -> list[int]:
    brokers = memory.brokers
    return [
        *brokers.gone_us.values(),
        *(entry.listed_us for entry in brokers.listed.values()),
        *(term.seen_us for term in brokers.terms),
        *memory.replication.since_us.values.tolist(),
        *memory.replication.seen_us.values.tolist(),
    ]
