"""What a leader change left of the records that were there: proven from offsets and epochs.

Remembered of the last observation before the change: leader epoch e, last stable offset, high watermark h,
log end l, ISR. The present leader tells where epoch e ended in its log. Below h records were
committed: if it ended earlier, [end, h) is certainly lost, whatever the log has grown to since.
[max(end, h), l) is gone too; it was never committed if the election was clean, and may have been
after an unclean one, because the high watermark jumps to the log end when the ISR shrinks. What was
appended after the last observation nobody knows, so that nothing here ever says that nothing was lost.
Counts are of offsets: markers and aborted records use offsets too.
Source: KIP-101 (leader epochs), KIP-966 (ELR); tried on real brokers.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from rules.facts.identity import TopicId, TopicPartition
from rules.facts.last_observation import LastObservation
from rules.facts.snapshot import Snapshot
from rules.loss.changes import Changes
from rules.loss.election import (
    ELECTIONS,
    Election,
    contradicted_by_metadata,
    contradicted_directly,
    elections_of,
    is_unclean_if_lost,
    may_be_unclean,
    stood_for_long,
    stood_still,
)
from rules.view import View


@dataclass(frozen=True, slots=True)
class Span:
    """Offsets from `start` to `end`, exclusive; never empty."""

    start: int
    end: int

    def __len__(self) -> int:
        return self.end - self.start

    @classmethod
    def between(cls, start: int, end: int) -> Span | None:
        """Return the offsets between two, None where there are none."""
        return cls(start, end) if end > start else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Proof:
    """What became of one partition's log after its leader epoch changed."""

    row: int  # of the snapshot's partitions
    name: TopicPartition
    before: LastObservation  # the last observation in the older epoch
    leader: int | None  # now
    leader_epoch: int
    election: Election
    epoch_end: int  # where the older epoch ended in the present leader's log, exclusive
    former_leader_end: int | None  # what the older leader itself still has, if it could be asked
    is_contradicted_directly: bool  # by log lines, or by who was elected after a leaderless epoch
    is_contradicted: bool  # they do, or an ISR that a slow leader may have had too
    was_stalled: bool  # its high watermark stood, and unclean elections may be: its ISR shrinks

    @property
    def key(self) -> tuple[TopicPartition, TopicId | None, int, int]:
        """Return what tells the change from every other one."""
        return self.name, self.before.topic_id, self.before.leader_epoch, self.leader_epoch

    @property
    def certain(self) -> Span | None:
        """Return what was committed and retained when last seen, and is gone."""
        return Span.between(self._gone_from, self.before.high_watermark)

    @property
    def certain_visible(self) -> Span | None:
        """Return the part of it that read_committed readers could have read."""
        seen = min(self.before.last_stable_offset, self.before.high_watermark)
        return Span.between(self._gone_from, seen)

    @property
    def uncommitted(self) -> Span | None:
        """Return what was seen above the high watermark and is gone."""
        start = max(self.epoch_end, self.before.high_watermark)
        return Span.between(start, max(self._seen_end, start))

    @property
    def possible(self) -> Span | None:
        """Return what may have been committed and is gone; what was not seen may be beyond it."""
        if self.election is Election.CLEAN and self.certain is None:
            return None
        start = max(self.epoch_end, self.before.high_watermark)
        return Span.between(start, max(self._seen_end, self.former_leader_end or 0, start))

    @property
    def is_open_ended(self) -> bool:
        """Whether records that nobody saw may be lost: those appended after the last observation."""
        return self.election is not Election.CLEAN or self.certain is not None

    @property
    def _gone_from(self) -> int:
        return max(self.epoch_end, self.before.log_start_offset or 0)

    @property
    def _seen_end(self) -> int:
        end = self.before.log_end_offset
        return self.before.high_watermark if end is None else end


def proofs(view: View) -> tuple[Proof, ...]:
    """Return what this round proves, but for clean changes that left all that was seen.

    One per partition whose older epoch's end was told in this round. Where the new leader has not told
    all of its own offsets yet the older observation is kept, and the same change comes up again: it is told once.
    """
    found = _proofs(Changes.of(view), are_plain=False)
    if not found or view.before is None:
        return found
    told = {(*one.key, one.leader_epoch) for one in view.before.losses.reported}
    return tuple(one for one in found if one.key not in told)


def plain_changes(view: View) -> tuple[Proof, ...]:
    """Return the changes that seem to be clean, and left all that was committed.

    Where unclean elections are forbidden they are; those are not here. What was seen above the high
    watermark may be missing: such a change is among `proofs` too.
    """
    return _proofs(Changes.of(view), are_plain=True)


def _proofs(changes: Changes | None, *, are_plain: bool) -> tuple[Proof, ...]:
    if changes is None or not len(changes.rows):
        return ()
    elections = elections_of(changes)
    is_clean = np.array([one is Election.CLEAN for one in ELECTIONS], np.bool_)[elections]
    ends = changes.epoch_ends
    is_plain, is_unclean = is_clean & changes.all_there, is_unclean_if_lost(changes)
    chosen = is_clean & may_be_unclean(changes) if are_plain else ~is_plain
    wanted = np.flatnonzero(~changes.waiting & chosen)
    direct = contradicted_directly(changes)
    contradicted = direct | contradicted_by_metadata(changes)
    stalled = stood_still(changes) & stood_for_long(changes) & may_be_unclean(changes)
    found = (
        (
            _proof(
                changes,
                place,
                election=ELECTIONS[elections[place]],
                end=ends[place],
                is_contradicted_directly=bool(direct[place]),
                is_contradicted=bool(contradicted[place]),
                was_stalled=bool(stalled[place]),
            ),
            bool(is_unclean[place]),
        )
        for place in wanted.tolist()
    )
    return tuple(
        replace(proof, election=Election.UNCLEAN) if is_unclean and proof.certain else proof
        for proof, is_unclean in found
        if proof is not None
    )


def _proof(  # noqa: PLR0913 - what is known of one change
    changes: Changes,
    place: int,
    *,
    election: Election,
    end: int | None,
    is_contradicted_directly: bool,
    is_contradicted: bool,
    was_stalled: bool,
) -> Proof | None:
    snapshot = changes.view.snapshot
    row, observation = (
        int(changes.rows[place]),
        changes.observations[int(changes.observation_of_row[place])],
    )
    epoch = snapshot.offsets.leader_epoch[row]
    if observation is None or end is None or epoch is None:
        return None  # the log has no such epoch: that says nothing
    return Proof(
        row=row,
        name=snapshot.partitions.index.topic_partition(row),
        before=observation,
        leader=snapshot.partitions.leader[row],
        leader_epoch=epoch,
        election=election,
        epoch_end=end,
        former_leader_end=_former_leader_end(snapshot, row, observation.leader),
        is_contradicted_directly=is_contradicted_directly,
        is_contradicted=is_contradicted,
        was_stalled=was_stalled,
    )


def _former_leader_end(snapshot: Snapshot, row: int, leader: int | None) -> int | None:
    """Return the log end that the older leader itself tells, while it has not truncated.

    Only one beyond the present leader's is its old log: a follower's is never longer.
    """
    replicas, end = snapshot.partitions.replicas, snapshot.offsets.log_end_offset[row]
    for place in range(int(replicas.starts[row]), int(replicas.starts[row + 1])):
        own = snapshot.offsets.replica_log_end_offsets[place]
        if int(replicas.values[place]) == leader and None not in (own, end):
            return own if int(own or 0) > int(end or 0) else None
    return None
