"""Batches that a producer wrote to a partition, by the headers in the leader's log.

A header has the leader epoch in which its batch was appended, which is the proof of continuity: while
an epoch lasts its leader loses nothing that it appended.
Source: the v2 record batch layout (KIP-98), Fetch with isolation read_uncommitted; needs READ.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from rules.facts.identity import TopicPartition


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchSeen:
    """One batch of a producer in the leader's log."""

    base_offset: int
    last_offset: int
    leader_epoch: int  # in which it was appended
    producer_epoch: int
    base_sequence: int  # int32; the last one may lie behind it, at the wrap
    last_sequence: int
    record_count: int
    is_transactional: bool | None = None  # None: not read


@dataclass(frozen=True, slots=True, kw_only=True)
class MarkerSeen:
    """The marker that ended a transaction of a producer on a partition."""

    offset: int
    leader_epoch: int  # in which it was appended
    producer_epoch: int
    is_commit: bool | None = None  # None: not read


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchesOf:
    """The batches and markers of one producer that were found on one partition."""

    name: TopicPartition
    producer_id: int
    batches: tuple[BatchSeen, ...]  # ascending by offset; one found by its time may lie before
    markers: tuple[MarkerSeen, ...] = ()  # ascending by offset
    scanned_from: int  # offsets from here
    scanned_to: int  # to here, exclusive, were scanned for it
    # Records of this time or later, by their own timestamps, are not below `scanned_from`; None: not
    # requested.
    since: datetime | None = None
    # The largest number of records in one batch there, of any producer: the measure of a small gap.
    largest_batch: int | None
