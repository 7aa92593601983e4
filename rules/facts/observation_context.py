"""What rounds reported of each partition besides its leader's answer, kept with its last observation.

An election is judged once the new leader has reported where the older epoch ended, which may be some
rounds after the election. The context for that is therefore kept with the observation, as it was before
the change: later reports are about another leader.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from rules.facts.column import Bools, Column, Int64s, Ragged, Table
from rules.facts.partitions import Partitions
from rules.facts.unchanged_since import UnchangedSince, either


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ObservationContext(Table):
    """One row per partition, as `LastObservations` has them."""

    high_watermark: UnchangedSince  # as of the last round that the leader answered
    # From metadata while it led, also in rounds that it did not answer.
    replicas: Ragged
    unclean_election_enabled: Column
    isr_reported_us: Column  # when a round read the ISR of the observation
    # From the last metadata without a leader: the leader epoch, and who could be elected cleanly.
    leaderless_epoch: Column
    electable: Ragged
    # When another leader was first seen, and whether the observed one was in sync then: 1 or 0.
    succeeded_us: Column
    was_in_sync: Column

    @classmethod
    def of(
        cls, partitions: Partitions, high_watermark: UnchangedSince, reported_us: Column
    ) -> ObservationContext:
        """Return the context of one round; `high_watermark` begins with the rows of `partitions`."""
        nobody_leads = ~partitions.leader.valid & partitions.isr.valid & partitions.elr.valid
        return cls(
            high_watermark=high_watermark,
            replicas=partitions.replicas,
            unclean_election_enabled=partitions.unclean_election_enabled,
            isr_reported_us=reported_us,
            leaderless_epoch=partitions.leader_epoch.where(nobody_leads),
            electable=list_electable(partitions, nobody_leads),
            succeeded_us=Column.absent(len(partitions)),
            was_in_sync=Column.absent(len(partitions)),
        )

    def take_by_source(
        self, answered: Int64s, reported: Int64s, leaderless: Int64s
    ) -> ObservationContext:
        """Return other rows by the source of each column; a negative row number is absent.

        `answered` are the rows for the leader's own answers, `reported` those for metadata from other
        brokers, `leaderless` those for metadata without a leader.
        """
        return replace(
            self.take(answered),
            replicas=self.replicas.take(reported),
            unclean_election_enabled=self.unclean_election_enabled.take(reported),
            isr_reported_us=self.isr_reported_us.take(reported),
            leaderless_epoch=self.leaderless_epoch.take(leaderless),
            electable=self.electable.take(leaderless),
        )

    def with_times(self, change: Callable[[Int64s], Int64s]) -> ObservationContext:
        """Return the context with its times changed."""
        return replace(
            self,
            high_watermark=self.high_watermark.with_times(change),
            isr_reported_us=self.isr_reported_us.changed(change),
            succeeded_us=self.succeeded_us.changed(change),
        )

    def succeeded(self, rows: Bools, now: Column, *, was_in_sync: Bools) -> ObservationContext:
        """Return the context with a new leader seen at `now` in the marked rows; the first time is kept."""
        is_first = rows & ~self.succeeded_us.valid
        return replace(
            self,
            succeeded_us=either(is_first, now, self.succeeded_us),
            was_in_sync=either(
                is_first, Column.known(was_in_sync.astype(np.int64)), self.was_in_sync
            ),
        )


def list_electable(partitions: Partitions, rows: Bools) -> Ragged:
    """Return for the marked rows the brokers whose election is clean: ISR, ELR and last known ELR."""
    lists = (partitions.isr, partitions.elr, partitions.last_known_elr)
    owner = np.concatenate([brokers.row_of_value for brokers in lists])
    chosen = rows[owner]
    order = np.argsort(owner[chosen], kind="stable")
    lengths = np.bincount(owner[chosen], minlength=len(partitions))
    starts = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)]).astype(np.int64)
    values = np.concatenate([brokers.values for brokers in lists])[chosen][order]
    return Ragged(starts, values, rows)
