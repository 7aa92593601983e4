"""Answers about open transactions; absent values are null, never 0 or -1."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from pydantic import Field

from rules.facts.transaction_unknown import UnknownReason
from rules.facts.transactions import IdVisibility, TransactionState
from rules.transactions.classes import TransactionClass
from service.api.core.models import Gap, Model, NextCursor, Stamped
from service.api.core.queries import PageQuery, Pattern


class BlockedGroup(Model):
    """A group that cannot read past a transaction if it reads with read_committed."""

    group: str
    is_waiting: Annotated[bool, Field(description="It has read up to the transaction")]
    lag_before_transaction: Annotated[int, Field(description="Offsets before the transaction")]
    blocked_offsets: Annotated[int, Field(description="From its first one to the high watermark")]


class TransactionPartition(Model):
    """A partition on which a transaction is open."""

    topic: str
    partition: int
    leader: int | None
    start_offset: int | None
    """null: only leaders report it, of transactions that block for a while"""
    last_stable_offset: int | None
    high_watermark: int | None
    open_span: Annotated[int | None, Field(description="Offsets that the partition holds back")]
    holds_last_stable_offset: bool | None
    last_record_at: datetime | None
    """By the record's own timestamp, which the producer sets"""
    coordinator_epoch: int | None
    blocked_groups: list[BlockedGroup] | None
    """The first 20; null: not known"""
    blocked_group_count: int | None


class Transaction(Model):
    """An open transaction."""

    class_: Annotated[TransactionClass, Field(alias="class")]
    """Who will end it; hanging: nobody will"""
    unknown_reason: Annotated[UnknownReason | None, Field(description="Why its class is unknown")]
    is_listed: bool
    """A coordinator lists it as open; false: only the partition shows it"""
    transactional_id: str | None
    """null: no coordinator lists its producer"""
    producer_id: int | None
    producer_epoch: int | None
    coordinator: int | None
    state: Annotated[TransactionState | None, Field(description="Of its transactional id")]
    timeout_ms: int | None
    started_at: Annotated[datetime | None, Field(description="By the coordinator's clock")]
    first_seen_at: Annotated[datetime | None, Field(description="By the clock of Tidemark")]
    running_ms: int | None
    """From started_at to as_of; null: it is not known when it began, or the coordinator's clock is ahead of Tidemark's"""
    partition_count: Annotated[int | None, Field(description="null: it was not described")]
    partitions: list[TransactionPartition]
    """The first 100, those that hold a last stable offset before others"""
    next_step: Annotated[str, Field(description="What happens next, and what to do about it")]
    repair: str | None
    """The command that aborts a hanging transaction"""


class TransactionPage(Stamped):
    """Open transactions: those that hang first, then by class, the oldest first."""

    items: list[Transaction]
    next: NextCursor
    complete: bool
    """False: there may be more transactions, or more data about these"""
    all_coordinators_answered: Annotated[bool, Field(description="All of them answered")]
    transactional_id_visibility: IdVisibility
    """Why no transactional id is hidden from Tidemark"""
    partitions_not_queried: int
    """Blocked by no listed transaction; the next observation queries their producers"""
    gap_count: int
    gaps: Annotated[list[Gap], Field(description="The first 100 that concern this list")]


class TransactionQuery(PageQuery):
    """Which open transactions; those that are known to match are shown."""

    class_: Annotated[TransactionClass | None, Field(alias="class")] = None
    transactional_id: Pattern | None = None
    topic: Pattern | None = None
    """Open on a partition of such a topic"""
    group: Annotated[Pattern | None, Field(description="Blocks such a group")] = None
