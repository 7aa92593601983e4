"""Which partition of a snapshot a log line is about; some lines name the topic id alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rules.facts.broker_log import LogEvent, UncleanChange
from rules.facts.identity import TopicId
from rules.facts.partitions import Partitions


@dataclass(frozen=True, slots=True, eq=False)
class LineRows:
    """The rows of one snapshot's partitions, for many lines."""

    partitions: Partitions
    topics: Mapping[TopicId, str]

    @classmethod
    def of(cls, partitions: Partitions) -> LineRows:
        """Take the partitions that lines may be about."""
        both = zip(partitions.topic_ids, partitions.index.topics, strict=True)
        return cls(
            partitions, {topic_id: topic for topic_id, topic in both if topic_id is not None}
        )

    def row(self, event: LogEvent) -> int | None:
        """Return the row that a line is about; None where there is none, or of an older topic."""
        topic, partition = event.topic, event.partition
        if isinstance(event, UncleanChange) and event.topic_id is not None:
            topic = self.topics.get(event.topic_id)
        if topic is None or partition is None:
            return None
        return self.partitions.index.row(topic, partition)
