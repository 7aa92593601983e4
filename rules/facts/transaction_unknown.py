"""Whether a round proves that no coordinator will end a transaction, and if not, why.

ListTransactions leaves out ids that we may not see, and an old coordinator may answer for ids that have
moved: an answer that does not list the partition counts only in a round in which every coordinator
answered, and a missing id only if every transactional id is provably visible.
"""

from __future__ import annotations

from enum import StrEnum

from rules.facts.identity import TopicPartition
from rules.facts.transactions import IdVisibility, Transaction, Transactions, TransactionState


class UnknownReason(StrEnum):
    """Why the class of a transaction is unknown."""

    CONFIRMING = "confirming"  # seen once: the next round decides
    COORDINATOR_NOT_SEEN = "coordinator_not_seen"  # not every coordinator answered
    PERMISSION_UNPROVEN = "permission_unproven"  # it may be an id that we may not see
    NOT_DESCRIBED = "not_described"  # listed, and not described, or in an unknown state
    NOBODY_FOUND = "nobody_found"  # no transaction was open any more, or not yet


def lists(entry: Transaction | None, name: TopicPartition) -> bool:
    """Whether the coordinator has this transaction as open on the partition."""
    return (
        entry is not None
        and entry.is_open
        and entry.partitions is not None
        and name in entry.partitions
    )


def unknown_reason_of(
    transactions: Transactions, entry: Transaction | None, name: TopicPartition
) -> UnknownReason | None:
    """Return why it is not proven that no coordinator will end a producer's transaction here; None: proven.

    `entry` is the producer's transaction at its coordinator, and does not list the partition as open. Open
    transactions are listed for every producer, so that no query by producer id is needed.
    """
    if entry is not None and _is_unclear(entry, name):
        return UnknownReason.NOT_DESCRIBED
    if not transactions.is_complete:
        return UnknownReason.COORDINATOR_NOT_SEEN
    if entry is None and transactions.visibility is IdVisibility.UNPROVEN:
        return UnknownReason.PERMISSION_UNPROVEN
    return None


def _is_unclear(entry: Transaction, name: TopicPartition) -> bool:
    is_unknown = entry.state is TransactionState.UNKNOWN or entry.partitions is None
    return is_unknown or name in (entry.partitions or ())
