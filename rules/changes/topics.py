"""Which topics were created, deleted or created again, and which got partitions, between two lists of topics.

A topic that a list lacks is not deleted: brokers leave out what we may not see, silently. It counts as deleted
once every broker that was asked for it by its name has no such topic. Likewise a topic that is listed for the
first time may be an old one that a permission now shows, unless all its partitions are in leader epoch 0.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np

from rules.changes.grouping import Change
from rules.facts.change_events import ChangedSubject, ChangeEventKind
from rules.facts.change_memory import MissingTopic
from rules.facts.column import Int64s
from rules.facts.identity import TopicId, are_different
from rules.facts.partitions import Partitions
from rules.facts.snapshot import Absence


class ListedTopics(NamedTuple):
    """A list of topics, and when a round read it."""

    partitions: Partitions
    is_complete: bool
    read_us: int


class _Topic(NamedTuple):
    topic_id: TopicId | None
    partitions: int
    since_us: int  # the last round that listed it


def is_behind(
    new: Partitions, old: Partitions, rows: Int64s, former_ids: Mapping[str, TopicId]
) -> bool:
    """Return whether a list is older than the one before, as of a broker whose metadata is behind.

    `rows` are those of `old` by rows of `new`. Neither leader epochs nor numbers of partitions decrease while
    a topic exists, and the id of a topic that was created again never returns.
    """
    before = old.leader_epoch.take(rows)
    both = new.leader_epoch.valid & before.valid
    if np.any(new.leader_epoch.values[both] < before.values[both]):
        return True
    if any(topic_id == new.id_of(topic) for topic, topic_id in former_ids.items()):
        return True
    counts = dict(zip(old.index.topics, np.diff(old.index.starts).tolist(), strict=True))
    for topic, topic_id, count in _topics(new):
        if count < counts.get(topic, 0) and topic_id is not None and topic_id == old.id_of(topic):
            return True
    return False


def compare_topics(
    new: ListedTopics, old: ListedTopics, missing: Mapping[str, MissingTopic]
) -> Iterator[Change]:
    """Yield what the topics of a list show; those that it lacks are not judged here."""
    former = {
        topic: _Topic(topic_id, count, old.read_us)
        for topic, topic_id, count in _topics(old.partitions)
    }
    for topic, entry in missing.items():
        former.setdefault(topic, _Topic(entry.topic_id, entry.partitions, entry.listed_us))
    for position, (topic, topic_id, count) in enumerate(_topics(new.partitions)):
        before = former.get(topic)
        if before is None:
            yield _listed_first(new.partitions, position, old)
        elif are_different(topic_id, before.topic_id):
            yield _recreated(topic, topic_id, before)
        elif count > before.partitions:
            yield Change(
                kind=ChangeEventKind.PARTITIONS_ADDED,
                subject=ChangedSubject(
                    topic=topic, before=str(before.partitions), after=str(count)
                ),
                since_us=before.since_us,
            )
        elif count < before.partitions:  # of a release without topic ids
            yield _recreated(topic, topic_id, before)


def advance_missing(
    new: ListedTopics,
    old: ListedTopics,
    missing: Mapping[str, MissingTopic],
    absences: Mapping[str, Absence],
    forgotten_before_us: int,
) -> tuple[dict[str, MissingTopic], list[Change]]:
    """Return the topics that are missing now, and which of those before are deleted or hidden."""
    listed = new.partitions.index.position_of_topic
    left = {
        topic: MissingTopic(topic_id=topic_id, partitions=count, listed_us=old.read_us)
        for topic, topic_id, count in _topics(old.partitions)
        if topic not in listed
    }
    left |= {topic: entry for topic, entry in missing.items() if topic not in listed}
    changes: list[Change] = []
    for topic, entry in list(left.items()):
        absence = absences.get(topic)
        if absence is Absence.DELETED or entry.listed_us < forgotten_before_us:
            del left[topic]
        if absence is Absence.DELETED:
            changes.append(_deleted(topic, entry))
        elif absence is Absence.HIDDEN and not entry.is_hidden:
            left[topic] = MissingTopic(
                topic_id=entry.topic_id,
                partitions=entry.partitions,
                listed_us=entry.listed_us,
                is_hidden=True,
            )
            changes.append(_hidden(topic, entry))
    return left, changes


def _topics(partitions: Partitions) -> Iterator[tuple[str, TopicId | None, int]]:
    counts = np.diff(partitions.index.starts).tolist()
    return zip(partitions.index.topics, partitions.topic_ids, counts, strict=True)


def _listed_first(partitions: Partitions, position: int, old: ListedTopics) -> Change:
    starts = partitions.index.starts
    rows = slice(int(starts[position]), int(starts[position + 1]))
    epochs = partitions.leader_epoch
    is_new = bool(np.all(epochs.valid[rows] & (epochs.values[rows] == 0)))
    kind = ChangeEventKind.TOPIC_CREATED
    if not (is_new and old.is_complete):
        kind = ChangeEventKind.TOPIC_APPEARED
    count = rows.stop - rows.start
    return Change(
        kind=kind,
        subject=ChangedSubject(topic=partitions.index.topics[position], after=_size(count)),
        since_us=old.read_us,
    )


def _recreated(topic: str, topic_id: TopicId | None, before: _Topic) -> Change:
    return Change(
        kind=ChangeEventKind.TOPIC_RECREATED,
        subject=ChangedSubject(topic=topic, before=before.topic_id, after=topic_id),
        since_us=before.since_us,
    )


def _deleted(topic: str, entry: MissingTopic) -> Change:
    return Change(
        kind=ChangeEventKind.TOPIC_DELETED,
        subject=ChangedSubject(topic=topic, before=_size(entry.partitions)),
        since_us=entry.listed_us,
    )


def _hidden(topic: str, entry: MissingTopic) -> Change:
    return Change(
        kind=ChangeEventKind.TOPIC_HIDDEN,
        subject=ChangedSubject(topic=topic, before=_size(entry.partitions)),
        since_us=entry.listed_us,
    )


def _size(partitions: int) -> str:
    return f"{partitions:,} partition{'s' * (partitions != 1)}"
