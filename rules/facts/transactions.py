"""Transactions as the transaction coordinators describe them.

A transaction belongs to a transactional id, whose coordinator alone decides it. Its partitions are
those that still wait for a marker: all of an open transaction, fewer and fewer of a decided one.
Source: ListTransactions, DescribeTransactions (KIP-664), transactions v2 (KIP-890).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final

from rules.facts.identity import BrokerId, TopicPartition

# The timeout of a transaction that a two-phase commit may keep open without limit (KIP-939).
NO_TIMEOUT: Final = timedelta(milliseconds=2**31 - 1)


class TransactionState(StrEnum):
    """Kafka's own states; `UNKNOWN` is one that only a newer broker has."""

    EMPTY = "Empty"  # the producer was initialised and has begun nothing since
    ONGOING = "Ongoing"
    PREPARE_COMMIT = "PrepareCommit"  # decided: the markers are being written
    PREPARE_ABORT = "PrepareAbort"
    COMPLETE_COMMIT = "CompleteCommit"  # all markers are written
    COMPLETE_ABORT = "CompleteAbort"
    PREPARE_EPOCH_FENCE = "PrepareEpochFence"
    DEAD = "Dead"
    UNKNOWN = "Unknown"


OPEN_STATES: Final = (
    TransactionState.ONGOING,
    TransactionState.PREPARE_COMMIT,
    TransactionState.PREPARE_ABORT,
    TransactionState.PREPARE_EPOCH_FENCE,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Transaction:
    """The state of one transactional id as its coordinator describes it."""

    transactional_id: str
    coordinator: BrokerId
    producer_id: int
    state: TransactionState
    # From here on absent where the id was listed and could not be described.
    producer_epoch: int | None = None
    timeout: timedelta | None = None
    started_at: datetime | None = None  # aware, UTC, by the coordinator's clock; absent: not begun
    partitions: frozenset[TopicPartition] | None = None  # that still wait for a marker

    @property
    def is_open(self) -> bool:
        """Whether it has begun and not every marker is written."""
        return self.state in OPEN_STATES


class IdVisibility(StrEnum):
    """Why a transactional id that no coordinator lists does not exist.

    ListTransactions silently leaves out ids that we may not see.
    """

    NO_AUTHORIZER = "no_authorizer"  # the brokers check no permissions
    ACLS = "acls"  # they could be read, and every transactional id is visible to us
    DECLARED = "declared"  # by a setting
    UNPROVEN = "unproven"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Transactions:
    """The coordinators' answers of one round."""

    # By transactional id: every open one, and those that were resolved by their producer's id.
    known: Mapping[str, Transaction]
    visibility: IdVisibility
    # Whether each coordinator answered and each partition of `__transaction_state` has a leader:
    # only then a transaction that is not listed is unknown to all coordinators.
    is_complete: bool
    resolved: frozenset[int]  # producer ids that were queried in whatever state
    # False: the brokers say that there is no `__transaction_state`, so that no id is hidden.
    was_ever_used: bool = True

    @classmethod
    def none(cls) -> Transactions:
        """Return the value for a round that queried no coordinator, which proves nothing."""
        return cls(
            known={}, visibility=IdVisibility.UNPROVEN, is_complete=False, resolved=frozenset()
        )

    def by_producer(self) -> dict[int, Transaction]:
        """Return the transactions by producer id; each id has at most one at a time."""
        return {entry.producer_id: entry for entry in self.known.values()}
