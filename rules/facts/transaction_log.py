"""Transactions that ended and producers that were initialised since the last round, read from the coordinators' own log.

Only `__transaction_state` shows how long a transaction took and how it ended; requests return only the
present state. The log is read from its end on, so that earlier transactions are not here.
Source: TransactionLogKey and TransactionLogValue of the broker, KIP-98, KIP-360, KIP-890.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from rules.facts.identity import BrokerId, TopicPartition


class Outcome(StrEnum):
    """How a transaction ended."""

    COMMITTED = "committed"
    ABORTED = "aborted"


class Cut(StrEnum):
    """Who aborted an open transaction instead of its owner, which is fenced thereby."""

    SECOND_INSTANCE = "second_instance"  # a producer with the same transactional id began
    TIMEOUT = "timeout"  # the coordinator, because its timeout was over


@dataclass(frozen=True, slots=True, kw_only=True)
class EndedTransaction:
    """One transaction all of whose markers are written; times are aware, UTC, of the coordinator."""

    transactional_id: str
    producer_id: int
    producer_epoch: int  # while it was open
    outcome: Outcome
    started_at: datetime
    decided_at: datetime | None = None  # to commit or abort; None: the decision was not read
    ended_at: datetime  # its last marker is written
    timeout: timedelta
    cut: Cut | None = None  # None: its owner ended it, or its decision was not seen
    marker_epoch: int | None = None  # of its markers; transactions v2 end each with a new epoch
    partitions: frozenset[TopicPartition] = frozenset()  # that got a marker, as far as observed
    coordinator: BrokerId | None = None  # whose log its end was read from

    @property
    def duration(self) -> timedelta:
        """Return how long it took, until its last marker was written."""
        return self.ended_at - self.started_at

    @property
    def marker_duration(self) -> timedelta | None:
        """Return how long its markers took from the decision on; None if that was not read."""
        return None if self.decided_at is None else self.ended_at - self.decided_at


def measured_markers(transactions: Iterable[EndedTransaction]) -> Iterator[timedelta]:
    """Yield how long markers took, where decision and end were read in this order of their clocks."""
    durations = (transaction.marker_duration for transaction in transactions)
    return (took for took in durations if took is not None and took >= timedelta(0))


@dataclass(frozen=True, slots=True, kw_only=True)
class Initialisation:
    """A transactional id got a producer epoch with which nothing was begun yet (InitProducerId)."""

    transactional_id: str
    producer_id: int
    producer_epoch: int
    at: datetime  # aware, UTC, by the coordinator's clock


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TransactionLog:
    """The transactions that ended since the last round; nothing is known where the log may not be read."""

    is_read: bool  # False: durations, commits and aborts are unknown, not zero
    ended: tuple[EndedTransaction, ...] = ()  # in no order across transactional ids
    initialised: tuple[Initialisation, ...] = ()  # since the last round, in the same order
    is_whole: bool = True  # False: some partitions of it gave no answer, or were too far ahead

    @classmethod
    def unread(cls) -> TransactionLog:
        """Return the value for a cluster without READ on the log."""
        return cls(is_read=False)
