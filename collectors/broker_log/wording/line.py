"""One line of a broker's log that may tell of an event, taken apart as far as all kinds agree.

Before the message stand the time, the level, and what Kafka's class names itself by, which often
tells the broker and sometimes the partition.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from collectors.broker_log.wording.fields import (
    TOPIC_PARTITION,
    LineUnreadableError,
    broker_if_any,
    compiled,
    partition_of,
)
from rules.facts.broker_log import Origin
from rules.facts.identity import BrokerId, TopicId, TopicPartition

_BROKER: Final = compiled(
    r"\[(?:ReplicaManager broker=|Broker id=|ReplicaFetcher replicaId=|QuorumController id="
    r"|Controller (?:id=)?|Partition \S{1,300} broker=)(?P<broker>\d{1,20})"
)
# Of a log, by the class that speaks: `Log` to Kafka 3.0, `UnifiedLog` from then on.
_LOG: Final = compiled(rf"\[(?P<class>UnifiedLog|Log) partition={TOPIC_PARTITION},")
_PARTITION: Final = compiled(rf"\[Partition {TOPIC_PARTITION} broker=")


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
    said: str  # the message, and what follows it
    before: FirstLine | None


def broker_of(head: str) -> BrokerId | None:
    """Return the broker, or the controller's node, that a line names as the one that wrote it."""
    found = _BROKER.search(head)
    return None if found is None else broker_if_any(found["broker"])


def partition_before(head: str) -> TopicPartition:
    """Return the partition that a leader's line begins with."""
    found = _PARTITION.search(head)
    if found is None:
        raise LineUnreadableError(head)
    return partition_of(found)


def log_before(head: str) -> tuple[TopicPartition, str] | None:
    """Return the partition that a log's line begins with, and Kafka's class; None: no log speaks."""
    found = _LOG.search(head)
    return None if found is None else (partition_of(found), found["class"])
