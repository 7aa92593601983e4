"""Sorts the rejections of a round into episodes; a line that came before, by another way, is known."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import Final

from rules.facts.broker_log import SequenceRejected, partition_of
from rules.facts.episodes import Episode, EpisodeKey, SequenceMemory
from rules.facts.identity import TopicId, TopicPartition
from rules.facts.last_observation import microseconds
from rules.facts.rejections import Rejection, RejectionKey, distinct, merged, order, rejection_of
from rules.facts.sequence_verdicts import Phase, SequenceClass, SequenceReason, SequenceVerdict
from rules.facts.snapshot import Snapshot

KEPT_FIRST: Final = 8  # distinct rejections of one episode
KEPT_LAST: Final = 16
ID_BYTES: Final = 6

UNJUDGED: Final = SequenceVerdict(
    class_=SequenceClass.UNDETERMINED, phase=Phase.SUSPECTED, reason=SequenceReason.LOOKING
)


@dataclass(frozen=True, slots=True)
class Gathered:
    """The episodes of a round, its lines sorted in."""

    open: dict[EpisodeKey, Episode]
    replaced: tuple[Episode, ...]  # of topics that were created again: nothing more comes to them


def gathered(snapshot: Snapshot, before: SequenceMemory) -> Gathered:
    """Return the open episodes with what this round's lines add to them, and new ones."""
    lines: dict[EpisodeKey, list[SequenceRejected]] = {}
    for event in snapshot.broker_log.events:
        if isinstance(event, SequenceRejected):
            lines.setdefault((partition_of(event), event.producer_id), []).append(event)
    episodes, replaced = dict(before.open), []
    ended = _ended(before.ended, lines) if lines else {}
    for key, events in lines.items():
        present = None if key[0] is None else snapshot.partitions.id_of(key[0].topic)
        for topic_id, same in _by_topic(events, present):
            known = episodes.get(key)
            added = _added(snapshot, known, same, ended.get(key, ()), topic_id)
            if added is None:
                continue
            is_newest = present is None or added.topic_id == present
            if known is None or added.id == known.id or is_newest:
                episodes[key] = added
            if known is not None and added.id != known.id:
                is_late = episodes[key] is known  # lines of the older topic
                replaced.append(added if is_late else known)
    return Gathered(episodes, tuple(replaced))


def _ended(
    ended: Iterable[Episode], wanted: Mapping[EpisodeKey, object]
) -> dict[EpisodeKey, list[Episode]]:
    episodes: dict[EpisodeKey, list[Episode]] = {}
    for one in ended:
        if one.key in wanted:
            episodes.setdefault(one.key, []).append(one)
    return episodes


def _by_topic(
    events: Iterable[SequenceRejected], present: TopicId | None
) -> list[tuple[TopicId | None, list[SequenceRejected]]]:
    """Keep apart what is of an older topic of the same name, the present one last.

    A line may not tell the id.
    """
    rejecteds: dict[TopicId | None, list[SequenceRejected]] = {}
    for event in events:
        rejecteds.setdefault(event.topic_id, []).append(event)
    if len(rejecteds) == 1:
        return list(rejecteds.items())
    ids = [topic_id for topic_id in rejecteds if topic_id is not None]
    if len(ids) == 1 and None in rejecteds:
        rejecteds[ids[0]] += rejecteds.pop(None)
    return sorted(rejecteds.items(), key=lambda one: (one[0] == present, one[0] or ""))


def _added(
    snapshot: Snapshot,
    episode: Episode | None,
    events: list[SequenceRejected],
    ended: Iterable[Episode],
    topic_id: TopicId | None,
) -> Episode | None:
    """Return an episode with more rejections; None where every line is known from one that ended."""
    now = microseconds(snapshot.taken_at)
    rejections = distinct(rejection_of(event, now) for event in events)
    if episode is not None and not _is_another(episode.topic_id, topic_id):
        return with_rejections(episode, rejections, now, _leader_epoch(snapshot, episode.name))
    new = [
        rejection
        for rejection in rejections
        if not any(_knows(before, rejection) for before in ended)
    ]
    return _opened(snapshot, events[0], tuple(new), topic_id) if new else None


def _is_another(known: TopicId | None, told: TopicId | None) -> bool:
    return None not in (known, told) and known != told


def _knows(episode: Episode, rejection: Rejection) -> bool:
    """Whether all lines of a rejection were read before."""
    same = next((one for one in episode.rejections if one.key == rejection.key), None)
    return (
        same is not None
        and bool(rejection.times_us)
        and set(rejection.times_us) <= set(same.times_us)
    )


def _opened(
    snapshot: Snapshot,
    event: SequenceRejected,
    rejections: tuple[Rejection, ...],
    topic_id: TopicId | None,
) -> Episode:
    name, now = partition_of(event), microseconds(snapshot.taken_at)
    row = row_of(snapshot, name)
    known = None if row is None or name is None else snapshot.partitions.id_of(name.topic)
    told = f"{snapshot.cluster_id}|{topic_id or known}|{name}|{event.producer_id}|{now}"
    return Episode(
        id=blake2b(told.encode(), digest_size=ID_BYTES).hexdigest(),
        name=name,
        topic_id=topic_id or known,
        producer_id=event.producer_id,
        rejections=bounded(rejections),
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
    """Return an episode with rejections of another round; those that it knows add nothing.

    What was proven in another leader epoch has to be proven again of what is rejected once more.
    """
    known: dict[RejectionKey, Rejection] = {one.key: one for one in episode.rejections}
    added, is_new = 0, False
    for rejection in rejections:
        before = known.get(rejection.key)
        if before is None:
            known[rejection.key], added, is_new = rejection, added + rejection.count, True
            continue
        both = merged(before, rejection)
        added += both.count - before.count
        if both is not before and before.proof and before.proof_leader_epoch != leader_epoch:
            both, is_new = replace(rejection, count=both.count, times_us=both.times_us), True
        known[rejection.key] = both
    if not added:
        return episode
    return replace(
        episode,
        rejections=bounded(tuple(sorted(known.values(), key=order))),
        rejection_count=episode.rejection_count + added,
        last_seen_us=now_us,
        queries=0 if is_new else episode.queries,
    )


def bounded(rejections: tuple[Rejection, ...]) -> tuple[Rejection, ...]:
    """Keep the first and the latest of many distinct rejections; of the others those not proven."""
    most = KEPT_FIRST + KEPT_LAST
    if len(rejections) <= most:
        return rejections
    first, middle, last = rejections[:1], rejections[1:-KEPT_LAST], rejections[-KEPT_LAST:]
    open_ones = [one for one in middle if one.proof is None]
    chosen = (open_ones + [one for one in middle if one.proof is not None])[: KEPT_FIRST - 1]
    return (*first, *sorted(chosen, key=order), *last)
