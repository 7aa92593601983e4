"""What ended is counted from the start of the process, whatever a single round could see."""

from __future__ import annotations

from datetime import timedelta

import pytest

from rules import names
from rules.facts.durations import BUCKETS, Durations
from rules.facts.identity import BrokerId
from rules.facts.transaction_log import Cut, EndedTransaction, Outcome, TransactionLog
from service.metrics.ended_transactions import EndedTransactions
from tests.factories import NOON, at, ended

START = EndedTransactions()
UNBOUNDED = len(BUCKETS)
MARKERS = Outcome.COMMITTED, BrokerId(2)


def log(*found: EndedTransaction, is_whole: bool = True) -> TransactionLog:
    return TransactionLog(is_read=True, ended=found, is_whole=is_whole)


def place_of(took: timedelta) -> int:
    """Return the bucket into which a duration falls."""
    return Durations().with_more([took]).counts.index(1)


def test_before_the_log_was_read_nothing_is_known() -> None:
    assert not START.is_known
    assert not START.after(TransactionLog.unread()).is_known


def test_each_outcome_and_cause_is_counted_over_rounds() -> None:
    aborted = ended(outcome=Outcome.ABORTED, cut=Cut.TIMEOUT)
    found = START.after(log(ended(), ended(), aborted)).after(log(ended(), aborted))
    assert found.is_known
    assert found.ended == {Outcome.COMMITTED: 3, Outcome.ABORTED: 2}
    assert found.fencings == {Cut.SECOND_INSTANCE: 0, Cut.TIMEOUT: 2}
    assert sum(found.durations[Outcome.COMMITTED].counts) == 3
    assert found.durations[Outcome.ABORTED].total == timedelta(seconds=10)


def test_markers_are_measured_where_the_decision_was_read() -> None:
    found = START.after(log(ended(decided_at=at(-2)), ended(), ended(decided_at=at(1))))
    took = found.marker_durations[MARKERS]
    assert (sum(took.counts), took.total) == (1, timedelta(seconds=2))
    assert found.after(log(ended(decided_at=at(-3)))).marker_durations[MARKERS].total == (
        timedelta(seconds=5)
    )
    assert found.ended[Outcome.COMMITTED] == 3


def test_an_abort_by_its_owner_fences_nobody() -> None:
    found = START.after(log(ended(outcome=Outcome.ABORTED)))
    assert found.ended[Outcome.ABORTED] == 1
    assert set(found.fencings.values()) == {0}


def test_rounds_that_could_not_read_hide_the_counters_and_lose_nothing() -> None:
    before = START.after(log(ended()))
    hidden = before.after(TransactionLog.unread())
    assert not hidden.is_known
    assert hidden.after(log(ended())) == START.after(log(ended(), ended()))


def test_a_round_that_read_a_part_goes_on_showing_what_it_counted() -> None:
    assert START.after(log(ended(), is_whole=False)).is_known


def test_a_round_leaves_the_value_before_it_alone() -> None:
    START.after(log(ended()))
    assert EndedTransactions() == START


@pytest.mark.parametrize("bound", names.DURATION_BUCKETS)
def test_a_bound_belongs_to_its_bucket(bound: float) -> None:
    place, step = names.DURATION_BUCKETS.index(bound), timedelta(microseconds=1)
    assert place_of(timedelta(seconds=bound)) == place
    assert place_of(timedelta(seconds=bound) - step) == place
    assert place_of(timedelta(seconds=bound) + step) == place + 1


def test_what_took_longer_than_any_bound_is_counted_too() -> None:
    assert place_of(timedelta(days=40)) == UNBOUNDED


def test_an_end_before_the_beginning_is_counted_and_not_measured() -> None:
    found = START.after(log(ended(started_at=at(1), ended_at=NOON)))
    assert found.ended[Outcome.COMMITTED] == 1
    assert found.durations[Outcome.COMMITTED] == Durations()
