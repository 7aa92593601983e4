"""The class of an open transaction, from its state at the coordinator."""

from __future__ import annotations

from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final

from rules.facts.transactions import NO_TIMEOUT, Transaction, TransactionState

# Ages are counted from the coordinator's clock to ours.
CLOCKS_DIFFER: Final = timedelta(seconds=1)


class TransactionClass(StrEnum):
    """What blocks a last stable offset, and who will end it."""

    OPEN = "open"  # within its own timeout
    OVERDUE = "overdue"  # its timeout has passed: the coordinator will abort it
    PREPARE_COMMIT = "prepare_commit"  # decided, and the marker is not written yet
    PREPARE_ABORT = "prepare_abort"
    MARKER_NOT_REPLICATED = "marker_not_replicated"  # written by the leader, on too few replicas
    HANGING = "hanging"  # no coordinator will ever end it
    TWO_PHASE_COMMIT = "two_phase_commit"  # open without a limit, by design (KIP-939)
    UNKNOWN = "unknown"


_DECIDED: Final = {
    TransactionState.PREPARE_COMMIT: TransactionClass.PREPARE_COMMIT,
    TransactionState.PREPARE_ABORT: TransactionClass.PREPARE_ABORT,
    TransactionState.PREPARE_EPOCH_FENCE: TransactionClass.PREPARE_ABORT,
}


def class_of(entry: Transaction, now: datetime) -> TransactionClass:
    """Return the class of a transaction that its coordinator lists as open; `now` is aware, UTC."""
    decided = _DECIDED.get(entry.state)
    if decided is not None:
        return decided
    if entry.timeout is None or entry.started_at is None:
        return TransactionClass.UNKNOWN  # listed, and not described
    if entry.timeout >= NO_TIMEOUT:
        return TransactionClass.TWO_PHASE_COMMIT
    if now - entry.started_at > entry.timeout + CLOCKS_DIFFER:
        return TransactionClass.OVERDUE
    return TransactionClass.OPEN
