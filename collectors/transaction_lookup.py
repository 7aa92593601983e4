"""Describes one transactional id, whatever its state: DescribeTransactions, sent to every broker.

Only its coordinator knows an id, and any other broker answers so. FindCoordinator would name it in one
request, but creates `__transaction_state` where transactions were never used: Tidemark changes nothing
in a cluster.
Source: KIP-664.
"""

from __future__ import annotations

from collectors import state_topic
from collectors.session import Reply, Session
from collectors.transactions import outcome_of
from collectors.visibility import ask_to_describe
from collectors.wire.failure import Failure
from collectors.wire.transaction_answers import read_transactions
from rules.facts.gap import GapCause
from rules.facts.transactions import Transaction


def collect(session: Session, transactional_id: str) -> Transaction | Failure | None:
    """Return the transaction as its coordinator answers it, None if no such id exists, or a failure."""
    asks = [ask_to_describe(broker, [transactional_id]) for broker in session.brokers]
    answers = [_answer(reply, transactional_id) for reply in session.exchange(asks)]
    for answer in answers:
        if isinstance(answer, Transaction):
            return answer
    if None in answers:
        return None
    failures = [answer for answer in answers if isinstance(answer, Failure)]
    informative = [
        failure for failure in failures if failure.cause is not GapCause.COORDINATOR_MOVING
    ]
    if not informative and state_topic.collect(session) is None:
        return None  # transactions were never used
    nobody = Failure(GapCause.COORDINATOR_MOVING, "no broker coordinates it now")
    return next(iter(informative), nobody)


def _answer(reply: Reply, transactional_id: str) -> Transaction | Failure | None:
    broker, described = reply.ask.broker, reply.read_by(read_transactions)
    if isinstance(described, Failure):
        return described
    entry = next((entry for entry in described if entry.transactional_id == transactional_id), None)
    if entry is None:
        return Failure(GapCause.UNREADABLE, f"{broker} left it out of its answer")
    return outcome_of(entry, broker)
