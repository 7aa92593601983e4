"""Batches that a producer wrote to a partition, by the headers that the leader's log shows.

A header tells in which leader epoch its batch was appended, which is the proof of continuity: while
an epoch lasts its leader loses nothing that it appended.
Source: the v2 record batch layout (KIP-98), Fetch with isolation read_uncommitted; needs READ.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from rules.facts.identity import TopicPartition


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchSeen:
    """One batch of a producer as the log shows it."""

    base_offset: int
    last_offset: int
    leader_epoch: int  # in which it was appended
    producer_epoch: int
    base_sequence: int  # int32; the last one may lie behind it, at the wrap
    last_sequence: int
    record_count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class MarkerSeen:
    """The marker that ended a transaction of a producer on a partition."""

    offset: int
    leader_epoch: int  # in which it was appended
    producer_epoch: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchesOf:
    """What was found of one producer on one partition."""

    name: TopicPartition
    producer_id: int
    batches: tuple[BatchSeen, ...]  # ascending by offset; one found by its time may lie before
    markers: tuple[MarkerSeen, ...] = ()  # ascending by offset
    scanned_from: int  # offsets from here
    scanned_to: int  # to here, exclusive, were scanned for it
    # Records of this time or later, by their own timestamps, are not below `scanned_from`; None: not
    # asked for.
    since: datetime | None = None
    # How many records batches of whatever producer had there, at most: what "small" is measured by.
    largest_batch: int | None
