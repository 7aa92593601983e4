"""What controllers' logs are about, and how far they were read: what is not in them did not happen.

An active KRaft controller logs each unclean election when it decides it. Where its log was read beyond
the last observation before a change and contains none, the election was clean, provided that no other
controller can have decided it: none became active since the round before that observation. A ZooKeeper
controller logs no elections, and is not reported as the active one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from rules.facts.broker_log import LogEvent, UncleanChange
from rules.facts.column import Bools
from rules.facts.identity import BrokerId, TopicId
from rules.facts.last_observation import LastObservations, microseconds
from rules.facts.partitions import Partitions
from rules.facts.times import CLOCKS_AGREE_US
from rules.view import View


def controllers_read(view: View) -> Mapping[BrokerId, int]:
    """Return the time of each controller's last line that was read, by its own clock."""
    latest = dict(view.losses_before.controllers)
    for source in view.snapshot.broker_log.sources:
        for node, at in source.controllers:
            latest[node] = max(latest.get(node, 0), microseconds(at))
    return latest


def is_read_since(view: View, before: LastObservations) -> Bools:
    """Mark the observations since which one controller was active, and wrote a line that was read."""
    is_written = before.observed_at_us.values < _wrote_us(view) + CLOCKS_AGREE_US
    return is_written & _is_of_one_term(view, before)


def _is_of_one_term(view: View, before: LastObservations) -> Bools:
    """Mark the observations that are later than a round in which the present controller was active.

    A round queries the quorum last: in the round of an observation another controller may have decided
    elections before. An observation between two rounds counts as one of the round that read its ISR.
    """
    quorum, terms = view.snapshot.quorum, view.memory.brokers.terms
    if not terms or quorum.leader_epoch != terms[-1].leader_epoch:
        return np.zeros(len(before.observed_at_us), np.bool_)
    read_us = before.context.isr_reported_us
    is_later = read_us.valid & (read_us.values > terms[-1].seen_us)
    return is_later & (before.observed_at_us.values > terms[-1].seen_us)


def _wrote_us(view: View) -> int:
    """Return the time of the active controller's last line that was read; 0 if a line may be missing.

    Lines of earlier rounds count only while every source is read: such a round read the log for a short
    time after it had observed the cluster.
    """
    active, log = view.snapshot.quorum.leader, view.snapshot.broker_log
    if active is None or log.is_behind or not log.is_read:
        return 0
    whole = [
        log_source
        for log_source in log.sources
        if not (log_source.error or log_source.unparsed or log_source.lost_bytes)
    ]
    if len(whole) == len(log.sources):
        return controllers_read(view).get(active, 0)
    times = (at for source in whole for node, at in source.controllers if node == active)
    return max(map(microseconds, times), default=0)


@dataclass(frozen=True, slots=True, eq=False)
class LineRows:
    """The rows of one snapshot's partitions, for many lines: some name the topic id alone."""

    partitions: Partitions
    topics: Mapping[TopicId, str]

    @classmethod
    def of(cls, partitions: Partitions) -> LineRows:
        """Take the partitions that lines may be about."""
        both = zip(partitions.topic_ids, partitions.index.topics, strict=True)
        topics = {topic_id: topic for topic_id, topic in both if topic_id is not None}
        return cls(partitions, topics)

    def row(self, event: LogEvent) -> int | None:
        """Return the row that a line is about; None where there is none, or of an older topic."""
        topic, partition = event.topic, event.partition
        if isinstance(event, UncleanChange) and event.topic_id is not None:
            topic = self.topics.get(event.topic_id)
        if topic is None or partition is None:
            return None
        return self.partitions.index.row(topic, partition)
