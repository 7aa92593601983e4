"""Transactions as partitions show them: which producer's is open, and from which offset on.

Source: DescribeProducers (KIP-664), sent to the leader after the coordinators have answered, and only
where the last stable offset is held.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from rules.facts.column import Bools


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenProducer:
    """A producer with an open transaction on one partition."""

    row: int  # of the snapshot's partitions
    producer_id: int
    producer_epoch: int
    coordinator_epoch: int | None  # of its last marker here; absent: it never had one
    start_offset: int  # of its open transaction
    last_record_at: datetime | None  # aware, UTC, by the records' own timestamps, which may lie


@dataclass(frozen=True, slots=True, kw_only=True)
class ProducerState:
    """A producer as a leader remembers it, with or without an open transaction."""

    producer_epoch: int
    last_sequence: int | None  # int32; None: nothing of this epoch was appended yet
    last_record_at: datetime | None  # aware, UTC, by the records' own timestamps, which may lie


@dataclass(frozen=True, slots=True, kw_only=True)
class NewestProducers:
    """The producers that wrote last to a partition, of all that its leader remembers."""

    ids: tuple[int, ...]  # the latest first, by the records' own timestamps
    count: int  # all that the leader remembers


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Producers:
    """The producers that leaders described, for some partitions."""

    observed: Bools  # rows whose leader described its producers in this round
    open: tuple[OpenProducer, ...]  # of those rows, ordered by row and start offset
    # Row -> producer id -> epoch of every producer known to the leader, where all were requested.
    epochs: Mapping[int, Mapping[int, int]] = field(default_factory=dict)
    # Row -> producer id -> the leader's state of those that a rule requested by id; an observed row
    # without an entry: the leader has no state of that producer.
    states: Mapping[int, Mapping[int, ProducerState]] = field(default_factory=dict)
    # Row -> the producers that wrote last, where a rule requested them.
    newest: Mapping[int, NewestProducers] = field(default_factory=dict)
