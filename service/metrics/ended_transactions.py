"""How transactions ended since the start of the process: counters, and durations as a histogram.

Pure: every round makes a new value of the old one. Only the coordinators' log tells how a
transaction ended, so that nothing is shown while it may not be read; what was counted before is
shown again afterwards.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final

from rules import names
from rules.facts.transaction_log import Cut, EndedTransaction, Outcome, TransactionLog

BUCKETS: Final = tuple(timedelta(seconds=bound) for bound in names.TRANSACTION_DURATION.buckets)


@dataclass(frozen=True, slots=True, kw_only=True)
class Durations:
    """How long transactions of one outcome took."""

    # Of each bucket alone, in the order of their bounds; the last one has no bound.
    counts: tuple[int, ...] = (0,) * (len(BUCKETS) + 1)
    total: timedelta = timedelta(0)

    def with_more(self, more: Iterable[timedelta]) -> Durations:
        """Return it with more durations; a bound belongs to its bucket."""
        took = list(more)
        found = Counter(bisect_left(BUCKETS, duration) for duration in took)
        return Durations(
            counts=tuple(count + found[place] for place, count in enumerate(self.counts)),
            total=sum(took, self.total),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class EndedTransactions:
    """What was counted so far."""

    is_known: bool = False  # whether the log may be read, as far as the latest observation tells
    durations: Mapping[Outcome, Durations] = field(
        default_factory=lambda: dict.fromkeys(Outcome, Durations())
    )
    ended: Mapping[Outcome, int] = field(default_factory=lambda: dict.fromkeys(Outcome, 0))
    fencings: Mapping[Cut, int] = field(default_factory=lambda: dict.fromkeys(Cut, 0))

    def after(self, log: TransactionLog) -> EndedTransactions:
        """Return what is counted one round later."""
        by_outcome: dict[Outcome, list[EndedTransaction]] = {one: [] for one in Outcome}
        for one in log.ended:
            by_outcome[one.outcome].append(one)
        cuts = Counter(one.cut for one in log.ended)
        return EndedTransactions(
            is_known=log.is_read,
            durations={
                outcome: self.durations[outcome].with_more(_durations(found))
                for outcome, found in by_outcome.items()
            },
            ended={outcome: n + len(by_outcome[outcome]) for outcome, n in self.ended.items()},
            fencings={cut: n + cuts[cut] for cut, n in self.fencings.items()},
        )


def _durations(found: Iterable[EndedTransaction]) -> list[timedelta]:
    """Return how long each took; one that ended before it began is counted and not measured.

    Begin and end are by the clocks of two brokers where the coordinator moved between them.
    """
    return [one.duration for one in found if one.duration >= timedelta(0)]
