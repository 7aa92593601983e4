"""How transactions ended since the start of the process: counters, and durations as a histogram.

Pure: every round makes a new value from the old one. Only the coordinators' log shows how a transaction
ended, so that nothing is exposed while it may not be read; the counts go on afterwards.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import timedelta

from rules.facts.durations import Durations
from rules.facts.transaction_log import Cut, EndedTransaction, Outcome, TransactionLog


@dataclass(frozen=True, slots=True, kw_only=True)
class EndedTransactions:
    """Counts of ended transactions so far."""

    is_known: bool = False  # whether the log could be read in the latest round
    durations: Mapping[Outcome, Durations] = field(
        default_factory=lambda: dict.fromkeys(Outcome, Durations())
    )
    marker_durations: Mapping[Outcome, Durations] = field(
        default_factory=lambda: dict.fromkeys(Outcome, Durations())
    )
    ended: Mapping[Outcome, int] = field(default_factory=lambda: dict.fromkeys(Outcome, 0))
    fencings: Mapping[Cut, int] = field(default_factory=lambda: dict.fromkeys(Cut, 0))

    def after(self, log: TransactionLog) -> EndedTransactions:
        """Return the counts one round later."""
        by_outcome: dict[Outcome, list[EndedTransaction]] = {outcome: [] for outcome in Outcome}
        for transaction in log.ended:
            by_outcome[transaction.outcome].append(transaction)
        cuts = Counter(transaction.cut for transaction in log.ended)
        return EndedTransactions(
            is_known=log.is_read,
            durations={
                outcome: self.durations[outcome].with_more(_durations(transactions))
                for outcome, transactions in by_outcome.items()
            },
            marker_durations={
                outcome: self.marker_durations[outcome].with_more(_marker_durations(transactions))
                for outcome, transactions in by_outcome.items()
            },
            ended={outcome: n + len(by_outcome[outcome]) for outcome, n in self.ended.items()},
            fencings={cut: n + cuts[cut] for cut, n in self.fencings.items()},
        )


def _durations(transactions: Iterable[EndedTransaction]) -> Iterator[timedelta]:
    """Yield the durations; a transaction that ended before it began is counted and not measured.

    Begin and end are by the clocks of two brokers where the coordinator moved between them.
    """
    durations = (transaction.duration for transaction in transactions)
    return (duration for duration in durations if duration >= timedelta(0))


def _marker_durations(transactions: Iterable[EndedTransaction]) -> Iterator[timedelta]:
    """Yield how long markers took, where decision and end were read in this order of their clocks."""
    durations = (transaction.marker_duration for transaction in transactions)
    return (took for took in durations if took is not None and took >= timedelta(0))
