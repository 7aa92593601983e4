"""What is remembered of transactions moves with the clock, and goes when it ended."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, Final

import pytest

from rules.facts.gap import GapScope
from rules.facts.last_observation import microseconds
from rules.facts.memory import Memory, advance, shift_times
from rules.facts.transaction_log import Outcome, TransactionLog
from rules.facts.transaction_memory import TransactionMemory, latest_time
from rules.facts.transactions import TransactionState
from tests.factories import (
    NOON,
    at,
    ended,
    gap,
    offsets,
    open_producer,
    partitions,
    producers,
    snapshot,
    topic_id,
    transaction,
    transactions,
    unseen_offsets,
)

HOUR_US: Final = 3_600_000_000
HELD: Final = {
    "offsets": offsets(last_stable_offset=[90, 100, 100]),
    "producers": producers(open_producer()),
}
LOG: Final = TransactionLog(is_read=True, ended=(ended(), ended(outcome=Outcome.ABORTED)))


def after(*observations: dict[str, Any], seconds: float = 15) -> Memory:
    memory: Memory | None = None
    for number, observation in enumerate(observations):
        memory = advance(snapshot(taken_at=at(number * seconds), **observation), memory)
    assert memory is not None
    return memory


def since(memory: TransactionMemory) -> list[tuple[int, int]]:
    """Return first seen and state since of the open ones, in seconds after noon."""
    noon = microseconds(NOON)
    return [
        ((seen.first_seen_us - noon) // 10**6, (seen.state_since_us - noon) // 10**6)
        for seen in memory.open.values()
    ]


def test_each_state_of_a_transaction_has_its_own_time() -> None:
    prepared = transaction(state=TransactionState.PREPARE_COMMIT)
    observations = [
        {"transactions": transactions(entry)} for entry in (transaction(), prepared, prepared)
    ]
    assert since(after(*observations).transactions) == [(0, 15)]


def test_the_next_transaction_of_an_id_is_another_one() -> None:
    observations = [
        {"transactions": transactions(entry)}
        for entry in (transaction(), transaction(started_at=NOON))
    ]
    assert since(after(*observations).transactions) == [(15, 15)]


def test_what_ended_is_forgotten_unless_no_coordinator_could_be_queried() -> None:
    there = {"transactions": transactions(transaction())}
    assert not after(there, {}).transactions.open
    hidden: dict[str, Any] = {
        "gaps": (gap(scope=GapScope.TRANSACTIONS),),
        "transactions": transactions(is_complete=False),
    }
    [seen] = after(there, hidden, hidden).transactions.open.values()
    assert not seen.is_seen
    assert not after(there, hidden, {}).transactions.open
    assert not after(there, hidden, hidden, seconds=60).transactions.open, "two minutes are enough"
    listed = hidden | {"transactions": transactions()}
    assert not after(there, listed).transactions.open


def test_a_round_without_a_description_keeps_what_was_known() -> None:
    bare = transaction(partitions=None, started_at=None, timeout=None)
    observations = [
        {"transactions": transactions(entry)} for entry in (transaction(), bare, transaction())
    ]
    [partly] = after(*observations[:2]).transactions.open.values()
    assert (partly.is_described, partly.transaction) == (False, transaction())
    assert since(after(*observations).transactions) == [(0, 0)]


def test_a_topic_created_again_and_a_log_cut_short_hold_nothing() -> None:
    again = {"offsets": offsets(last_stable_offset=[5, 100, 100], high_watermark=[9, 100, 100])}
    other = again | {"partitions": partitions(topic_ids=(topic_id("orders", creation=1),))}
    cut = {"offsets": offsets(last_stable_offset=[5, 100, 100], high_watermark=[5, 100, 100])}
    for observation in (other, cut):
        assert not after(HELD, observation).transactions.sightings


@pytest.mark.parametrize(
    ("observation", "sightings"),
    [
        pytest.param({}, 0, id="lso-moved-on"),
        pytest.param({**HELD, "producers": producers()}, 1, id="not-observed-at"),
        pytest.param({**HELD, "producers": producers(observed=[0])}, 0, id="observed-at-and-gone"),
        pytest.param({"offsets": unseen_offsets()}, 1, id="leader-away"),
    ],
)
def test_a_sighting_stays_for_as_long_as_it_may_be_there(
    observation: dict[str, Any], sightings: int
) -> None:
    assert len(after(HELD, observation).transactions.sightings) == sightings


def test_a_shift_moves_every_time() -> None:
    observation = {
        **HELD,
        "transactions": transactions(transaction(transactional_id="other", producer_id=8)),
    }
    memory = after({**observation, "transaction_log": LOG})
    moved = shift_times(memory, HOUR_US).transactions
    assert latest_time(moved) == latest_time(memory.transactions) + HOUR_US
    [seen], [sighting] = moved.open.values(), moved.sightings.values()
    later = microseconds(NOON) + HOUR_US
    assert (seen.first_seen_us, seen.state_since_us) == (later, later)
    assert (sighting.first_seen_us, sighting.unlisted_since_us) == (later, later)
    assert moved.began_us == later
    [[counts]] = moved.outcomes.values()
    assert (counts.minute, counts.committed, counts.aborted) == (later // 60_000_000, 1, 1)
    assert shift_times(shift_times(memory, HOUR_US), -HOUR_US).transactions == memory.transactions


def test_times_of_the_future_are_pulled_back_to_now() -> None:
    observation = {**HELD, "transactions": transactions(transaction()), "transaction_log": LOG}
    ahead = advance(snapshot(taken_at=NOON + timedelta(hours=1), **observation))
    now = advance(snapshot(taken_at=NOON, **observation), ahead).transactions
    assert latest_time(now) == microseconds(NOON)
    assert sum(entry.committed for entry in now.outcomes["payments"]) == 2


def test_outcomes_are_counted_by_the_minute_and_kept_for_ten() -> None:
    observation = {"transaction_log": LOG}
    assert len(after(observation, observation, seconds=15).transactions.outcomes["payments"]) == 1
    assert len(after(observation, observation, seconds=60).transactions.outcomes["payments"]) == 2
    assert len(after(*[observation] * 20, seconds=60).transactions.outcomes["payments"]) == 10
    assert after(observation, {}, seconds=601).transactions.outcomes == {}
