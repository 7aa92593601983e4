"""Sorts the rejections of a round into episodes; a line read twice, from two sources, counts once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from rules.facts.broker_log import SequenceRejected, partition_of
from rules.facts.episodes import Episode, EpisodeKey, SequenceMemory
from rules.facts.identity import TopicId, TopicPartition, are_different, short_id
from rules.facts.last_observation import microseconds
from rules.facts.rejections import (
    Rejection,
    RejectionKey,
    distinct,
    merge_rejections,
    order,
    rejection_of,
)
from rules.facts.sequence_verdicts import Phase, SequenceClass, SequenceReason, SequenceVerdict
from rules.facts.snapshot import Snapshot

KEPT_FIRST: Final = 8  # distinct rejections of one episode
KEPT_LAST: Final = 16

UNJUDGED: Final = SequenceVerdict(
    class_=SequenceClass.UNDETERMINED, phase=Phase.SUSPECTED, reason=SequenceReason.SCAN_PENDING
)


@dataclass(frozen=True, slots=True)
class GatheredEpisodes:
    """The episodes of a round, with its log lines added."""

    open: dict[EpisodeKey, Episode]
    replaced: tuple[Episode, ...]  # of topics that were recreated: no more lines are added to them


def gather_episodes(snapshot: Snapshot, before: SequenceMemory) -> GatheredEpisodes:
    """Add this round's lines to the open episodes, and open new ones."""
    lines: dict[EpisodeKey, list[SequenceRejected]] = {}
    for event in snapshot.broker_log.events:
        if isinstance(event, SequenceRejected):
            lines.setdefault((partition_of(event), event.producer_id), []).append(event)
    episodes, replaced = dict(before.open), []
    ended = _group_ended(before.ended, lines) if lines else {}
    for key, events in lines.items():
        present = None if key[0] is None else snapshot.partitions.id_of(key[0].topic)
        for topic_id, same in _group_by_topic(events, present):
            episode = episodes.get(key)
            added = _add_lines(snapshot, episode, same, ended.get(key, ()), topic_id)
            if added is None:
                continue
            is_newest = present is None or added.topic_id == present
            if episode is None or added.id == episode.id or is_newest:
                episodes[key] = added
            if episode is not None and added.id != episode.id:
                is_late = episodes[key] is episode  # lines of the older topic
                replaced.append(added if is_late else episode)
    return GatheredEpisodes(episodes, tuple(replaced))


def _group_ended(
    ended: Iterable[Episode], keys: Mapping[EpisodeKey, object]
) -> dict[EpisodeKey, list[Episode]]:
    episodes: dict[EpisodeKey, list[Episode]] = {}
    for episode in ended:
        if episode.key in keys:
            episodes.setdefault(episode.key, []).append(episode)
    return episodes


def _group_by_topic(
    events: Iterable[SequenceRejected], present: TopicId | None
) -> list[tuple[TopicId | None, list[SequenceRejected]]]:
    """Group events by topic id, those of the present topic last.

    Events without an id join the others where these have only one id.
    """
    by_id: dict[TopicId | None, list[SequenceRejected]] = {}
    for event in events:
        by_id.setdefault(event.topic_id, []).append(event)
    if len(by_id) == 1:
        return list(by_id.items())
    ids = [topic_id for topic_id in by_id if topic_id is not None]
    if len(ids) == 1 and None in by_id:
        by_id[ids[0]] += by_id.pop(None)
    return sorted(by_id.items(), key=lambda item: (item[0] == present, item[0] or ""))


def _add_lines(
    snapshot: Snapshot,
    episode: Episode | None,
    events: list[SequenceRejected],
    ended: Iterable[Episode],
    topic_id: TopicId | None,
) -> Episode | None:
    """Add lines to an episode or open one; None where an ended episode already has every line."""
    now = microseconds(snapshot.taken_at)
    rejections = distinct(rejection_of(event, now) for event in events)
    if episode is not None and not are_different(episode.topic_id, topic_id):
        return with_rejections(episode, rejections, now, _leader_epoch(snapshot, episode.name))
    new = [
        rejection
        for rejection in rejections
        if not any(_has_read(before, rejection) for before in ended)
    ]
    return _open_episode(snapshot, events[0], tuple(new), topic_id) if new else None


def _has_read(episode: Episode, rejection: Rejection) -> bool:
    """Whether an episode already has all lines of a rejection."""
    same = next((earlier for earlier in episode.rejections if earlier.key == rejection.key), None)
    return (
        same is not None
        and bool(rejection.times_us)
        and set(rejection.times_us) <= set(same.times_us)
    )


def _open_episode(
    snapshot: Snapshot,
    event: SequenceRejected,
    rejections: tuple[Rejection, ...],
    topic_id: TopicId | None,
) -> Episode:
    name, now = partition_of(event), microseconds(snapshot.taken_at)
    row = row_of(snapshot, name)
    present = None if row is None or name is None else snapshot.partitions.id_of(name.topic)
    return Episode(
        id=short_id(snapshot.cluster_id, topic_id or present, name, event.producer_id, now),
        name=name,
        topic_id=topic_id or present,
        producer_id=event.producer_id,
        rejections=bound_rejections(rejections),
        rejection_count=sum(rejection.count for rejection in rejections),
        first_seen_us=now,
        last_seen_us=now,
        leader_epoch=None if row is None else snapshot.offsets.leader_epoch[row],
        verdict=UNJUDGED,
    )


def row_of(snapshot: Snapshot, name: TopicPartition | None) -> int | None:
    """Return the row of a partition, None where the snapshot has no such partition."""
    return None if name is None else snapshot.partitions.index.row(name.topic, name.partition)


def _leader_epoch(snapshot: Snapshot, name: TopicPartition | None) -> int | None:
    row = row_of(snapshot, name)
    return None if row is None else snapshot.offsets.leader_epoch[row]


def with_rejections(
    episode: Episode, rejections: Iterable[Rejection], now_us: int, leader_epoch: int | None
) -> Episode:
    """Return an episode with the rejections of another round; those that it already has add nothing.

    A rejection that is repeated in another leader epoch has to be proven again.
    """
    by_key: dict[RejectionKey, Rejection] = {
        rejection.key: rejection for rejection in episode.rejections
    }
    added, is_new = 0, False
    for rejection in rejections:
        before = by_key.get(rejection.key)
        if before is None:
            by_key[rejection.key], added, is_new = rejection, added + rejection.count, True
            continue
        both = merge_rejections(before, rejection)
        added += both.count - before.count
        if both is not before and before.proof and before.proof_leader_epoch != leader_epoch:
            both, is_new = replace(rejection, count=both.count, times_us=both.times_us), True
        by_key[rejection.key] = both
    if not added:
        return episode
    return replace(
        episode,
        rejections=bound_rejections(tuple(sorted(by_key.values(), key=order))),
        rejection_count=episode.rejection_count + added,
        last_seen_us=now_us,
        queries=0 if is_new else episode.queries,
    )


def bound_rejections(rejections: tuple[Rejection, ...]) -> tuple[Rejection, ...]:
    """Keep the first and the latest of many distinct rejections, and some others, unproven ones first."""
    most = KEPT_FIRST + KEPT_LAST
    if len(rejections) <= most:
        return rejections
    first, middle, last = rejections[:1], rejections[1:-KEPT_LAST], rejections[-KEPT_LAST:]
    open_ones = [rejection for rejection in middle if rejection.proof is None]
    chosen = (open_ones + [rejection for rejection in middle if rejection.proof is not None])[
        : KEPT_FIRST - 1
    ]
    return (*first, *sorted(chosen, key=order), *last)
