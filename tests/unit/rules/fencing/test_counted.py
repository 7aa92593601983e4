"""What brokers only count, whose producers were rejected, and how many episodes are kept."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import cast

import pytest

from rules.catalogue import producer_fenced
from rules.facts.broker_log import (
    BrokerLog,
    EpochRejected,
)
from rules.facts.transaction_log import (
    Cut,
    TransactionLog,
)
from rules.facts.transactions import IdVisibility
from rules.question import TransactionsQuestion
from rules.remembering import view_of_round
from tests.factories import at, snapshot, transactions
from tests.unit.rules.fencing.rounds import (
    ID,
    IDEMPOTENT,
    B,
    Observation,
    abort,
    begun,
    comparable,
    counted,
    initialised,
    lines,
    observed,
    old_epoch,
    play,
    restarted,
    state,
    takeover_v2,
)


def test_what_is_counted_belongs_to_nobody_where_two_ids_were_taken_over() -> None:
    other = replace(begun(11, 2), transactional_id="invoices", producer_id=8)
    rounds = (
        observed(transaction_log=state(begun(10, 2), other)),
        observed(scrapes=counted(25)),
        observed(),
    )
    classes = {e.key: str(e.verdict.reason) for e in play(rounds).memory.fencing.episodes}
    assert classes["counted"] == "not_attributed"
    assert classes[f"id {ID}"] == classes["id invoices"] == "nothing_rejected"


OTHERS = lines(replace(cast("EpochRejected", old_epoch(20, 0, 1)), producer_id=9))
NOBODYS = {"transactions": transactions(resolved=frozenset({9}), visibility=IdVisibility.ACLS)}


@pytest.mark.parametrize(
    "facts",
    [
        pytest.param(
            {"transaction_log": state(replace(abort(20, 3, v2=True), transactional_id="invoices"))},
            id="another owner has just aborted its transaction",
        ),
        pytest.param(
            {"transaction_log": state(abort(20, 5, v2=True))}, id="its own owner has just done so"
        ),
    ],
)
def test_a_late_batch_of_a_transaction_that_its_owner_aborted_makes_no_zombie(
    facts: Observation,
) -> None:
    """The leader asks the coordinator about it, and both count a rejection."""
    for name, error in (
        ("Produce", "INVALID_PRODUCER_EPOCH"),
        ("AddPartitionsToTxn", "PRODUCER_FENCED"),
    ):
        rounds = (
            observed(transaction_log=state(begun(10, 5))),
            observed(scrapes=counted(25, name, error), broker_log=lines(), **facts),
            observed(broker_log=lines()),
            observed(broker_log=lines()),
        )
        episodes = play(rounds).memory.fencing.episodes
        assert "zombie" not in {str(each.verdict.class_) for each in episodes}


def test_what_is_counted_belongs_to_nobody_where_takeovers_may_be_unknown() -> None:
    """Without the state log only the coordinators whose log lines are read show takeovers."""
    unread = state(is_read=False)
    took = lines(initialised(10, 2, B))
    rounds = (
        observed(transaction_log=unread, broker_log=took),
        observed(transaction_log=unread, scrapes=counted(25)),
        observed(transaction_log=unread),
    )
    classes = {e.key: str(e.verdict.class_) for e in play(rounds).memory.fencing.episodes}
    assert classes == {f"id {ID}": "handover", "counted": "undetermined"}


@pytest.mark.parametrize("broker_log", [BrokerLog.unread(), OTHERS], ids=["unread", "logged"])
def test_a_late_batch_that_is_counted_makes_no_zombie(broker_log: BrokerLog) -> None:
    """A leader counts a late batch of an idempotent producer, too, and logs it."""
    rounds = (
        observed(transaction_log=state(*takeover_v2(10, 4))),
        observed(scrapes=counted(25, "Produce", "INVALID_PRODUCER_EPOCH"), broker_log=broker_log),
        observed(**NOBODYS),
    )
    classes = {e.key: str(e.verdict.class_) for e in play(rounds).memory.fencing.episodes}
    assert classes[f"id {ID}"] == "undetermined"
    assert "zombie" not in classes.values()


def test_the_coordinators_are_asked_whose_producer_was_rejected() -> None:
    rejected = observed(broker_log=lines(old_epoch(5, 0, 1)))
    [question] = producer_fenced.judge(play((rejected,))).questions
    assert question == TransactionsQuestion(frozenset({7}))
    assert producer_fenced.judge(play((rejected, observed(**IDEMPOTENT)))).questions == ()
    assert producer_fenced.judge(play((observed(),))).questions == ()


def many(count: int, *, is_cut: bool) -> TransactionLog:
    """Return so many restarts, each of an id of its own."""
    names = [f"app-{number}" for number in range(count)]
    cuts = [replace(abort(1, 0, cut=Cut.TIMEOUT), transactional_id=name) for name in names]
    starts = [
        replace(begun(2, 2), transactional_id=name, producer_id=number)
        for number, name in enumerate(names)
    ]
    return state(*(cuts if is_cut else ()), *starts)


def test_episodes_are_bounded_and_kept_for_a_day() -> None:
    view = play((observed(transaction_log=many(1200, is_cut=True)),))
    assert (len(view.memory.fencing.open), len(view.memory.fencing.ended)) == (1000, 200)
    assert comparable(restarted(view.memory)) == comparable(view.memory)
    hour = snapshot(taken_at=at(0) + timedelta(hours=1.5), transaction_log=state())
    memory = view_of_round(hour, view.memory).memory
    assert (len(memory.fencing.open), len(memory.fencing.ended)) == (0, 1000)
    later = snapshot(taken_at=at(0) + timedelta(hours=26), transaction_log=state())
    assert view_of_round(later, memory).memory.fencing.episodes == ()


def test_restarts_that_cut_nothing_are_not_kept_when_they_are_over() -> None:
    view = play((observed(transaction_log=many(10, is_cut=False)),))
    assert len(view.memory.fencing.open) == 10
    hour = snapshot(taken_at=at(0) + timedelta(hours=1.5), transaction_log=state())
    assert view_of_round(hour, view.memory).memory.fencing.episodes == ()
