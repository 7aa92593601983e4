"""Remembers losses: those that were reported, so that each is reported once, and what may settle them.

A commit above the high watermark, or beyond the end of its own leader epoch, stays so until its
group commits again. It is an event of the round in which it is first seen. What a leader change may
have lost is kept for a day, because the former leader's log lines settle it when that broker returns;
and such lines are kept for a while, because they may be read before the loss is proven. Elections under
whose former leader there was no observation are remembered by the controllers' lines.
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
from rules.facts.first_epochs import (
    FirstEpoch,
    first_epochs_with_times,
    merge_first_epochs,
)
from rules.facts.identity import BrokerId, TopicId, TopicPartition
from rules.facts.incidents import Incident, incidents_with_times, merge_incidents
from rules.facts.snapshot import Snapshot
from rules.facts.times import change_if_set
from rules.facts.transaction_memory import CommittedTransaction
from rules.facts.unseen_elections import NewTopic, UnseenElection, merge_elections

# Topic id, or its name where brokers have none; partition, group, committed offset.
CommitFact: TypeAlias = tuple[str, int, str, int]

# Lines of a broker that loses its followers, or returns and follows another one, and of a controller
# that elects uncleanly. A request for a smaller ISR is only in older checkpoints.
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
    """A log line that may indicate a loss, or settle one."""

    event: ReplicaEvent
    read_us: int  # microseconds since 1970-01-01 UTC, by our own clock


class Contradiction(IntEnum):
    """Evidence that an election of unknown kind was unclean; a higher value is stronger."""

    NOTHING = 0
    BY_SIGNS = 1  # an ISR without the elected broker, or a stalled log whose tail is gone
    BY_CONTROLLER = 2  # the controller logged that it was unclean


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
    last_observation_us: int | None  # None: there was no observation under the former leader
    reported_us: int
    # From the former leader's log lines since then.
    former_leader_log_end: int | None = None  # where its own log had ended, before it was cut
    former_leader_high_watermark: int | None = None  # its own, from which it was set back
    alone_since_us: int | None = None  # when it logged that no other replica is in sync
    # The latest leader epoch in which the older one's end was checked, and the one that has all again.
    checked_epoch: int | None = None
    restored_epoch: int | None = None
    # Committed transactions that are lost entirely, and those for which this is not known yet: the log
    # is scanned for their markers, from this record time on.
    missing: tuple[CommittedTransaction, ...] = ()
    doubtful: tuple[CommittedTransaction, ...] = ()
    doubtful_since_us: int = 0
    # Where the election was reported as of unknown kind: up to where the lost range may have been
    # committed (the end of the older epoch if no observed offset is gone), and the evidence against it.
    not_known_to: int | None = None
    contradicted: int = Contradiction.NOTHING

    @property
    def key(self) -> tuple[TopicPartition, TopicId | None, int]:
        """Return the key that identifies the loss within one cluster."""
        return self.name, self.topic_id, self.leader_epoch_before

    @property
    def lost_to(self) -> int | None:
        """Return the end of the lost range [epoch_end, lost_to) by the former leader's log; None: not known.

        An upper bound of what was acknowledged: the last records may not have been.
        """
        end = self.former_leader_log_end
        return end if end is not None and end > self.epoch_end else None

    @property
    def committed_to(self) -> int | None:
        """Return the offset below which the lost range was committed; None: no proof of any."""
        ends = (self.certain_to, self.former_leader_high_watermark)
        return max((end for end in ends if end is not None), default=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class LossMemory:
    """The commits beyond an epoch's or the log's end, and the losses of the last day."""

    beyond_epoch_end: frozenset[CommitFact] = frozenset()
    beyond_log_end: frozenset[CommitFact] = frozenset()
    reported: tuple[ReportedLoss, ...] = ()  # the latest last
    # Changes after which nothing seems to be missing, and which may still prove to be losses.
    quiet: tuple[ReportedLoss, ...] = ()
    lines: tuple[ReplicaLine, ...] = ()  # of the last minutes, and all of partitions with a loss
    unseen: tuple[UnseenElection, ...] = ()  # of the last day, the latest last
    new_topics: tuple[NewTopic, ...] = ()  # of the last hour
    # The time of each controller's last line that was read, by its own clock; not kept over a restart.
    controllers: Mapping[BrokerId, int] = field(default_factory=dict)
    incidents: tuple[Incident, ...] = ()  # of the last day, the latest last
    # New partitions of the last day whose first elections nobody observed, the latest last.
    first_epochs: tuple[FirstEpoch, ...] = ()


def advance_losses(snapshot: Snapshot, old: LossMemory | None) -> LossMemory:
    """Return the memory of commits one round later; what this round could not see is kept.

    The losses of this round are added after its comparison with the earlier observations
    (`rules.loss.returned`).
    """
    before = old or LossMemory()
    beyond_log = snapshot.commits.beyond_high_watermark(snapshot.offsets)
    beyond_epoch = np.flatnonzero(beyond_epoch_end(snapshot).valid)
    ends = _mark_answered_ends(snapshot)
    watermarks = snapshot.offsets.high_watermark.take(snapshot.commits.row).valid
    return replace(
        before,
        beyond_epoch_end=facts_of(snapshot, beyond_epoch.tolist())
        | _keep_unseen(snapshot, before.beyond_epoch_end, ends),
        beyond_log_end=facts_of(snapshot, beyond_log.tolist())
        | _keep_unseen(snapshot, before.beyond_log_end, watermarks),
    )


def merge_losses(stored: LossMemory, seen: LossMemory) -> LossMemory:
    """Merge the stored losses into memory."""
    keys = {loss.key for loss in seen.reported}
    return LossMemory(
        beyond_epoch_end=stored.beyond_epoch_end | seen.beyond_epoch_end,
        beyond_log_end=stored.beyond_log_end | seen.beyond_log_end,
        reported=(*(loss for loss in stored.reported if loss.key not in keys), *seen.reported),
        quiet=(*stored.quiet, *seen.quiet),
        lines=(*stored.lines, *seen.lines),
        unseen=merge_elections(stored.unseen, seen.unseen),
        new_topics=(*stored.new_topics, *seen.new_topics),
        controllers=seen.controllers,
        incidents=merge_incidents(stored.incidents, seen.incidents),
        first_epochs=merge_first_epochs(stored.first_epochs, seen.first_epochs),
    )


def losses_with_times(memory: LossMemory, change: Callable[[int], int]) -> LossMemory:
    """Return the memory with its times changed, except those in lines, which are by brokers' clocks."""

    def move_times(losses: tuple[ReportedLoss, ...]) -> tuple[ReportedLoss, ...]:
        return tuple(
            replace(
                loss,
                last_observation_us=change_if_set(loss.last_observation_us, change),
                reported_us=change(loss.reported_us),
            )
            for loss in losses
        )

    return replace(
        memory,
        reported=move_times(memory.reported),
        quiet=move_times(memory.quiet),
        lines=tuple(replace(line, read_us=change(line.read_us)) for line in memory.lines),
        unseen=tuple(
            replace(
                election,
                read_us=change(election.read_us),
                since_us=change_if_set(election.since_us, change),
            )
            for election in memory.unseen
        ),
        new_topics=tuple(
            replace(topic, listed_us=change(topic.listed_us)) for topic in memory.new_topics
        ),
        incidents=incidents_with_times(memory.incidents, change),
        first_epochs=first_epochs_with_times(memory.first_epochs, change),
    )


def _mark_answered_ends(snapshot: Snapshot) -> Bools:
    commits = snapshot.commits
    mask: Bools = snapshot.epoch_ends.find(commits.row, commits.committed_leader_epoch) >= 0
    return mask & snapshot.offsets.leader_epoch.valid[commits.row]


def _keep_unseen(
    snapshot: Snapshot, facts: frozenset[CommitFact], is_seen: Bools
) -> frozenset[CommitFact]:
    """Return the facts whose commit this round did not observe, or whose epoch or log end it did not."""
    if not facts:
        return facts
    by_commit = {(topic, number, group) for topic, number, group, _ in facts}
    now: dict[tuple[str, int, str], tuple[int, bool]] = {}
    for place in range(len(snapshot.commits)):
        topic, number, group, offset = fact_of(snapshot, place)
        if (topic, number, group) in by_commit:
            now[topic, number, group] = offset, bool(is_seen[place])
    whole, hidden = snapshot.commits_complete, snapshot.groups_without_commits
    remaining: set[CommitFact] = set()
    for fact in facts:
        topic, number, group, offset = fact
        current = now.get((topic, number, group))
        if current is None:
            is_kept = not whole or group in hidden
        else:
            is_kept = current[0] == offset and not current[1]
        if is_kept:
            remaining.add(fact)
    return frozenset(remaining)


def beyond_epoch_end(snapshot: Snapshot) -> Column:
    """Return by how many offsets each commit lies beyond the end of the leader epoch it was read in.

    Absent where it does not, or where that is not known. The client read those offsets in that
    epoch, and the present leader's log no longer has them: at least so many are lost, unless the topic
    was recreated. A commit without an epoch, or with one that the leader does not know, is no evidence.
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
    """Return the keys of the commits at these positions."""
    return frozenset(fact_of(snapshot, place) for place in places)


def fact_of(snapshot: Snapshot, place: int) -> CommitFact:
    """Return the key of one commit."""
    commits, row = snapshot.commits, int(snapshot.commits.row[place])
    name = snapshot.partitions.index.topic_partition(row)
    topic = snapshot.partitions.topic_id(row) or name.topic
    group = snapshot.groups[int(commits.group[place])].group_id
    return topic, name.partition, group, int(commits.committed_offset[place])


def is_new(snapshot: Snapshot, places: Int64s, reported: frozenset[CommitFact]) -> list[bool]:
    """Return for each of these commits whether it was not reported before."""
    return [fact_of(snapshot, place) not in reported for place in places.tolist()]
