"""Reads one partition's log at its leader: its bounds, where leader epochs end, and its batches from an offset on.

Batches are fetched piece by piece, so that memory stays bounded however long the log is. What the leader has
beyond its high watermark is not read: where that stays behind the log end, as below `min.insync.replicas`, it is a
failure. A leader that changes meanwhile ends the reading with a failure.
Needs DESCRIBE and READ on the topic. Source: Metadata, ListOffsets, OffsetForLeaderEpoch, Fetch.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from collectors import cluster
from collectors.log_files.fetched import FetchedBatch, read_fetched
from collectors.offset_plan import TIMEOUT_MS
from collectors.range_fetch import fetch_body
from collectors.session import Limits, Request, Response, Session, body_of
from collectors.state_topic import metadata_body
from collectors.translate import (
    UNKNOWN_TOPIC_OR_PARTITION,
    failure_of,
    left_out,
    present,
    topic_id_of,
)
from collectors.wire import blocks, codec
from collectors.wire.api import (
    CONSUMER,
    FETCH,
    LIST_OFFSETS,
    METADATA,
    OFFSET_FOR_LEADER_EPOCH,
    READ_UNCOMMITTED,
)
from collectors.wire.blocks import HIGH_WATERMARK, LOG_START_OFFSET, OffsetKind, TopicRequest
from collectors.wire.connection import Address
from collectors.wire.failure import Failure
from collectors.wire.pool import Pool
from rules.errors import NotThereError, UnreachableError
from rules.facts.gap import GapCause
from rules.facts.identity import Broker, TopicId, TopicPartition
from rules.log_files.epochs import EpochEnd

FETCH_BYTES: Final = 2 * 1024 * 1024  # of one answer; one batch may be larger
MAX_EPOCHS: Final = 1000  # of which the ends are queried: the latest ones


@dataclass(slots=True, kw_only=True)
class LeaderLog:
    """The log of one partition, as its leader has it."""

    session: Session
    name: TopicPartition
    leader: Broker
    leader_epoch: int
    topic_id: TopicId | None
    log_start: int
    high_watermark: int
    log_end: int = 0  # a moment later
    failure: Failure | None = None  # that ended the reading of batches

    def ends(self, epochs: Sequence[int]) -> dict[int, EpochEnd]:
        """Return where epochs end in this log; those that it does not know are left out.

        Raises:
            UnreachableError: the leader gives no answer for one of them.
        """
        latest = sorted(epochs)[-MAX_EPOCHS:]
        responses = self.session.exchange([self._epoch_request(epoch) for epoch in latest])
        ends = {}
        for epoch, response in zip(latest, responses, strict=True):
            entry = _checked(response, self.name, _epoch_entries)
            if entry.leader_epoch >= 0 and entry.end_offset >= 0:
                ends[epoch] = EpochEnd(int(entry.leader_epoch), int(entry.end_offset))
        return ends

    def batches(self, start: int) -> Iterator[FetchedBatch]:
        """Yield the batches from the one with offset `start` on, up to the high watermark of the beginning.

        Where the leader gives no answer they end early, and `failure` says why.
        """
        position = start
        while position < self.high_watermark:
            records = self._fetch(position)
            if records is None:
                return
            batches = read_fetched(records)
            if not batches:
                why = f"{self.leader} sends no batch from offset {position} on"
                self.failure = Failure(GapCause.UNREADABLE, why)
                return
            yield from (batch for batch in batches if batch.header.last_offset >= start)
            position = batches[-1].header.last_offset + 1
        if self.log_end > self.high_watermark:
            self._check_replicated()

    def _check_replicated(self) -> None:
        """Fail if the high watermark is still behind the log end of the beginning."""
        try:
            replicated = _offset(self, HIGH_WATERMARK)
        except UnreachableError as exc:
            self.failure = Failure(GapCause.BROKER_ERROR, str(exc))
            return
        if replicated < self.log_end:
            why = f"{self.leader} has offsets {replicated} to {self.log_end - 1} that are not replicated, and not read"
            self.failure = Failure(GapCause.UNREADABLE, why)

    def _fetch(self, position: int) -> bytes | None:
        partition = {
            "partition": self.name.partition,
            "current_leader_epoch": self.leader_epoch,
            "fetch_offset": position,
            "partition_max_bytes": FETCH_BYTES,
        }
        build = fetch_body([(self.name.topic, partition)], READ_UNCOMMITTED, max_bytes=FETCH_BYTES)
        [response] = self.session.exchange([Request(self.leader, FETCH, build)])
        try:
            return bytes(_checked(response, self.name, _fetch_entries).records or b"")
        except UnreachableError as exc:
            self.failure = Failure(GapCause.BROKER_ERROR, str(exc))
            return None

    def _epoch_request(self, epoch: int) -> Request:
        partition = {
            "partition": self.name.partition,
            "current_leader_epoch": self.leader_epoch,
            "leader_epoch": epoch,
        }
        topics = [{"topic": self.name.topic, "partitions": [partition]}]
        build = body_of(OFFSET_FOR_LEADER_EPOCH, replica_id=CONSUMER, topics=topics)
        return Request(self.leader, OFFSET_FOR_LEADER_EPOCH, build)


def connect(pool: Pool, limits: Limits, bootstrap: Sequence[Address]) -> Session:
    """Connect to a cluster for as long as its logs are read: only each request has a time limit.

    Raises:
        UnreachableError: no bootstrap address gave a usable answer.
        AuthenticationError: the cluster rejected our credentials.
    """
    session = Session(pool, Limits(request_seconds=limits.request_seconds, round_seconds=math.inf))
    cluster.collect(session, bootstrap)
    return session


def open_leader_log(session: Session, name: TopicPartition) -> LeaderLog:
    """Find the leader of a partition, and the bounds of its log.

    Raises:
        UnreachableError: its leader gives no answer.
        NotThereError: there is no such partition.
    """
    topic, entry = _placement(session, name)
    leader = session.broker(present(int(entry.leader_id)))
    if leader is None:
        raise UnreachableError(f"{name} has no leader that can be reached")
    log = LeaderLog(
        session=session,
        name=name,
        leader=leader,
        leader_epoch=int(entry.leader_epoch),
        topic_id=topic_id_of(topic.topic_id),
        log_start=0,
        high_watermark=0,
    )
    log.log_start = _offset(log, LOG_START_OFFSET)
    log.high_watermark = _offset(log, HIGH_WATERMARK)
    latest = log.ends([log.leader_epoch]).get(log.leader_epoch)
    log.log_end = log.high_watermark if latest is None else latest.end_offset
    return log


def _placement(session: Session, name: TopicPartition) -> tuple[Any, Any]:
    answer = session.request_any(METADATA, metadata_body(name.topic))
    if isinstance(answer, Failure):
        raise UnreachableError(f"where {name} is cannot be found: {answer.why}")
    topic = next((topic for topic in answer.topics if topic.name == name.topic), None)
    if topic is None or int(topic.error_code) == UNKNOWN_TOPIC_OR_PARTITION:
        raise NotThereError(f"the cluster has no topic {name.topic}")
    if int(topic.error_code) != codec.NO_ERROR:
        needs = f"DESCRIBE on Topic {name.topic}"
        raise UnreachableError(failure_of(int(topic.error_code), "the cluster", needs=needs).why)
    for entry in topic.partitions:
        if int(entry.partition_index) == name.partition:
            return topic, entry
    raise NotThereError(f"topic {name.topic} has no partition {name.partition}")


def _offset(log: LeaderLog, kind: OffsetKind) -> int:

    request = TopicRequest(
        log.name.topic,
        np.array([log.name.partition], np.int64),
        np.array([log.leader_epoch], np.int64),
    )

    def build(version: int) -> bytes:
        return blocks.list_offsets_body([request], kind, version=version, timeout_ms=TIMEOUT_MS)

    [response] = log.session.exchange([Request(log.leader, LIST_OFFSETS, build)])
    return int(_checked(response, log.name, _offset_entries).offset)


def _checked(response: Response, name: TopicPartition, entries: Any) -> Any:
    """Return the answer for the partition.

    Raises:
        UnreachableError: there is none.
    """
    answer = response.read_without_error()
    leader = response.request.broker
    if isinstance(answer, Failure):
        raise UnreachableError(answer.why)
    entry = next(iter(entries(answer)), None)
    if entry is None:
        raise UnreachableError(f"{name}: {left_out(leader).why}")
    code = int(entry.error_code)
    if code != codec.NO_ERROR:
        needs = f"DESCRIBE and READ on Topic {name.topic}"
        raise UnreachableError(f"{name}: {failure_of(code, leader, needs=needs).why}")
    return entry


def _epoch_entries(answer: Any) -> Iterable[Any]:
    return (entry for topic in answer.topics for entry in topic.partitions)


_offset_entries = _epoch_entries


def _fetch_entries(answer: Any) -> Iterable[Any]:
    return (entry for topic in answer.responses for entry in topic.partitions)
