"""The partitions whose leader epoch has changed since their last observation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np

from rules.facts.column import Bools, Column, Int64s
from rules.facts.identity import TopicId, TopicPartition
from rules.facts.last_observation import LastObservations, microseconds, unsettled_rows
from rules.facts.loss_memory import ReportedLoss
from rules.facts.matching import matching_rows
from rules.view import View

Change: TypeAlias = tuple[TopicPartition, TopicId | None, int]  # the last is the new leader epoch


@dataclass(frozen=True, slots=True, eq=False)
class Changes:
    """The partitions whose leader epoch is later than the one of their last observation."""

    view: View
    observations: LastObservations
    rows: Int64s  # of the snapshot's partitions
    observation_of_row: Int64s  # row of `observations`
    before: LastObservations  # those of the changes, in the order of `rows`
    is_answered: Bools  # a leader has returned where the older epoch ended
    # What it returned: the end, exclusive, and the epoch that ended there; absent where it has none so old.
    returned_end: Column
    returned_epoch: Column

    @classmethod
    def of(cls, view: View) -> Changes | None:
        """Return the changes of a round; None if there is no earlier observation."""
        if view.before is None:
            return None
        snapshot, observations = view.snapshot, view.before.observations
        changed = unsettled_rows(observations, snapshot.partitions, snapshot.offsets.leader_epoch)
        rows = np.flatnonzero(changed).astype(np.int64)
        old_rows = matching_rows(snapshot.partitions, observations.partitions)[rows]
        before = observations.take(old_rows)
        answers = snapshot.epoch_ends
        places = answers.find(rows, before.leader_epoch)
        return cls(
            view=view,
            observations=observations,
            rows=rows,
            observation_of_row=old_rows,
            before=before,
            is_answered=places >= 0,
            returned_end=answers.end_offset.take(places),
            returned_epoch=answers.found_epoch.take(places),
        )

    def take(self, places: Int64s) -> Changes:
        """Return some of the changes."""
        return replace(
            self,
            rows=self.rows[places],
            observation_of_row=self.observation_of_row[places],
            before=self.before.take(places),
            is_answered=self.is_answered[places],
            returned_end=self.returned_end.take(places),
            returned_epoch=self.returned_epoch.take(places),
        )

    @property
    def waiting(self) -> Bools:
        """Mark the changes whose older epoch's end is not known yet."""
        return ~self.is_answered

    @property
    def leaders(self) -> Column:
        """Return the present leaders."""
        return self.view.snapshot.partitions.leader.take(self.rows)

    @property
    def epochs(self) -> Int64s:
        """Return the present leader epochs."""
        return self.view.snapshot.offsets.leader_epoch.values[self.rows]

    @property
    def are_own(self) -> Bools:
        """Mark the changes whose leader is the same broker as before."""
        now, before = self.leaders, self.before.leader
        own: Bools = now.valid & before.valid & (now.values == before.values)
        return own

    @property
    def are_direct(self) -> Bools:
        """Mark the changes of a single leader epoch: no other election lies in between."""
        direct: Bools = self.epochs - self.old_epochs == 1
        return direct

    @property
    def now_us(self) -> int:
        """Return when this round began, in microseconds since 1970-01-01 UTC."""
        return microseconds(self.view.now)

    @property
    def epoch_ends(self) -> Column:
        """Return where the older epochs ended in the present leaders' logs, exclusive.

        A leader that has nothing of an epoch returns the end of an earlier one, which may lie further
        on. If that one is no later than the epoch that a reported loss ended, the leader has nothing that
        was written after the loss began: the answer is where it began. An epoch in between, of the
        leader's own log, may have moved the log on before the older epoch, though nobody observed it.
        """
        ends, epochs = self.returned_end, self.returned_epoch
        lacks = ends.valid & epochs.valid & (epochs.values < self.old_epochs)
        reported = self.view.losses_before.reported
        if not reported or not lacks.any():
            return ends
        begun_by = _beginnings(reported)
        partitions, values = self.view.snapshot.partitions, ends.values.copy()
        for place in np.flatnonzero(lacks).tolist():
            row, epoch = int(self.rows[place]), int(self.old_epochs[place])
            name = partitions.index.topic_partition(row)
            loss = begun_by.get((name, partitions.topic_id(row), epoch))
            if loss is not None and epochs.values[place] <= loss.leader_epoch_before:
                values[place] = min(values[place], loss.epoch_end)
        return Column(values, ends.valid)

    @property
    def all_there(self) -> Bools:
        """Mark the changes after which nothing that was observed is missing."""
        watermark, log_end = self.before.high_watermark, self.before.log_end_offset
        end = self.epoch_ends
        longer = np.maximum(log_end.values, watermark.values)
        there: Bools = end.valid & (end.values >= np.where(log_end.valid, longer, watermark.values))
        return there

    @property
    def old_epochs(self) -> Int64s:
        """Return the epochs of the last observations."""
        return self.before.leader_epoch.values


def _beginnings(losses: Sequence[ReportedLoss]) -> dict[Change, ReportedLoss]:
    """Return the losses at whose end offset the next leader epoch began, by that epoch.

    A leader that returned with everything that an earlier one had lost began its own epoch after that,
    and not where the epoch in between had begun.
    """
    by_change = {(loss.name, loss.topic_id, loss.leader_epoch): loss for loss in losses}
    begun_by: dict[Change, ReportedLoss] = {}
    for change, loss in by_change.items():
        older = by_change.get((loss.name, loss.topic_id, loss.leader_epoch_before))
        is_same_end = older is not None and older.epoch_end == loss.epoch_end
        if older is None or not is_same_end or _is_still_lost(older, loss.leader_epoch):
            begun_by[change] = loss
    return begun_by


def _is_still_lost(loss: ReportedLoss, leader_epoch: int) -> bool:
    """Whether a later leader has answered that it lacks the lost records too."""
    return loss.restored_epoch is None and (loss.checked_epoch or 0) >= leader_epoch
