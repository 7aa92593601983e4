"""Losses that were reported as possible and are proven by now: one loss is critical once.

A leader change that may have lost records, an unclean election that was not observed, or a group that had
read missing records comes first. That committed records are gone is often proven a round, or hours,
later, and by another rule.
"""

from __future__ import annotations

from rules.facts.loss_memory import ReportedLoss
from rules.loss.evidence_fields import LossEvidence
from rules.loss.returned import is_committed, list_losses, return_evidence, row_of
from rules.view import View


def list_newly_proven(view: View) -> dict[tuple[int, int], ReportedLoss]:
    """Return by row and epoch the losses that this round proves and that were reported as possible."""

    def is_news(earlier: ReportedLoss | None, loss: ReportedLoss) -> bool:
        if not is_committed(loss) or (earlier is not None and is_committed(earlier)):
            return False
        return earlier is not None or _was_reported_otherwise(view, loss)

    return list_losses(view, is_news)


def loss_read_in(view: View, row: int, *, epoch: int | None, end: int) -> ReportedLoss | None:
    """Return the loss of records that a group read in an epoch ending at `end`, proven ones first."""
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


def proven_evidence(loss: ReportedLoss) -> LossEvidence:
    """Return the evidence that points to the finding of the proven loss."""
    committed_to = loss.committed_to or loss.epoch_end
    change = return_evidence(loss) if loss.lost_to is not None else _change_evidence(loss)
    return {
        **change,
        "proven_committed_offsets": committed_to - loss.epoch_end,
        "proven_by": "committed_records_lost",
    }


def _change_evidence(loss: ReportedLoss) -> LossEvidence:
    return {
        "topic_id": loss.topic_id,
        "leader_before": loss.leader_before,
        "leader_epoch_before": loss.leader_epoch_before,
        "epoch_end": loss.epoch_end,
    }


def _was_reported_otherwise(view: View, loss: ReportedLoss) -> bool:
    """Whether its election, or a group that had read its records, was reported before."""
    losses = view.losses_before
    if any(
        (election.name, election.leader_epoch) == (loss.name, loss.leader_epoch)
        for election in losses.unseen
    ):
        return True
    topics = (loss.topic_id, loss.name.topic)
    return any(
        topic in topics and partition == loss.name.partition and offset > loss.epoch_end
        for topic, partition, _, offset in losses.beyond_epoch_end
    )
