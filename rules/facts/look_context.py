"""What rounds told of each partition beside its leader's own answer, kept with the last look at it.

How a leader came to lead is judged when it has told where the older epoch ended, and that may be some
rounds after it was elected. What is needed for that is therefore kept with the look, as it was before
the change: what comes after it is of another leader.
"""

from __future__ import annotations

from dataclasses import dataclass

from rules.facts.column import Column, Int64s, Ragged
from rules.facts.partitions import Partitions
from rules.facts.standing import Standing


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LookContext:
    """One row per partition, as `LastLooks` has them."""

    high_watermark: Standing  # as of the last round that the leader answered
    # As others told them while it led, also in rounds that it did not answer.
    replicas: Ragged
    unclean_election_enabled: Column
    isr_told_us: Column  # when the ISR of the look was told, in a round

    @classmethod
    def of(cls, partitions: Partitions, high_watermark: Standing, told_us: Column) -> LookContext:
        """Return what one round told; `high_watermark` begins with the rows of `partitions`."""
        return cls(
            high_watermark=high_watermark,
            replicas=partitions.replicas,
            unclean_election_enabled=partitions.unclean_election_enabled,
            isr_told_us=told_us,
        )

    def take(self, answered: Int64s, told: Int64s) -> LookContext:
        """Return rows in another order; of a negative row number nothing is known.

        `answered` are the rows of what a leader answered, `told` those of what others told of it.
        """
        return LookContext(
            high_watermark=self.high_watermark.take(answered),
            replicas=self.replicas.take(told),
            unclean_election_enabled=self.unclean_election_enabled.take(told),
            isr_told_us=self.isr_told_us.take(told),
        )

    def joined(self, other: LookContext) -> LookContext:
        """Return these rows, then those of `other`."""
        return LookContext(
            high_watermark=self.high_watermark.joined(other.high_watermark),
            replicas=self.replicas.joined(other.replicas),
            unclean_election_enabled=self.unclean_election_enabled.joined(
                other.unclean_election_enabled
            ),
            isr_told_us=self.isr_told_us.joined(other.isr_told_us),
        )
