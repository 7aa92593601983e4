"""Which topics were created while Tidemark was running: whatever happened to them happened since.

A topic that is observed for the first time is not necessarily new: after a start, or after a new
permission, every topic is observed for the first time.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Final, TypeAlias

import numpy as np

from rules.facts.identity import TopicId
from rules.facts.last_observation import microseconds
from rules.facts.partitions import Partitions
from rules.facts.times import MICROSECOND
from rules.facts.unseen_elections import NewTopic
from rules.view import View

NEW_FOR: Final = timedelta(hours=1)  # a line of a broker may be read so late
MAX_NEW: Final = 1000  # more at once were not created, but became visible

Counts: TypeAlias = Mapping[tuple[str, TopicId | None], int]  # partitions of each topic


def list_new_topics(view: View) -> tuple[NewTopic, ...]:
    """Return the topics of the last hour, with those that the round before did not list."""
    recent = view.memory.losses.new_topics
    if recent:
        oldest = microseconds(view.now) - NEW_FOR // MICROSECOND
        recent = tuple(topic for topic in recent if topic.listed_us > oldest)
    if view.before is None or is_same_list(view.before.partitions, view.snapshot.partitions):
        return recent
    created = _list_created(view, _counts(view.before.partitions))
    return (*recent, *created)[-MAX_NEW:] if len(created) <= MAX_NEW else recent


def is_same_list(before: Partitions, now: Partitions) -> bool:
    """Whether the same partitions of the same topics are listed, in the same order."""
    if before is now:
        return True
    is_same = before.index.topics == now.index.topics
    is_same &= tuple(before.topic_ids) == tuple(now.topic_ids)
    return is_same and np.array_equal(before.index.starts, now.index.starts)


def _list_created(view: View, before: Counts) -> tuple[NewTopic, ...]:
    """Return the topics that this round lists and the previous one did not; without an id they may be old."""
    names = {name for name, topic_id in before if topic_id is None}
    return tuple(
        NewTopic(
            topic=topic,
            topic_id=topic_id,
            first_partition=before.get((topic, topic_id), 0),
            listed_us=microseconds(view.now),
        )
        for (topic, topic_id), count in _counts(view.snapshot.partitions).items()
        if count > before.get((topic, topic_id), 0) and topic not in names
    )


def _counts(partitions: Partitions) -> Counts:
    counts = np.diff(partitions.index.starts).tolist()
    return dict(
        zip(zip(partitions.index.topics, partitions.topic_ids, strict=True), counts, strict=True)
    )
