"""Episodes: all evidence about one producer's rejected sequences on one partition.

An episode begins with a broker's log line and gathers evidence: the batches around it, the leader's
state of the producer, leader changes. It ends when nothing more is rejected and no further evidence is
expected, and is kept for a day.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TypeAlias

from rules.facts.column import Int64s
from rules.facts.episode_record_errors import NOT_READ, EpisodeRecordErrors, merge_record_errors
from rules.facts.episode_transactions import (
    NOTHING_KNOWN,
    EpisodeTransaction,
    TransactionOutcome,
)
from rules.facts.identity import TopicId, TopicPartition, are_different
from rules.facts.leaderships import Leaderships, merge_leaderships
from rules.facts.producers import ProducerState
from rules.facts.rejections import Rejection, merge_rejections, order
from rules.facts.sequence_verdicts import Arrival, Phase, SequenceClass, SequenceVerdict
from rules.facts.times import change_if_set

# Topic and partition, producer id; None: not in the line.
EpisodeKey: TypeAlias = tuple[TopicPartition | None, int | None]


class ChangeKind(StrEnum):
    """How a leader change was not clean."""

    LOST = "lost"  # committed records are missing for certain
    UNCLEAN = "unclean"  # the new leader was not in sync
    NOT_KNOWN = "not_known"  # too much happened unseen


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaderChange:
    """A change of leader that was not clean, as far as is known."""

    leader_epoch: int  # the new one
    kind: ChangeKind
    leader: int | None  # the new one
    # From the last observation before; None: only the controller's line is known.
    leader_before: int | None = None
    leader_epoch_before: int | None = None
    last_observation_us: int | None = None
    # Where the older epoch ended in the new leader's log; None: only the controller's line is known.
    epoch_end: int | None = None
    # The lost range, as far as known; `lost_to` is exclusive. For the kind `lost` it was committed; for
    # the others it is all that a returned former leader had.
    lost_from: int | None = None
    lost_to: int | None = None
    seen_us: int  # the round that proved it


@dataclass(frozen=True, slots=True, kw_only=True)
class StateObservation:
    """A leader's state of the producer at one time."""

    leader_epoch: int
    observed_us: int
    state: ProducerState | None  # None: it has none


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportedVerdict:
    """The last report of an episode; repeated when more than its time and count differ."""

    class_: SequenceClass
    phase: Phase
    lost_from: int | None
    lost_to: int | None
    is_resent: bool
    reported_us: int
    times: int  # how many reports were made
    arrival: Arrival | None = None  # None: not reported
    outcome: TransactionOutcome | None = None  # of its transaction, as far as reported

    @property
    def is_confirmed(self) -> bool:
        """Whether the verdict was proven."""
        return self.phase is Phase.CONFIRMED


@dataclass(frozen=True, slots=True, kw_only=True)
class Episode:
    """One producer's rejections on one partition; times in microseconds since 1970-01-01 UTC."""

    id: str  # unique, lasting
    name: TopicPartition | None
    topic_id: TopicId | None
    producer_id: int | None
    rejections: tuple[Rejection, ...]  # distinct ones, the first and the latest
    rejection_count: int  # all, also those that are not kept
    first_seen_us: int  # by our own clock: the rounds that read the first and the last line
    last_seen_us: int
    leader_epoch: int | None  # of the partition, when it was first seen
    verdict: SequenceVerdict
    # The partition's leaders when it was last observed: the present epoch, the one since which every
    # change is known, and the one since which every change was certainly clean.
    seen_epoch: int | None = None
    watched_from: int | None = None
    clean_from: int | None = None
    leading: int = 0  # the position of the rejection that decides
    largest_batch: int | None = None  # records, of any producer, near the rejections
    # When the log was last scanned around the rejections, and when from there to its end.
    batches_scanned_us: int | None = None
    end_scanned_us: int | None = None
    first_state: StateObservation | None = None
    last_state: StateObservation | None = None
    newest_producer_epoch: int | None = None  # seen in the log, or remembered by the leader
    changes: tuple[LeaderChange, ...] = ()  # ascending by epoch
    queries: int = 0  # rounds that queried the leader since the last new rejection
    total_queries: int = 0  # and in total, until all rejections are settled
    is_querying: bool = False  # the next round queries the leader
    is_waiting: bool = False  # it would query, but too many others do
    # An answer or a client's retry may still change the verdict.
    is_investigated: bool = False
    transaction: EpisodeTransaction = NOTHING_KNOWN
    reported: ReportedVerdict | None = None
    ended_us: int | None = None
    record_errors: EpisodeRecordErrors = NOT_READ  # of clients, within its time

    @property
    def key(self) -> EpisodeKey:
        """Return the partition and producer of the episode."""
        return self.name, self.producer_id

    @property
    def shown(self) -> Rejection:
        """Return the rejection that decides the verdict."""
        return self.rejections[min(self.leading, len(self.rejections) - 1)]

    @property
    def is_resent(self) -> bool:
        """Whether the producer wrote under a newer epoch than that of the deciding rejected batch."""
        return self.is_resent_after(self.shown)

    def is_resent_after(self, rejection: Rejection) -> bool:
        """Whether the producer wrote under a newer epoch than that of a rejected batch."""
        before, newest = rejection.before, self.newest_producer_epoch
        return before is not None and newest is not None and newest > before.producer_epoch

    @property
    def is_reported(self) -> bool:
        """Whether the verdict may be reported: it is proven, or no answer is expected."""
        is_open = self.is_investigated or self.is_querying or self.is_waiting
        return self.verdict.is_confirmed or not is_open


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SequenceMemory:
    """The remembered sequence episodes of one cluster id."""

    open: Mapping[EpisodeKey, Episode] = field(default_factory=dict)
    ended: tuple[Episode, ...] = ()  # ascending by when they ended
    # The latest leader changes that were not clean, also of partitions without an episode: a rejection
    # comes after the change.
    changes: Mapping[TopicPartition, tuple[LeaderChange, ...]] = field(default_factory=dict)
    leaderships: Leaderships = field(default_factory=Leaderships.none)
    unreported: int = 0  # episodes that were dropped, being too many, before they were reported
    unreported_us: int | None = None  # the last round that dropped one

    @property
    def episodes(self) -> tuple[Episode, ...]:
        """Return all episodes, those that ended first."""
        return (*self.ended, *self.open.values())


def merge_sequences(stored: SequenceMemory, seen: SequenceMemory) -> SequenceMemory:
    """Merge the stored episodes into memory."""
    ids = {episode.id for episode in seen.ended}
    both = {
        key: (episode, seen.open[key]) for key, episode in stored.open.items() if key in seen.open
    }
    replaced = [
        replace(old, ended_us=new.first_seen_us, is_querying=False, is_waiting=False)
        for old, new in both.values()
        if are_different(old.topic_id, new.topic_id)
    ]
    joined = {
        key: _merge_episodes(old, new)
        for key, (old, new) in both.items()
        if not are_different(old.topic_id, new.topic_id)
    }
    return SequenceMemory(
        open={**stored.open, **seen.open, **joined},
        ended=(
            *(episode for episode in stored.ended if episode.id not in ids),
            *replaced,
            *seen.ended,
        ),
        changes={
            name: merge_changes(stored.changes.get(name, ()), seen.changes.get(name, ()))
            for name in {**stored.changes, **seen.changes}
        },
        leaderships=merge_leaderships(stored.leaderships, seen.leaderships),
        unreported=stored.unreported + seen.unreported,
        unreported_us=_latest(stored.unreported_us, seen.unreported_us),
    )


def _merge_episodes(stored: Episode, seen: Episode) -> Episode:
    """Merge one producer's stored and new episode; the stored verdict stays until the next round."""
    rejections = _merge_all_rejections(stored, seen)
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
        changes=merge_changes(stored.changes, seen.changes),
        queries=0,
        reported=stored.reported or seen.reported,
        record_errors=merge_record_errors(stored.record_errors, seen.record_errors),
        transaction=seen.transaction
        if stored.transaction.is_transactional is None
        else stored.transaction,
    )


def _merge_all_rejections(stored: Episode, seen: Episode) -> tuple[Rejection, ...]:
    """Merge the rejections of both; of a repeated one the later process has the better evidence."""
    by_key = {rejection.key: rejection for rejection in stored.rejections}
    for rejection in seen.rejections:
        earlier = by_key.get(rejection.key)
        if earlier is None:
            by_key[rejection.key] = rejection
            continue
        both = merge_rejections(earlier, rejection)
        if both is not earlier:
            by_key[rejection.key] = replace(rejection, count=both.count, times_us=both.times_us)
    return tuple(sorted(by_key.values(), key=order))


def _latest(first: int | None, second: int | None) -> int | None:
    return max((number for number in (first, second) if number is not None), default=None)


def merge_changes(
    older: tuple[LeaderChange, ...], newer: tuple[LeaderChange, ...]
) -> tuple[LeaderChange, ...]:
    """Merge the leader changes of one partition, one per epoch; a proof says more than a line."""
    by_epoch = {change.leader_epoch: change for change in older}
    for later in newer:
        before = by_epoch.get(later.leader_epoch)
        by_epoch[later.leader_epoch] = later if before is None else _merge_change(before, later)
    return tuple(by_epoch[epoch] for epoch in sorted(by_epoch))


def _merge_change(first: LeaderChange, second: LeaderChange) -> LeaderChange:
    """Merge two records of one change, with the more exact kind and range."""
    kinds = tuple(ChangeKind)
    proven, said = (first, second) if first.epoch_end is not None else (second, first)
    ends = [change.lost_to for change in (first, second) if change.lost_to is not None]
    starts = [change.lost_from for change in (first, second) if change.lost_from is not None]
    return replace(
        proven,
        kind=min(proven.kind, said.kind, key=kinds.index),
        lost_from=min(starts, default=None),
        lost_to=max(ends, default=None),
    )


def sequences_with_times(
    memory: SequenceMemory, change: Callable[[int], int], change_all: Callable[[Int64s], Int64s]
) -> SequenceMemory:
    """Return the memory with its times changed, except those by brokers' clocks."""
    return replace(
        memory,
        open={key: _move_times(episode, change) for key, episode in memory.open.items()},
        ended=tuple(_move_times(episode, change) for episode in memory.ended),
        changes={
            name: tuple(_move_change(leader_change, change) for leader_change in changes)
            for name, changes in memory.changes.items()
        },
        leaderships=memory.leaderships.with_times(change_all),
        unreported_us=change_if_set(memory.unreported_us, change),
    )


def latest_sequence_time(memory: SequenceMemory) -> int:
    """Return the latest remembered time by our own clock, 0 where there is none."""
    times = [episode.last_seen_us for episode in memory.open.values()]
    times += [episode.ended_us or 0 for episode in memory.ended]
    times += [change.seen_us for changes in memory.changes.values() for change in changes]
    return max(times, default=0)


def _move_times(episode: Episode, change: Callable[[int], int]) -> Episode:
    reported = episode.reported
    return replace(
        episode,
        rejections=tuple(
            replace(rejection, seen_us=change(rejection.seen_us))
            for rejection in episode.rejections
        ),
        first_seen_us=change(episode.first_seen_us),
        last_seen_us=change(episode.last_seen_us),
        batches_scanned_us=change_if_set(episode.batches_scanned_us, change),
        end_scanned_us=change_if_set(episode.end_scanned_us, change),
        first_state=_move_observation(episode.first_state, change),
        last_state=_move_observation(episode.last_state, change),
        changes=tuple(_move_change(leader_change, change) for leader_change in episode.changes),
        reported=None
        if reported is None
        else replace(reported, reported_us=change(reported.reported_us)),
        ended_us=change_if_set(episode.ended_us, change),
        record_errors=episode.record_errors.with_times(change),
    )


def _move_change(leader_change: LeaderChange, change: Callable[[int], int]) -> LeaderChange:
    return replace(
        leader_change,
        seen_us=change(leader_change.seen_us),
        last_observation_us=change_if_set(leader_change.last_observation_us, change),
    )


def _move_observation(
    observation: StateObservation | None, change: Callable[[int], int]
) -> StateObservation | None:
    if observation is None:
        return None
    return replace(observation, observed_us=change(observation.observed_us))
