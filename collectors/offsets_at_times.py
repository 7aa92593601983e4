"""Finds the offsets of record times: ListOffsets by timestamp, sent to the leaders.

The answer is the first offset whose record has that timestamp or a later one. Timestamps are those of
the producer, and for markers those of the broker.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from collectors.session import Ask, Reply, Session
from collectors.translate import failure_of, present
from collectors.wire import codec
from collectors.wire.api import CONSUMER, LIST_OFFSETS, READ_UNCOMMITTED
from collectors.wire.blocks import TIMEOUT_FIELD_SINCE
from collectors.wire.failure import Failure
from rules.facts.gap import GapCause
from rules.facts.identity import Broker, TopicPartition

TIMEOUT: Final = timedelta(seconds=5)  # for tiered storage, which is not on the leader's disk
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class AtTime:
    """One partition and a time; each partition occurs once in a query."""

    name: TopicPartition
    leader: Broker
    leader_epoch: int
    time: datetime


def offsets_at_times(session: Session, requests: Sequence[AtTime]) -> list[int | Failure | None]:
    """Return for each request the first offset of its time, None if no record is that late."""
    by_leader: dict[int, list[AtTime]] = {}
    for at_time in requests:
        by_leader.setdefault(at_time.leader.broker_id, []).append(at_time)
    asks = [Ask(led[0].leader, LIST_OFFSETS, _Request(led)) for led in by_leader.values()]
    outcomes: dict[TopicPartition, int | Failure | None] = {}
    for reply, led in zip(session.exchange(asks), by_leader.values(), strict=True):
        outcomes |= _read_offsets(reply, led)
    return [outcomes[at_time.name] for at_time in requests]


def _read_offsets(
    reply: Reply, led: Sequence[AtTime]
) -> dict[TopicPartition, int | Failure | None]:
    answer = reply.read()
    if isinstance(answer, Failure):
        return dict.fromkeys((at_time.name for at_time in led), answer)
    entries = {
        TopicPartition(topic.name, int(entry.partition_index)): entry
        for topic in answer.topics
        for entry in topic.partitions
    }
    return {
        at_time.name: _offset(reply.ask.broker, at_time, entries.get(at_time.name))
        for at_time in led
    }


def _offset(leader: Broker, at_time: AtTime, entry: Any) -> int | Failure | None:
    if entry is None:
        return Failure(GapCause.UNREADABLE, f"{leader} left it out of its answer")
    code = int(entry.error_code)
    if code != codec.NO_ERROR:
        return failure_of(code, leader, needs=f"DESCRIBE on Topic {at_time.name.topic}")
    return present(int(entry.offset))


@dataclass(frozen=True, slots=True)
class _Request:
    """Builds the ListOffsets for some partitions of one leader."""

    requested: Sequence[AtTime]

    def __call__(self, version: int) -> bytes:
        partition = codec.message(LIST_OFFSETS, version, "ListOffsetsPartition")
        topic = codec.message(LIST_OFFSETS, version, "ListOffsetsTopic")
        by_topic: dict[str, list[Any]] = {}
        for at_time in self.requested:
            entry = partition(
                partition_index=at_time.name.partition,
                current_leader_epoch=at_time.leader_epoch,
                timestamp=(at_time.time - _EPOCH) // timedelta(milliseconds=1),
            )
            by_topic.setdefault(at_time.name.topic, []).append(entry)
        request = codec.message(LIST_OFFSETS, version, "ListOffsetsRequest")
        limit = {"timeout": TIMEOUT} if version >= TIMEOUT_FIELD_SINCE else {}
        return codec.encode(
            request(
                replica_id=CONSUMER,
                isolation_level=READ_UNCOMMITTED,
                topics=tuple(topic(name=t, partitions=tuple(p)) for t, p in by_topic.items()),
                **limit,
            )
        )
