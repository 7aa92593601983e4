"""The transactions in which batches were rejected for their sequence: whose they are, and how each ended.

A rejected batch belongs to the transaction whose marker is the first one of its producer in the
partition's log from the rejected offset on. While it is open it is identified by its first offset on the
partition, as the leader describes it, and by its start, as its coordinator does.
Source: KIP-98, KIP-664, KIP-890.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final


class TransactionOutcome(StrEnum):
    """What became of a transaction in which a batch was rejected."""

    OPEN = "open"  # within its timeout
    OVERDUE = "overdue"  # open after its timeout: its coordinator will abort it
    COMMITTED = "committed"
    ABORTED = "aborted"  # by its owner, as far as is known
    FENCED = "fenced"  # aborted for another instance with the same transactional id
    TIMED_OUT = "timed_out"  # aborted by its coordinator after its timeout
    UNKNOWN = "unknown"


class OutcomeSource(StrEnum):
    """What shows an outcome."""

    MARKER = "marker"  # in the partition's log, from the rejected offset on
    TRANSACTION_LOG = "transaction_log"  # `__transaction_state`
    COORDINATOR = "coordinator"
    PARTITION = "partition"  # its leader has it open


class UnknownOutcome(StrEnum):
    """Why an outcome is not known."""

    AWAITED = "awaited"  # the next rounds search for it
    NOT_READABLE = "not_readable"  # READ on the topic is missing, and nothing else shows it
    NOT_OBSERVED = "not_observed"  # the partition could not be observed
    END_NOT_SEEN = "end_not_seen"  # it has ended, and neither log shows how


ENDED: Final = frozenset(
    {
        TransactionOutcome.COMMITTED,
        TransactionOutcome.ABORTED,
        TransactionOutcome.FENCED,
        TransactionOutcome.TIMED_OUT,
    }
)
ABORTED: Final = ENDED - {TransactionOutcome.COMMITTED}  # by whomever
# Outcomes under which the application has to do something, or had to.
FAILED: Final = ABORTED | {TransactionOutcome.OVERDUE}
STILL_OPEN: Final = frozenset({TransactionOutcome.OPEN, TransactionOutcome.OVERDUE})


@dataclass(frozen=True, slots=True, kw_only=True)
class RejectedTransaction:
    """The transaction of one rejected batch; times in microseconds, by its coordinator's clock."""

    outcome: TransactionOutcome = TransactionOutcome.UNKNOWN
    source: OutcomeSource | None = None  # None: the outcome is not known
    start_offset: int | None = None  # on the partition, while it was seen open
    started_us: int | None = None  # since 1970-01-01 UTC; it identifies the transaction
    producer_epoch: int | None = None  # while it was open
    marker_offset: int | None = None
    marker_epoch: int | None = None  # transactions v2, a timeout and a fence raise it

    @property
    def has_ended(self) -> bool:
        """Whether it is known how it ended."""
        return self.outcome in ENDED


@dataclass(frozen=True, slots=True, kw_only=True)
class EpisodeTransaction:
    """What is known of the transactions of an episode's producer."""

    is_transactional: bool | None = None  # None: nothing says so
    transactional_id: str | None = None
    timeout_ms: int | None = None
    # Since the last rejection: an abort that was not the owner's, by the epoch of its markers.
    cut: TransactionOutcome | None = None
    cut_epoch: int | None = None
    unknown_reason: UnknownOutcome | None = None  # of a rejection whose outcome is not known


NOTHING_KNOWN: Final = EpisodeTransaction()
