"""The act of a batch that is rejected inside a transaction, shown from both sides.

To the broker it is a reordering, and nothing that was acknowledged is missing. librdkafka gives the
transaction up all the same: it has to be aborted. The broker's log has the numbers and the application's has
the error; Tidemark puts them beside each other.
"""

from __future__ import annotations

from typing import Final

from rules.facts.episode_transactions import TransactionOutcome
from rules.sequence.evidence_fields import SequenceEvidence
from service.sandbox.demo.act import Act, Observation, Step
from service.sandbox.demo.api import Api
from service.sandbox.demo.sequence_act import REORDERING
from service.sandbox.demo.stage import SHIPMENTS, Stage


def _costs_a_transaction(observed: Observation) -> str | None:
    """Compare the reported transaction with what the leader's files have of it."""
    evidence = observed.evidence(REORDERING, SHIPMENTS, SequenceEvidence)
    truth = observed.stage.sequence_truth
    if evidence is None or evidence["phase"] != "confirmed":
        return None
    if truth is None or truth.transaction is None:
        return None
    told, finding = evidence["transactional_id"], observed.last.finding(REORDERING, SHIPMENTS)
    is_same = (told, evidence["transaction"]) == (
        truth.transaction.transactional_id,
        TransactionOutcome.ABORTED,
    )
    if not is_same or finding is None or finding["severity"] != "warning":
        return None
    return (
        f"warning {REORDERING} on {SHIPMENTS}: nothing acknowledged is missing, and the transaction of "
        f"{told} was aborted\n        {evidence['explanation']}\n        check: {evidence['check']}"
    )


def _is_shown_from_both_sides(observed: Observation) -> str | None:
    truth = observed.stage.sequence_truth
    if truth is None or truth.transaction is None:
        return None
    with Api(observed.stage.address) as api:
        whose = truth.transaction.transactional_id
        errors = api.rows("application-errors", transactional_id=whose)
        detail = api.find(f"application-errors/{errors[0]['id']}") if errors else None
    if detail is None:
        return None
    error = detail["application_error"]
    events = [each for each in detail["sequences"] if each["topic"] == SHIPMENTS]
    if not events or error["transactional_producer"] != "abort":
        return None
    return (
        f"the application: {error['error']}, {error['title']}; transactional producer: "
        f"{error['transactional_producer']}\n        the broker: producer {events[0]['producer_id']} on "
        f"{SHIPMENTS}, {events[0]['class']}, {events[0]['phase']}; the same producer by "
        f"{events[0]['match'].replace('_', ' ')}"
    )


REJECTED_IN_TRANSACTION: Final = Act(
    title="A batch is rejected inside a transaction",
    steps=[
        Step(
            did=f"a network turned batches of a transaction on {SHIPMENTS} around; librdkafka gave the "
            "transaction up, and its application aborted it",
            do=Stage.reject_in_transaction,
            seen=_costs_a_transaction,
            limit_seconds=60,
        ),
        Step(
            did="what that application logged was sent to Tidemark",
            do=Stage.ship_application_log,
            seen=_is_shown_from_both_sides,
        ),
    ],
)
