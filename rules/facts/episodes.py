"""Episodes: all that is known of one producer's rejected sequences on one partition.

An episode begins with a broker's line and gathers what was found out since: the batches around it,
what the leader remembers of the producer, leader changes. It ends when nothing more is rejected and
nothing more can be found out, and is kept for a day.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TypeAlias

from rules.facts.column import Int64s
from rules.facts.identity import BrokerId, TopicId, TopicPartition
from rules.facts.leaderships import Leaderships, leaderships_under
from rules.facts.producers import ProducerState
from rules.facts.rejections import Rejection, merged, order
from rules.facts.sequence_verdicts import Arrival, Phase, SequenceClass, SequenceVerdict

# Topic and partition, producer id; None: the line does not tell it.
EpisodeKey: TypeAlias = tuple[TopicPartition | None, int | None]


class ChangeKind(StrEnum):
    """What a change of leader left, where it was not clean."""

    LOST = "lost"  # committed records are missing for certain
    UNCLEAN = "unclean"  # the new leader was not in sync
    NOT_KNOWN = "not_known"  # too much happened unseen


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaderChange:
    """A change of leader that was not clean, as far as is known."""

    leader_epoch: int  # the new one
    kind: ChangeKind
    leader: BrokerId | None  # the new one
    # Of the last observation before; None: told by the controller's line alone.
    leader_before: BrokerId | None
    leader_epoch_before: int | None
    last_observation_us: int | None
    # Where the older epoch ended in the new leader's log; None: told by the controller's line alone.
    epoch_end: int | None
    # What is gone, as far as it is known; `lost_to` is exclusive. Of the kind `lost` it was committed;
    # an old leader that comes back tells of the others all that it had.
    lost_from: int | None
    lost_to: int | None
    seen_us: int  # the round that proved it


@dataclass(frozen=True, slots=True, kw_only=True)
class StateObservation:
    """What a leader remembered of the producer at one time."""

    leader_epoch: int
    observed_us: int
    state: ProducerState | None  # None: it knows nothing of it


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportedVerdict:
    """What was last told of an episode; it is told again when more than the last two differs."""

    class_: SequenceClass
    phase: Phase
    lost_from: int | None
    lost_to: int | None
    is_resent: bool
    reported_us: int
    times: int  # how often something was told of it
    arrival: Arrival | None = None  # None: nothing was told of it

    @property
    def is_confirmed(self) -> bool:
        """Whether there was a proof."""
        return self.phase is Phase.CONFIRMED


@dataclass(frozen=True, slots=True, kw_only=True)
class Episode:
    """One producer's rejections on one partition; times in microseconds since 1970-01-01 UTC."""

    id: str  # unique, lasting
    name: TopicPartition | None
    topic_id: TopicId | None
    producer_id: int | None
    rejections: tuple[Rejection, ...]  # distinct ones, the first and the latest
    rejection_count: int  # all, also those of which no numbers are kept
    first_seen_us: int  # by our own clock: the rounds that read the first line and the last one
    last_seen_us: int
    leader_epoch: int | None  # of the partition, when it was first seen
    verdict: SequenceVerdict
    # What was known of the partition's leaders when it was last seen: since which epoch every change
    # is known, and since which one every change was clean for certain.
    seen_epoch: int | None = None
    watched_from: int | None = None
    clean_from: int | None = None
    leading: int = 0  # the place of the rejection that decides
    largest_batch: int | None = None  # records, of whatever producer, near there
    # When the log was last scanned around the rejections, and from there on to its end.
    batches_scanned_us: int | None = None
    end_scanned_us: int | None = None
    first_state: StateObservation | None = None
    last_state: StateObservation | None = None
    newest_producer_epoch: int | None = None  # seen in the log, or remembered by the leader
    changes: tuple[LeaderChange, ...] = ()  # ascending by epoch
    queries: int = 0  # rounds that asked since the last new rejection, and in all
    total_queries: int = 0
    is_querying: bool = False  # this round wants to know more, and the next one will
    is_waiting: bool = False  # it would ask, if not so many others did
    # An answer or a client's retry may still change what is said: it is not known yet.
    is_investigated: bool = False
    reported: ReportedVerdict | None = None
    ended_us: int | None = None

    @property
    def key(self) -> EpisodeKey:
        """Return what the episode is of."""
        return self.name, self.producer_id

    @property
    def shown(self) -> Rejection:
        """Return the rejection of which the verdict is."""
        return self.rejections[min(self.leading, len(self.rejections) - 1)]

    @property
    def is_resent(self) -> bool:
        """Whether the producer wrote under a newer epoch than the one of the rejected batch."""
        return self.is_resent_after(self.shown)

    def is_resent_after(self, rejection: Rejection) -> bool:
        """Whether the producer wrote under a newer epoch than the one of a rejected batch."""
        before, newest = rejection.before, self.newest_producer_epoch
        return before is not None and newest is not None and newest > before.producer_epoch

    @property
    def is_reported(self) -> bool:
        """Whether what is said of it may be told: it is proven, or no answer is awaited."""
        is_open = self.is_investigated or self.is_querying or self.is_waiting
        return self.verdict.is_confirmed or not is_open


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SequenceMemory:
    """All that is remembered of the sequences of one cluster id."""

    open: Mapping[EpisodeKey, Episode] = field(default_factory=dict)
    ended: tuple[Episode, ...] = ()  # ascending by when they ended
    # The latest changes of leader that were not clean, also of partitions without an episode: a
    # rejection comes after the change.
    changes: Mapping[TopicPartition, tuple[LeaderChange, ...]] = field(default_factory=dict)
    leaderships: Leaderships = field(default_factory=Leaderships.none)
    unreported: int = (
        0  # episodes that were dropped, being too many, before anything was told of them
    )
    unreported_us: int | None = None  # the last round that dropped one

    @property
    def episodes(self) -> tuple[Episode, ...]:
        """Return all episodes, those that ended first."""
        return (*self.ended, *self.open.values())


def sequences_under(stored: SequenceMemory, seen: SequenceMemory) -> SequenceMemory:
    """Return the memory of a process that could read an earlier one's only after some rounds."""
    ids = {one.id for one in seen.ended}
    both = {key: (one, seen.open[key]) for key, one in stored.open.items() if key in seen.open}
    replaced = [
        replace(old, ended_us=new.first_seen_us, is_querying=False, is_waiting=False)
        for old, new in both.values()
        if _is_of_another_topic(old, new)
    ]
    joined = {
        key: _joined(old, new)
        for key, (old, new) in both.items()
        if not _is_of_another_topic(old, new)
    }
    return SequenceMemory(
        open={**stored.open, **seen.open, **joined},
        ended=(*(one for one in stored.ended if one.id not in ids), *replaced, *seen.ended),
        changes={
            name: joined_changes(stored.changes.get(name, ()), seen.changes.get(name, ()))
            for name in {**stored.changes, **seen.changes}
        },
        leaderships=leaderships_under(stored.leaderships, seen.leaderships),
        unreported=stored.unreported + seen.unreported,
        unreported_us=_latest(stored.unreported_us, seen.unreported_us),
    )


def _is_of_another_topic(one: Episode, other: Episode) -> bool:
    return None not in (one.topic_id, other.topic_id) and one.topic_id != other.topic_id


def _joined(stored: Episode, seen: Episode) -> Episode:
    """Return the same producer's rejections of two processes; the verdict stays until the next round."""
    rejections = _joined_rejections(stored, seen)
    keys = [rejection.key for rejection in rejections]
    counted = sum(rejection.count for rejection in (*stored.rejections, *seen.rejections))
    twice = counted - sum(rejection.count for rejection in rejections)
    is_same_epoch = stored.seen_epoch is not None and seen.seen_epoch in (None, stored.seen_epoch)
    return replace(
        seen,
        id=stored.id,
        topic_id=stored.topic_id or seen.topic_id,
        rejections=rejections,
        rejection_count=stored.rejection_count + seen.rejection_count - twice,
        first_seen_us=min(stored.first_seen_us, seen.first_seen_us),
        last_seen_us=max(stored.last_seen_us, seen.last_seen_us),
        leader_epoch=stored.leader_epoch,
        seen_epoch=_latest(stored.seen_epoch, seen.seen_epoch),
        watched_from=stored.watched_from if is_same_epoch else seen.watched_from,
        clean_from=stored.clean_from if is_same_epoch else seen.clean_from,
        verdict=stored.verdict,
        leading=keys.index(stored.shown.key),
        largest_batch=_latest(stored.largest_batch, seen.largest_batch),
        batches_scanned_us=_latest(stored.batches_scanned_us, seen.batches_scanned_us),
        first_state=stored.first_state or seen.first_state,
        last_state=seen.last_state or stored.last_state,
        newest_producer_epoch=_latest(stored.newest_producer_epoch, seen.newest_producer_epoch),
        changes=joined_changes(stored.changes, seen.changes),
        queries=0,
        reported=stored.reported or seen.reported,
    )


def _joined_rejections(stored: Episode, seen: Episode) -> tuple[Rejection, ...]:
    """Return the rejections of both; of one that came again the later process knows more."""
    found = {rejection.key: rejection for rejection in stored.rejections}
    for rejection in seen.rejections:
        known = found.get(rejection.key)
        if known is None:
            found[rejection.key] = rejection
            continue
        both = merged(known, rejection)
        if both is not known:
            found[rejection.key] = replace(rejection, count=both.count, times_us=both.times_us)
    return tuple(sorted(found.values(), key=order))


def _latest(one: int | None, other: int | None) -> int | None:
    return max((known for known in (one, other) if known is not None), default=None)


def joined_changes(
    known: tuple[LeaderChange, ...], newer: tuple[LeaderChange, ...]
) -> tuple[LeaderChange, ...]:
    """Return changes of one partition, one per epoch; a proof says more than a line."""
    by_epoch = {one.leader_epoch: one for one in known}
    for one in newer:
        before = by_epoch.get(one.leader_epoch)
        by_epoch[one.leader_epoch] = one if before is None else _sharper(before, one)
    return tuple(by_epoch[epoch] for epoch in sorted(by_epoch))


def _sharper(one: LeaderChange, other: LeaderChange) -> LeaderChange:
    """Return one change with the more exact of what is known of it."""
    kinds = tuple(ChangeKind)
    proven, said = (one, other) if one.epoch_end is not None else (other, one)
    ends = [change.lost_to for change in (one, other) if change.lost_to is not None]
    starts = [change.lost_from for change in (one, other) if change.lost_from is not None]
    return replace(
        proven,
        kind=min(proven.kind, said.kind, key=kinds.index),
        lost_from=min(starts, default=None),
        lost_to=max(ends, default=None),
    )


# ------------------------------------------------------------------ the clock was set
def sequences_with_times(
    memory: SequenceMemory, change: Callable[[int], int], change_all: Callable[[Int64s], Int64s]
) -> SequenceMemory:
    """Return the memory with its times changed; those of brokers' clocks nobody has set."""
    return replace(
        memory,
        open={key: _moved(one, change) for key, one in memory.open.items()},
        ended=tuple(_moved(one, change) for one in memory.ended),
        changes={
            name: tuple(_moved_change(one, change) for one in changes)
            for name, changes in memory.changes.items()
        },
        leaderships=memory.leaderships.with_times(change_all),
        unreported_us=None if memory.unreported_us is None else change(memory.unreported_us),
    )


def latest_sequence_time(memory: SequenceMemory) -> int:
    """Return the latest time of our own clock that is remembered, 0 where nothing is."""
    times = [one.last_seen_us for one in memory.open.values()]
    times += [one.ended_us or 0 for one in memory.ended]
    times += [change.seen_us for changes in memory.changes.values() for change in changes]
    return max(times, default=0)


def _moved(episode: Episode, change: Callable[[int], int]) -> Episode:
    observed, told = episode.batches_scanned_us, episode.reported
    scanned_us = episode.end_scanned_us
    return replace(
        episode,
        rejections=tuple(
            replace(rejection, seen_us=change(rejection.seen_us))
            for rejection in episode.rejections
        ),
        first_seen_us=change(episode.first_seen_us),
        last_seen_us=change(episode.last_seen_us),
        batches_scanned_us=None if observed is None else change(observed),
        end_scanned_us=None if scanned_us is None else change(scanned_us),
        first_state=_move_observation(episode.first_state, change),
        last_state=_move_observation(episode.last_state, change),
        changes=tuple(_moved_change(one, change) for one in episode.changes),
        reported=None if told is None else replace(told, reported_us=change(told.reported_us)),
        ended_us=None if episode.ended_us is None else change(episode.ended_us),
    )


def _moved_change(one: LeaderChange, change: Callable[[int], int]) -> LeaderChange:
    observed = one.last_observation_us
    return replace(
        one,
        seen_us=change(one.seen_us),
        last_observation_us=None if observed is None else change(observed),
    )


def _move_observation(
    observation: StateObservation | None, change: Callable[[int], int]
) -> StateObservation | None:
    return (
        None
        if observation is None
        else replace(observation, observed_us=change(observation.observed_us))
    )
