"""Plans which broker is queried for which offsets, and holds the encoded requests.

A plan is built from placement and kept for as long as placement stays the same: encoding is the
largest cost in a round of tens of thousands of partitions.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from collectors.offset_answers import AnswerReader
from collectors.wire import blocks
from collectors.wire.blocks import LOG_END_OFFSET, OffsetKind, TopicRequest
from rules.facts.column import Bools, Column, Int64s
from rules.facts.identity import Broker
from rules.facts.matching import matching_rows
from rules.facts.partitions import Partitions

UNFENCED: Final = -1  # a request with this leader epoch is not rejected for its epoch
TIMEOUT_MS: Final = 5000  # how long a broker may wait for remote storage, ListOffsets v10


@dataclass(slots=True, eq=False)
class BrokerPlan:
    """The requests to one broker: the partitions it leads, and the replicas it hosts."""

    broker: Broker
    led_rows: Int64s
    led: tuple[TopicRequest, ...]
    hosted: tuple[
        TopicRequest, ...
    ]  # led partitions and observed followers, for the log end offset
    replica_of_row: Int64s  # row -> position in `Partitions.replicas.values`, -1 for none
    _bodies: dict[tuple[str, int], bytes] = field(default_factory=dict)
    _readers: dict[str, AnswerReader] = field(default_factory=dict)

    def has_work(self, kind: OffsetKind) -> bool:
        """Whether there is a request for this kind of offset to this broker."""
        return bool(self.hosted if kind is LOG_END_OFFSET else self.led)

    def reader(self, kind: OffsetKind) -> AnswerReader:
        """Return the reader of the answers to the request for this kind of offset."""
        return self._readers.setdefault(kind.name, AnswerReader())

    def body(self, kind: OffsetKind) -> Callable[[int], bytes]:
        """Return the builder of the request body; each version is encoded once."""

        def build(version: int) -> bytes:
            encoded = self._bodies.get((kind.name, version))
            if encoded is None:
                topics = self.hosted if kind is LOG_END_OFFSET else self.led
                encoded = blocks.list_offsets_body(
                    topics, kind, version=version, timeout_ms=TIMEOUT_MS
                )
                self._bodies[kind.name, version] = encoded
            return encoded

        return build


def rows_to_follow(
    partitions: Partitions, stuck: Bools | None = None, *, all_replicas: bool
) -> Bools:
    """Mark the rows whose followers are queried for their log end: all, or those at risk.

    At risk is a partition whose ISR is smaller than its replica set, or that is `stuck`: between
    the last two observations its high watermark did not move while its log end was ahead of it.
    """
    if all_replicas:
        return np.ones(len(partitions), np.bool_)
    has_followers = partitions.replicas.lengths > 1
    shrunk: Bools = partitions.isr.valid & (partitions.isr.lengths < partitions.replicas.lengths)
    return (shrunk if stuck is None else shrunk | stuck) & has_followers


def stood_still(before: Column, high_watermark: Column, log_end_offset: Column) -> Bools:
    """Mark the rows whose high watermark is where it was `before`, and behind the log end."""
    ahead = log_end_offset - high_watermark
    unmoved = before.valid & (before.values == high_watermark.values)
    stuck: Bools = unmoved & ahead.valid & (ahead.values > 0)
    return stuck


def rows_before(placed: Partitions, older: Partitions) -> Int64s:
    """Return for each row of `placed` its row in `older`, -1 if none; topics are matched by name only."""
    if placed is older:
        return np.arange(len(placed), dtype=np.int64)
    return matching_rows(placed, older, needs_id=False)


def make_plan(broker: Broker, partitions: Partitions, follow: Bools) -> BrokerPlan:
    """Plan the requests for one broker; `follow` marks the rows whose followers are observed."""
    leader, replicas = partitions.leader, partitions.replicas
    leads = leader.valid & (leader.values == broker.broker_id)
    copies = np.flatnonzero(replicas.values == broker.broker_id)
    replica_of_row = np.full(len(partitions), -1, np.int64)
    replica_of_row[replicas.row_of_value[copies]] = copies
    hosts = leads | (follow & (replica_of_row >= 0))
    led_rows = np.flatnonzero(leads).astype(np.int64)
    # A follower may know an older or a newer epoch than metadata, and has to answer all the same:
    # only leaders are fenced.
    epoch = partitions.leader_epoch
    fence = np.where(leads & epoch.valid, epoch.values, UNFENCED)
    return BrokerPlan(
        broker=broker,
        led_rows=led_rows,
        led=_by_topic(partitions, led_rows, fence),
        hosted=_by_topic(partitions, np.flatnonzero(hosts).astype(np.int64), fence),
        replica_of_row=replica_of_row,
    )


def _by_topic(partitions: Partitions, rows: Int64s, fence: Int64s) -> tuple[TopicRequest, ...]:
    index = partitions.index
    topic_of = index.topic_of_row[rows]
    chunks = np.split(rows, np.flatnonzero(np.diff(topic_of)) + 1) if len(rows) else []
    positions = [int(position) for position in dict.fromkeys(topic_of.tolist())]
    return tuple(
        TopicRequest(index.topics[position], chunk - index.starts[position], fence[chunk])
        for position, chunk in zip(positions, chunks, strict=True)
    )
