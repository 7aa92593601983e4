"""Finds the offsets of record times: ListOffsets by timestamp, sent to the leaders.

The answer is the first offset whose record has that timestamp or a later one. Timestamps are those of
the producer, and for markers those of the broker.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from collectors.naming import grouped
from collectors.session import Build, Request, Response, Session
from collectors.translate import failure_of, present
from collectors.wire import codec
from collectors.wire.api import CONSUMER, LIST_OFFSETS, READ_UNCOMMITTED
from collectors.wire.blocks import TIMEOUT_FIELD_SINCE
from collectors.wire.failure import Failure
from rules.facts.gap import GapCause
from rules.facts.identity import Broker, TopicPartition
from rules.facts.times import EPOCH

TIMEOUT: Final = timedelta(seconds=5)  # for tiered storage, which is not on the leader's disk


@dataclass(frozen=True, slots=True)
class AtTime:
    """One partition and a time; each partition occurs once in a query."""

    name: TopicPartition
    leader: Broker
    leader_epoch: int
    time: datetime


def offsets_at_times(session: Session, times: Sequence[AtTime]) -> list[int | Failure | None]:
    """Return for each time its first offset, None if no record is that late."""
    by_leader = grouped((at_time.leader, at_time) for at_time in times)
    requests = [Request(leader, LIST_OFFSETS, _body(led)) for leader, led in by_leader.items()]
    outcomes: dict[TopicPartition, int | Failure | None] = {}
    for response, led in zip(session.exchange(requests), by_leader.values(), strict=True):
        outcomes |= _read_offsets(response, led)
    return [outcomes[at_time.name] for at_time in times]


def _read_offsets(
    response: Response, led: Sequence[AtTime]
) -> dict[TopicPartition, int | Failure | None]:
    answer = response.read()
    if isinstance(answer, Failure):
        return dict.fromkeys((at_time.name for at_time in led), answer)
    entries = {
        TopicPartition(topic.name, int(entry.partition_index)): entry
        for topic in answer.topics
        for entry in topic.partitions
    }
    return {
        at_time.name: _offset(response.request.broker, at_time, entries.get(at_time.name))
        for at_time in led
    }


def _offset(leader: Broker, at_time: AtTime, entry: Any) -> int | Failure | None:
    if entry is None:
        return Failure(GapCause.UNREADABLE, f"{leader} left it out of its answer")
    code = int(entry.error_code)
    if code != codec.NO_ERROR:
        return failure_of(code, leader, needs=f"DESCRIBE on Topic {at_time.name.topic}")
    return present(int(entry.offset))


def _body(times: Sequence[AtTime]) -> Build:
    by_topic = grouped(
        (
            at_time.name.topic,
            {
                "partition_index": at_time.name.partition,
                "current_leader_epoch": at_time.leader_epoch,
                "timestamp": (at_time.time - EPOCH) // timedelta(milliseconds=1),
            },
        )
        for at_time in times
    )
    fields = {
        "replica_id": CONSUMER,
        "isolation_level": READ_UNCOMMITTED,
        "topics": [{"name": name, "partitions": parts} for name, parts in by_topic.items()],
    }

    def build(version: int) -> bytes:
        limit = {"timeout": TIMEOUT} if version >= TIMEOUT_FIELD_SINCE else {}
        return codec.encode_request(LIST_OFFSETS, version, {**fields, **limit})

    return build
