"""Lost records that are restored: a replica that has them leads again.

A loss is what the present leader's log lacks. If the former leader, or another replica with its records,
leads again, it has not truncated its log: it returns the same end of the old epoch as before, and
everything up to there can be read again. Records written in between, under the leader that had lost them,
are gone in turn, which is a loss of its own.
Source: KIP-101 (leader epochs): a leader knows where each epoch of its log ended.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from rules.facts.column import Column
from rules.facts.loss_memory import ReportedLoss
from rules.loss.evidence_fields import LossEvidence
from rules.loss.loss_evidence import change_evidence
from rules.loss.returned import is_committed, list_losses, row_of
from rules.question import EpochEndQuestion
from rules.view import View


def update_restored(view: View, loss: ReportedLoss) -> ReportedLoss:
    """Return the loss with a later leader's answer of this round about the epoch that had lost its end."""
    row, present = _to_check(view, loss)
    if row is None or present is None:
        return loss
    ends = view.snapshot.epoch_ends
    [place] = ends.find(np.array([row], np.int64), Column.of([loss.leader_epoch_before])).tolist()
    if place < 0:
        return loss
    end = ends.end_offset[place]
    is_back = end is not None and end >= _known_end(loss)
    return replace(loss, checked_epoch=present, restored_epoch=present if is_back else None)


def request_restored(view: View) -> tuple[EpochEndQuestion, ...]:
    """Request from later leaders where the older epoch ends now."""
    requests = [
        (row, loss.leader_epoch_before)
        for loss in view.memory.losses.reported
        for row, _ in [_to_check(view, loss)]
        if row is not None
    ]
    if not requests:
        return ()
    rows, epochs = (np.array(column, np.int64) for column in zip(*requests, strict=True))
    return (EpochEndQuestion(view.snapshot.partitions, rows, epochs),)


def list_newly_restored(view: View) -> dict[tuple[int, int], ReportedLoss]:
    """Return by row and leader epoch the proven losses whose records are restored since this round.

    Each loss by itself: another loss of the same partition may remain.
    """

    def is_news(previous: ReportedLoss | None, loss: ReportedLoss) -> bool:
        is_new = previous is not None and previous.restored_epoch is None
        return is_new and is_committed(loss) and loss.restored_epoch is not None

    return list_losses(view, is_news)


def restored_evidence(loss: ReportedLoss | None) -> LossEvidence:
    """Return the evidence of restored records; empty without a loss."""
    if loss is None:
        return {}
    return {
        **change_evidence(loss),
        "restored_from": loss.epoch_end,
        "restored_to": _known_end(loss),
        "restored_in_epoch": loss.restored_epoch,
        "unknown_since": None,
        "advice": None,  # no copy has to be saved any more
    }


def _to_check(view: View, loss: ReportedLoss) -> tuple[int | None, int | None]:
    """Return row and epoch of a leader that was elected after a proven loss and not queried yet."""
    is_lost = is_committed(loss) and loss.restored_epoch is None
    row = row_of(view, loss) if is_lost else None
    present = None if row is None else view.snapshot.offsets.leader_epoch[row]
    if present is None or present <= max(loss.leader_epoch, loss.checked_epoch or 0):
        return None, None
    return row, present


def _known_end(loss: ReportedLoss) -> int:
    """Return the end of the offsets that are known to be lost, exclusive."""
    ends = (loss.committed_to, loss.former_leader_log_end)
    return max((end for end in ends if end is not None), default=loss.epoch_end)
