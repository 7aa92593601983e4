"""What the coordinators' own topics hold in files: states of transactional ids, commits of groups."""

from __future__ import annotations

from dataclasses import dataclass

from rules.facts.identity import TopicPartition
from rules.facts.transactions import TransactionState


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenState:
    """One record of a transactional id."""

    offset: int
    at_ms: int | None  # since 1970, by the coordinator's clock
    state: TransactionState | None  # None: a tombstone, the id is forgotten
    producer_id: int | None = None
    producer_epoch: int | None = None
    timeout_ms: int | None = None
    started_ms: int | None = None
    partitions: tuple[TopicPartition, ...] = ()  # that still wait for a marker


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenCommit:
    """One commit of a group for a partition, or its deletion."""

    group: str
    name: TopicPartition
    committed_offset: int | None  # None: it was deleted
    leader_epoch: int | None
    committed_ms: int | None
    offset: int  # of the record
    is_transactional: bool
