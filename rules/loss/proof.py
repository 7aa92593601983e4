"""Which records a leader change lost: proven from offsets and leader epochs.

The last observation before the change has leader epoch e, last stable offset, high watermark h, log end l
and ISR. The present leader returns where epoch e ended in its log. Records below h were committed: if
the epoch ended earlier, [end, h) is certainly lost, however far the log has grown since. [max(end, h), l)
is gone too; after a clean election it was never committed, and after an unclean one it may have been,
because the high watermark jumps to the log end when the ISR shrinks. Records appended after the last
observation are not known, so that nothing here can prove that nothing was lost.
Counts are of offsets: markers and aborted records use offsets too.
Source: KIP-101 (leader epochs), KIP-966 (ELR); tested on real brokers.
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
    elections_of,
    is_contradicted_by_metadata,
    is_contradicted_directly,
    is_stalled_for_long,
    is_unclean_if_lost,
    is_watermark_stalled,
    may_be_unclean,
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
    former_leader_end: int | None  # the log end of the former leader itself, if it has answered
    is_contradicted_directly: bool  # by log lines, or by the leader after a leaderless epoch
    is_contradicted: bool  # the same, or by an ISR that a slow leader may have had too
    was_stalled: bool  # its high watermark was unchanged, and unclean elections may be allowed

    @property
    def key(self) -> tuple[TopicPartition, TopicId | None, int, int]:
        """Return the identity of the change."""
        return self.name, self.before.topic_id, self.before.leader_epoch, self.leader_epoch

    @property
    def event(self) -> tuple[int, int]:
        """Return row and leader epoch: the key of the change among the events of a round."""
        return self.row, self.leader_epoch

    @property
    def certain(self) -> Span | None:
        """Return the offsets that were committed and retained at the last observation, and are gone."""
        return Span.between(self._gone_from, self.before.high_watermark)

    @property
    def certain_visible(self) -> Span | None:
        """Return the part of `certain` that read_committed consumers could have read."""
        seen = min(self.before.last_stable_offset, self.before.high_watermark)
        return Span.between(self._gone_from, seen)

    @property
    def uncommitted(self) -> Span | None:
        """Return the offsets that were observed above the high watermark and are gone."""
        start = max(self.epoch_end, self.before.high_watermark)
        return Span.between(start, max(self._seen_end, start))

    @property
    def possible(self) -> Span | None:
        """Return the offsets that may have been committed and are gone; unobserved ones may follow."""
        if self.election is Election.CLEAN and self.certain is None:
            return None
        start = max(self.epoch_end, self.before.high_watermark)
        return Span.between(start, max(self._seen_end, self.former_leader_end or 0, start))

    @property
    def is_open_ended(self) -> bool:
        """Whether unobserved records may be lost: those appended after the last observation."""
        return self.election is not Election.CLEAN or self.certain is not None

    @property
    def _gone_from(self) -> int:
        return max(self.epoch_end, self.before.log_start_offset or 0)

    @property
    def _seen_end(self) -> int:
        end = self.before.log_end_offset
        return self.before.high_watermark if end is None else end


def list_proofs(view: View) -> tuple[Proof, ...]:
    """Return the proofs of this round, without clean changes that lost nothing that was observed.

    One per partition whose older epoch's end was read in this round. Until the new leader has returned all
    of its own offsets the older observation is kept, and the same change occurs again: it is reported once.
    """
    proven = _list_proofs(Changes.of(view), are_plain=False)
    if not proven:
        return proven
    reported = {(*loss.key, loss.leader_epoch) for loss in view.losses_before.reported}
    return tuple(proof for proof in proven if proof.key not in reported)


def list_plain_changes(view: View) -> tuple[Proof, ...]:
    """Return the changes that seem clean and lost nothing that was committed.

    Where unclean elections are forbidden, changes are certainly clean and not included. Records that were
    observed above the high watermark may be missing: such a change is in `list_proofs` too.
    """
    return _list_proofs(Changes.of(view), are_plain=True)


def _list_proofs(changes: Changes | None, *, are_plain: bool) -> tuple[Proof, ...]:
    if changes is None or not len(changes.rows):
        return ()
    elections = elections_of(changes)
    is_clean = np.array([election is Election.CLEAN for election in ELECTIONS], np.bool_)[elections]
    ends = changes.epoch_ends
    is_plain, is_unclean = is_clean & changes.all_there, is_unclean_if_lost(changes)
    chosen = is_clean & may_be_unclean(changes) if are_plain else ~is_plain
    places = np.flatnonzero(~changes.waiting & chosen)
    direct = is_contradicted_directly(changes)
    contradicted = direct | is_contradicted_by_metadata(changes)
    stalled = is_watermark_stalled(changes) & is_stalled_for_long(changes) & may_be_unclean(changes)
    candidates = (
        (
            _prove(
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
        for place in places.tolist()
    )
    return tuple(
        replace(proof, election=Election.UNCLEAN) if is_unclean and proof.certain else proof
        for proof, is_unclean in candidates
        if proof is not None
    )


def _prove(  # noqa: PLR0913 - what is known of one change
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
    row = int(changes.rows[place])
    observation = changes.observations[int(changes.observation_of_row[place])]
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
    """Return the log end offset of the former leader itself, while it has not truncated its log.

    Only one beyond the present leader's belongs to its old log: a follower's log is never longer.
    """
    replicas, end = snapshot.partitions.replicas, snapshot.offsets.log_end_offset[row]
    for place in range(int(replicas.starts[row]), int(replicas.starts[row + 1])):
        own = snapshot.offsets.replica_log_end_offsets[place]
        if int(replicas.values[place]) == leader and None not in (own, end):
            return own if int(own or 0) > int(end or 0) else None
    return None
