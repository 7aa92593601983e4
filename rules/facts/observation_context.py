"""What rounds told of each partition beside its leader's own answer, kept with the last observation of it.

How a leader came to lead is judged when it has told where the older epoch ended, and that may be some
rounds after it was elected. What is needed for that is therefore kept with the observation, as it was before
the change: what comes after it is of another leader.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from rules.facts.column import Bools, Column, Int64s, Ragged
from rules.facts.partitions import Partitions
from rules.facts.unchanged_since import UnchangedSince, either


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ObservationContext:
    """One row per partition, as `LastObservations` has them."""

    high_watermark: UnchangedSince  # as of the last round that the leader answered
    # As others told them while it led, also in rounds that it did not answer.
    replicas: Ragged
    unclean_election_enabled: Column
    isr_reported_us: Column  # when the ISR of the observation was told, in a round
    # As it was told last while nobody led: the leader epoch, and who could be elected cleanly.
    leaderless_epoch: Column
    electable: Ragged
    # When another leader was first told of, and whether the one of the observation was in sync then: 1 or 0.
    succeeded_us: Column
    was_in_sync: Column

    @classmethod
    def of(
        cls, partitions: Partitions, high_watermark: UnchangedSince, reported_us: Column
    ) -> ObservationContext:
        """Return what one round told; `high_watermark` begins with the rows of `partitions`."""
        nobody_leads = ~partitions.leader.valid & partitions.isr.valid & partitions.elr.valid
        return cls(
            high_watermark=high_watermark,
            replicas=partitions.replicas,
            unclean_election_enabled=partitions.unclean_election_enabled,
            isr_reported_us=reported_us,
            leaderless_epoch=partitions.leader_epoch.where(nobody_leads),
            electable=_electable(partitions, nobody_leads),
            succeeded_us=Column.absent(len(partitions)),
            was_in_sync=Column.absent(len(partitions)),
        )

    def take(
        self, answered: Int64s, told: Int64s | None = None, leaderless: Int64s | None = None
    ) -> ObservationContext:
        """Return rows in another order; of a negative row number nothing is known.

        `answered` are the rows of what a leader answered, and by default of all; `told` those of what
        others told of it, `leaderless` those of what was told while nobody led.
        """
        told = answered if told is None else told
        leaderless = answered if leaderless is None else leaderless
        return ObservationContext(
            high_watermark=self.high_watermark.take(answered),
            replicas=self.replicas.take(told),
            unclean_election_enabled=self.unclean_election_enabled.take(told),
            isr_reported_us=self.isr_reported_us.take(told),
            leaderless_epoch=self.leaderless_epoch.take(leaderless),
            electable=self.electable.take(leaderless),
            succeeded_us=self.succeeded_us.take(answered),
            was_in_sync=self.was_in_sync.take(answered),
        )

    def joined(self, other: ObservationContext) -> ObservationContext:
        """Return these rows, then those of `other`."""
        return ObservationContext(
            high_watermark=self.high_watermark.joined(other.high_watermark),
            replicas=self.replicas.joined(other.replicas),
            unclean_election_enabled=self.unclean_election_enabled.joined(
                other.unclean_election_enabled
            ),
            isr_reported_us=self.isr_reported_us.joined(other.isr_reported_us),
            leaderless_epoch=self.leaderless_epoch.joined(other.leaderless_epoch),
            electable=self.electable.joined(other.electable),
            succeeded_us=self.succeeded_us.joined(other.succeeded_us),
            was_in_sync=self.was_in_sync.joined(other.was_in_sync),
        )

    def succeeded(self, rows: Bools, now: Column, *, was_in_sync: Bools) -> ObservationContext:
        """Return it with the rows whose leader is another one since now; the first time counts."""
        is_first = rows & ~self.succeeded_us.valid
        return replace(
            self,
            succeeded_us=either(is_first, now, self.succeeded_us),
            was_in_sync=either(
                is_first, Column.known(was_in_sync.astype(np.int64)), self.was_in_sync
            ),
        )


def _electable(partitions: Partitions, rows: Bools) -> Ragged:
    """Return for the marked rows who is in sync, eligible, or the last known to be: nobody else is clean."""
    lists = (partitions.isr, partitions.elr, partitions.last_known_elr)
    owner = np.concatenate([one.row_of_value for one in lists])
    chosen = rows[owner]
    order = np.argsort(owner[chosen], kind="stable")
    lengths = np.bincount(owner[chosen], minlength=len(partitions))
    starts = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)]).astype(np.int64)
    values = np.concatenate([one.values for one in lists])[chosen][order]
    return Ragged(starts, values, rows)
