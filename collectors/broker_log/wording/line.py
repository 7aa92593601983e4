"""One line of a broker's log that may be an event, split as far as all kinds agree.

Before the message are the time, the level, and the prefix of Kafka's class, which often names the
broker and sometimes the partition.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Final, TypedDict

from collectors.broker_log.wording.fields import (
    TOPIC_PARTITION,
    LineUnreadableError,
    broker_if_any,
    compile_pattern,
    partition_of,
)
from rules.facts.broker_log import Origin
from rules.facts.identity import BrokerId, TopicId, TopicPartition

_BROKER: Final = compile_pattern(
    r"\[(?:ReplicaManager broker=|Broker id=|ReplicaFetcher replicaId=|QuorumController id="
    r"|Controller (?:id=)?|Partition \S{1,300} broker=)(?P<broker>\d{1,20})"
)
# Of a log, by the class that speaks: `Log` to Kafka 3.0, `UnifiedLog` from then on.
_LOG: Final = compile_pattern(rf"\[(?P<class>UnifiedLog|Log) partition={TOPIC_PARTITION},")
_PARTITION: Final = compile_pattern(rf"\[Partition {TOPIC_PARTITION} broker=")


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstLine:
    """The line before an exception: it alone has the time, and sometimes alone the partition."""

    at: datetime | None
    broker_id: BrokerId | None
    name: TopicPartition | None
    topic_id: TopicId | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A line whose message may be one that is searched for."""

    origin: Origin
    head: str  # what is before the message
    message: str  # and what follows it
    before: FirstLine | None


class Place(TypedDict):
    """The fields that every event of a partition begins with."""

    origin: Origin
    topic: str
    partition: int


def place_of(line: Line, name: TopicPartition) -> Place:
    """Return where an event of a partition was logged, and of which one."""
    return Place(origin=line.origin, topic=name.topic, partition=name.partition)


def broker_of(head: str) -> BrokerId | None:
    """Return the broker, or the controller's node, that a line names as the one that wrote it."""
    match = _BROKER.search(head)
    return None if match is None else broker_if_any(match["broker"])


def partition_before(head: str) -> TopicPartition:
    """Return the partition that a leader's line begins with."""
    match = _PARTITION.search(head)
    if match is None:
        raise LineUnreadableError(head)
    return partition_of(match)


def log_before(head: str) -> tuple[TopicPartition, str] | tuple[None, None]:
    """Return the partition that a log's line begins with, and Kafka's class; None: no log speaks."""
    match = _LOG.search(head)
    return (None, None) if match is None else (partition_of(match), match["class"])
