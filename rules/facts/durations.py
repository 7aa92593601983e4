"""How long transactions or their markers took, counted by the buckets of their histograms in the metrics text."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from rules import names

BUCKETS: Final = tuple(timedelta(seconds=bound) for bound in names.DURATION_BUCKETS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Durations:
    """How long transactions of one kind, or their markers, took."""

    # Per bucket, not cumulative, in the order of their bounds; the last one has no bound.
    counts: tuple[int, ...] = (0,) * (len(BUCKETS) + 1)
    total: timedelta = timedelta(0)

    @property
    def number(self) -> int:
        """Return how many durations these are."""
        return sum(self.counts)

    @property
    def mean(self) -> timedelta | None:
        """Return the mean, None of none."""
        return self.total / self.number if self.number else None

    def above(self, bound: timedelta) -> int:
        """Return how many took longer than one of the bounds."""
        return sum(self.counts[BUCKETS.index(bound) + 1 :])

    def quantile(self, share: float) -> timedelta | None:
        """Return the bound of the bucket that holds a quantile: it took at most so long.

        None of none, and where it took longer than the largest bound.
        """
        seen, number = 0, self.number
        for bound, count in zip(BUCKETS, self.counts, strict=False):
            seen += count
            if number and seen >= share * number:
                return bound
        return None

    def with_more(self, more: Iterable[timedelta]) -> Durations:
        """Return the sum with more durations; a bound belongs to its bucket."""
        took = list(more)
        new_counts = Counter(bisect_left(BUCKETS, duration) for duration in took)
        return Durations(
            counts=tuple(count + new_counts[place] for place, count in enumerate(self.counts)),
            total=sum(took, self.total),
        )

    def plus(self, other: Durations) -> Durations:
        """Return the durations of both."""
        return Durations(
            counts=tuple(map(sum, zip(self.counts, other.counts, strict=True))),
            total=self.total + other.total,
        )
