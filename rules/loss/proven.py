"""Losses that were told as possible and are proven by now: one loss is to be told as bad once.

A change of leader that may have lost records, an election that nobody saw coming, or a group that had
read what is not there come first; that committed records are gone is often proven a round, or hours,
later, and by another rule.
"""

from __future__ import annotations

from rules.evidence import EvidenceValue
from rules.facts.loss_memory import ReportedLoss
from rules.loss.returned import is_committed, return_evidence, row_of
from rules.view import View


def newly_proven(view: View) -> dict[tuple[int, int], ReportedLoss]:
    """Return the losses that this round proves and that were told as possible, by row and epoch."""
    before = {} if view.before is None else {one.key: one for one in view.before.losses.reported}
    losses: dict[tuple[int, int], ReportedLoss] = {}
    for loss in view.memory.losses.reported:
        known = before.get(loss.key)
        if not is_committed(loss) or (known is not None and is_committed(known)):
            continue
        row = row_of(view, loss)
        if row is not None and (known is not None or _was_told_otherwise(view, loss)):
            losses[row, loss.leader_epoch] = loss
    return losses


def loss_read_in(view: View, row: int, *, epoch: int | None, end: int) -> ReportedLoss | None:
    """Return the loss of what a group had read in an epoch that ended at `end`; a proven one first."""
    name = view.snapshot.partitions.index.topic_partition(row)
    same = (
        loss
        for loss in view.memory.losses.reported
        if loss.name == name
        and loss.epoch_end == end
        and row_of(view, loss) == row
        and epoch is not None
        and epoch < loss.leader_epoch
    )
    return min(same, key=lambda loss: not is_committed(loss), default=None)


def proven_evidence(loss: ReportedLoss) -> dict[str, EvidenceValue]:
    """Return where to read on, as evidence."""
    committed_to = loss.committed_to or loss.epoch_end
    told = return_evidence(loss) if loss.lost_to is not None else _told_change(loss)
    return {
        **told,
        "proven_committed_offsets": committed_to - loss.epoch_end,
        "proven_by": "committed_records_lost",
    }


def _told_change(loss: ReportedLoss) -> dict[str, EvidenceValue]:
    return {
        "topic_id": loss.topic_id,
        "leader_before": loss.leader_before,
        "leader_epoch_before": loss.leader_epoch_before,
        "epoch_end": loss.epoch_end,
    }


def _was_told_otherwise(view: View, loss: ReportedLoss) -> bool:
    """Whether its election, or a group that had read it, was told before."""
    if view.before is None:
        return False
    losses = view.before.losses
    if any((one.name, one.leader_epoch) == (loss.name, loss.leader_epoch) for one in losses.unseen):
        return True
    topics = (loss.topic_id, loss.name.topic)
    return any(
        topic in topics and partition == loss.name.partition and offset > loss.epoch_end
        for topic, partition, _, offset in losses.beyond_epoch_end
    )
