"""Lost records that are there again: a replica that has them came back and leads.

A loss is what the present leader's log lacks. If the old leader, or another replica with its records,
leads once more, it has not truncated: it says that the old epoch ends where it ended before, and all up
to there can be read again. What was written meanwhile under the leader that had lost them is gone in
turn, and is a loss of its own.
Source: KIP-101 (leader epochs): a leader tells of each epoch of its log where it ended.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from rules.evidence import EvidenceValue
from rules.facts.column import Column
from rules.facts.loss_memory import ReportedLoss
from rules.loss.returned import is_committed, row_of
from rules.question import EpochEndQuestion
from rules.view import View


def with_what_is_back(view: View, loss: ReportedLoss) -> ReportedLoss:
    """Return the loss with what a later leader told in this round of the epoch that had lost its end."""
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


def about_restored(view: View) -> tuple[EpochEndQuestion, ...]:
    """Ask leaders that came after the one that had lost records where the older epoch ends by now."""
    asked = [
        (row, loss.leader_epoch_before)
        for loss in view.memory.losses.reported
        for row, _ in [_to_check(view, loss)]
        if row is not None
    ]
    if not asked:
        return ()
    rows, epochs = (np.array(column, np.int64) for column in zip(*asked, strict=True))
    return (EpochEndQuestion(view.snapshot.partitions, rows, epochs),)


def newly_restored(view: View) -> dict[tuple[int, int], ReportedLoss]:
    """Return by row and leader epoch the proven losses that this round finds to be restored.

    Each by itself: whether another loss of the partition still open is that one's matter.
    """
    before = {} if view.before is None else {one.key: one for one in view.before.losses.reported}
    losses: dict[tuple[int, int], ReportedLoss] = {}
    for loss in view.memory.losses.reported:
        known, row = before.get(loss.key), row_of(view, loss)
        is_new = known is not None and known.restored_epoch is None
        is_back = is_committed(loss) and loss.restored_epoch is not None
        if row is not None and is_new and is_back:
            losses[row, loss.leader_epoch] = loss
    return losses


def restored_evidence(loss: ReportedLoss | None) -> dict[str, EvidenceValue]:
    """Return what is there again as evidence; nothing where there is none."""
    if loss is None:
        return {}
    return {
        "topic_id": loss.topic_id,
        "leader_before": loss.leader_before,
        "leader_epoch_before": loss.leader_epoch_before,
        "leader": loss.leader,
        "leader_epoch": loss.leader_epoch,
        "epoch_end": loss.epoch_end,
        "restored_from": loss.epoch_end,
        "restored_to": _known_end(loss),
        "restored_in_epoch": loss.restored_epoch,
        "unknown_since": None,
        "advice": None,  # nothing has to be saved any more
    }


def _to_check(view: View, loss: ReportedLoss) -> tuple[int | None, int | None]:
    """Return row and epoch of a leader that came since a proven loss and was not asked yet."""
    is_lost = is_committed(loss) and loss.restored_epoch is None
    row = row_of(view, loss) if is_lost else None
    present = None if row is None else view.snapshot.offsets.leader_epoch[row]
    if present is None or present <= max(loss.leader_epoch, loss.checked_epoch or 0):
        return None, None
    return row, present


def _known_end(loss: ReportedLoss) -> int:
    """Return up to where records are known to be lost."""
    ends = (loss.committed_to, loss.former_leader_log_end)
    return max((end for end in ends if end is not None), default=loss.epoch_end)
