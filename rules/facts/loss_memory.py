"""What is remembered of losses: what was told, so that it is told once, and what may settle it.

A commit above the high watermark, or beyond the end of its own leader epoch, stays so until its
group commits again. It is an event of the round in which it is first seen. What a leader change may
have lost is kept for a day, because the old leader's own log lines settle it when it comes back; and
its lines are kept for a while, because they may be read before the loss is proven. What no observation can
tell, because nobody had observed under the old leader, is remembered by the controllers' lines.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import IntEnum
from typing import TypeAlias

import numpy as np

from rules.facts.broker_log import (
    FollowerStarted,
    IsrShrunk,
    IsrUpdated,
    LogLoaded,
    LogTruncated,
    UncleanChange,
    WatermarkWentBack,
)
from rules.facts.column import Bools, Column, Int64s
from rules.facts.identity import BrokerId, TopicId, TopicPartition
from rules.facts.incidents import Incident, incidents_under, incidents_with_times
from rules.facts.snapshot import Snapshot
from rules.facts.transaction_memory import CommittedTransaction
from rules.facts.unseen_elections import NewTopic, UnseenElection, elections_under

# Topic id, or its name where brokers tell none; partition, group, committed offset.
CommitFact: TypeAlias = tuple[str, int, str, int]

# What a broker writes that is left alone by its followers, or comes back and follows another, and a
# controller that elects uncleanly. A request for a smaller ISR is in older checkpoints alone.
ReplicaEvent: TypeAlias = (
    IsrShrunk
    | IsrUpdated
    | UncleanChange
    | LogLoaded
    | FollowerStarted
    | LogTruncated
    | WatermarkWentBack
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaLine:
    """A line that may tell of a loss, or settle one."""

    event: ReplicaEvent
    read_us: int  # microseconds since 1970-01-01 UTC, by our own clock


class Contradiction(IntEnum):
    """What tells against an election that nobody knows; the stronger is the higher."""

    NOTHING = 0
    BY_SIGNS = 1  # an ISR without the winner, or a standstill whose tail is gone
    BY_CONTROLLER = 2  # which wrote that it was unclean


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportedLoss:
    """A leader change that lost committed records, or may have; times as above."""

    name: TopicPartition
    topic_id: TopicId | None
    leader_before: int | None
    leader_epoch_before: int
    leader: int | None
    leader_epoch: int
    epoch_end: int  # where the older epoch ended in the new leader's log, exclusive
    certain_to: int | None  # offsets from that end to here were seen to be committed, and are gone
    last_observation_us: int | None  # None: nobody had observed under the old leader
    reported_us: int
    # What the old leader's log lines told since.
    former_leader_log_end: int | None = None  # where its own log had ended, before it was cut
    former_leader_high_watermark: int | None = None  # its own, from which it was set back
    alone_since_us: int | None = None  # when it wrote that nobody else is in sync
    # The latest leader epoch that told where the older one ends now, and the one that has all again.
    checked_epoch: int | None = None
    restored_epoch: int | None = None
    # Committed transactions of which nothing is left, and those of which that is not known yet: the
    # log is scanned for their markers, from this record time on.
    missing: tuple[CommittedTransaction, ...] = ()
    doubtful: tuple[CommittedTransaction, ...] = ()
    doubtful_since_us: int = 0
    # Where the election was told as not known: up to where what is gone may have been committed, the
    # end of the older epoch if nothing that was seen is gone; and what was told against it.
    not_known_to: int | None = None
    contradicted: int = Contradiction.NOTHING

    @property
    def key(self) -> tuple[TopicPartition, TopicId | None, int]:
        """What tells it from every other loss of one cluster."""
        return self.name, self.topic_id, self.leader_epoch_before

    @property
    def lost_to(self) -> int | None:
        """[epoch_end, lost_to) is all that is gone, as the old leader told it; None: it has not.

        In general an upper bound of what was acknowledged: its last records may not have been.
        """
        end = self.former_leader_log_end
        return end if end is not None and end > self.epoch_end else None

    @property
    def committed_to(self) -> int | None:
        """Offsets below this one were committed, of those that are gone; None: nothing proves any."""
        known = (self.certain_to, self.former_leader_high_watermark)
        return max((one for one in known if one is not None), default=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class LossMemory:
    """The commits that the last rounds saw beyond an end, and the losses of the last day."""

    beyond_epoch_end: frozenset[CommitFact] = frozenset()
    beyond_log_end: frozenset[CommitFact] = frozenset()
    reported: tuple[ReportedLoss, ...] = ()  # the latest last
    # Changes after which nothing seems to be missing, and which may prove to be losses nevertheless.
    quiet: tuple[ReportedLoss, ...] = ()
    lines: tuple[ReplicaLine, ...] = ()  # of the last minutes, and all of partitions with a loss
    unseen: tuple[UnseenElection, ...] = ()  # of the last day, those found last at the end
    new_topics: tuple[NewTopic, ...] = ()  # of the last hour
    # When each controller wrote last of what was read, by its own clock; a restart reads it anew.
    controllers: Mapping[BrokerId, int] = field(default_factory=dict)
    incidents: tuple[Incident, ...] = ()  # of the last day, the latest last


def advance_losses(snapshot: Snapshot, old: LossMemory | None) -> LossMemory:
    """Return the memory of commits one round later; what this round could not see is kept.

    What this round says of losses is put in when it was compared with the observations before
    (`rules.loss.returned`).
    """
    before = old or LossMemory()
    beyond_log = snapshot.commits.beyond_high_watermark(snapshot.offsets)
    beyond_epoch = np.flatnonzero(beyond_epoch_end(snapshot).valid)
    ends = _epoch_is_told(snapshot)
    watermarks = snapshot.offsets.high_watermark.take(snapshot.commits.row).valid
    return replace(
        before,
        beyond_epoch_end=facts_of(snapshot, beyond_epoch.tolist())
        | _unseen(snapshot, before.beyond_epoch_end, ends),
        beyond_log_end=facts_of(snapshot, beyond_log.tolist())
        | _unseen(snapshot, before.beyond_log_end, watermarks),
    )


def losses_under(stored: LossMemory, seen: LossMemory) -> LossMemory:
    """Return the memory of a process that could read an earlier one's only after some rounds."""
    known = {one.key for one in seen.reported}
    return LossMemory(
        beyond_epoch_end=stored.beyond_epoch_end | seen.beyond_epoch_end,
        beyond_log_end=stored.beyond_log_end | seen.beyond_log_end,
        reported=(*(one for one in stored.reported if one.key not in known), *seen.reported),
        quiet=(*stored.quiet, *seen.quiet),
        lines=(*stored.lines, *seen.lines),
        unseen=elections_under(stored.unseen, seen.unseen),
        new_topics=(*stored.new_topics, *seen.new_topics),
        controllers=seen.controllers,
        incidents=incidents_under(stored.incidents, seen.incidents),
    )


def losses_with_times(memory: LossMemory, change: Callable[[int], int]) -> LossMemory:
    """Return the memory with its times changed; lines have times of the brokers' clocks."""

    def moved(losses: tuple[ReportedLoss, ...]) -> tuple[ReportedLoss, ...]:
        return tuple(
            replace(
                loss,
                last_observation_us=changed_if_any(loss.last_observation_us),
                reported_us=change(loss.reported_us),
            )
            for loss in losses
        )

    def changed_if_any(timestamp: int | None) -> int | None:
        return None if timestamp is None else change(timestamp)

    return replace(
        memory,
        reported=moved(memory.reported),
        quiet=moved(memory.quiet),
        lines=tuple(replace(line, read_us=change(line.read_us)) for line in memory.lines),
        unseen=tuple(
            replace(one, read_us=change(one.read_us), since_us=changed_if_any(one.since_us))
            for one in memory.unseen
        ),
        new_topics=tuple(
            replace(topic, listed_us=change(topic.listed_us)) for topic in memory.new_topics
        ),
        incidents=incidents_with_times(memory.incidents, change),
    )


def _epoch_is_told(snapshot: Snapshot) -> Bools:
    commits = snapshot.commits
    told: Bools = snapshot.epoch_ends.find(commits.row, commits.committed_leader_epoch) >= 0
    return told & snapshot.offsets.leader_epoch.valid[commits.row]


def _unseen(
    snapshot: Snapshot, told: frozenset[CommitFact], is_seen: Bools
) -> frozenset[CommitFact]:
    """Return what was told of commits that this round did not see, or whose end it did not see."""
    if not told:
        return told
    by_commit = {(topic, number, group) for topic, number, group, _ in told}
    now: dict[tuple[str, int, str], tuple[int, bool]] = {}
    for place in range(len(snapshot.commits)):
        topic, number, group, offset = fact_of(snapshot, place)
        if (topic, number, group) in by_commit:
            now[topic, number, group] = offset, bool(is_seen[place])
    whole, hidden = snapshot.commits_complete, snapshot.groups_without_commits
    kept: set[CommitFact] = set()
    for fact in told:
        topic, number, group, offset = fact
        found = now.get((topic, number, group))
        if found is None:
            is_kept = not whole or group in hidden
        else:
            is_kept = found[0] == offset and not found[1]
        if is_kept:
            kept.add(fact)
    return frozenset(kept)


def beyond_epoch_end(snapshot: Snapshot) -> Column:
    """Return by how much each commit lies beyond the end of the leader epoch that it was read in.

    Absent where it does not, or where that is not known. The client read those offsets in that
    epoch, and the present leader's log has them no more: at least so much is lost, unless the topic
    was created again. An epoch that is not committed, or not known to the leader, says nothing.
    Shape (commits,).
    """
    commits = snapshot.commits
    epoch = commits.committed_leader_epoch
    place = snapshot.epoch_ends.find(commits.row, epoch)
    beyond = Column.known(commits.committed_offset) - snapshot.epoch_ends.end_offset.take(place)
    present = snapshot.offsets.leader_epoch.take(commits.row)
    is_older = epoch.valid & present.valid & (epoch.values < present.values)
    return beyond.where(is_older & (beyond.values > 0))


def facts_of(snapshot: Snapshot, places: Iterable[int]) -> frozenset[CommitFact]:
    """Return what names the commits at these places."""
    return frozenset(fact_of(snapshot, place) for place in places)


def fact_of(snapshot: Snapshot, place: int) -> CommitFact:
    """Return what names one commit."""
    commits, row = snapshot.commits, int(snapshot.commits.row[place])
    name = snapshot.partitions.index.topic_partition(row)
    topic = snapshot.partitions.topic_id(row) or name.topic
    group = snapshot.groups[int(commits.group[place])].group_id
    return topic, name.partition, group, int(commits.committed_offset[place])


def is_new(snapshot: Snapshot, places: Int64s, told: frozenset[CommitFact]) -> list[bool]:
    """Return for each of these commits whether it was not told before."""
    return [fact_of(snapshot, place) not in told for place in places.tolist()]
