"""How transactions ended since the start of the process: counters, and durations as a histogram.

Pure: every round makes a new value from the old one. Only the coordinators' log shows how a transaction
ended, so that nothing is exposed while it may not be read; the counts go on afterwards.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TypeAlias

from rules.facts.durations import Durations
from rules.facts.identity import BrokerId
from rules.facts.transaction_log import (
    Cut,
    EndedTransaction,
    Outcome,
    TransactionLog,
    measured_markers,
)

# Outcome and coordinator, which is absent where it is not known whose log the end was read from.
MarkersOf: TypeAlias = tuple[Outcome, BrokerId | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class EndedTransactions:
    """Counts of ended transactions so far."""

    is_known: bool = False  # whether the log could be read in the latest round
    durations: Mapping[Outcome, Durations] = field(
        default_factory=lambda: dict.fromkeys(Outcome, Durations())
    )
    marker_durations: Mapping[MarkersOf, Durations] = field(default_factory=dict)
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
            marker_durations=self._with_markers(log.ended),
            ended={outcome: n + len(by_outcome[outcome]) for outcome, n in self.ended.items()},
            fencings={cut: n + cuts[cut] for cut, n in self.fencings.items()},
        )

    def _with_markers(self, ended: Iterable[EndedTransaction]) -> dict[MarkersOf, Durations]:
        grouped: dict[MarkersOf, list[EndedTransaction]] = {}
        for transaction in ended:
            grouped.setdefault((transaction.outcome, transaction.coordinator), []).append(
                transaction
            )
        durations = dict(self.marker_durations)
        for key, transactions in grouped.items():
            before = durations.get(key, Durations())
            durations[key] = before.with_more(measured_markers(transactions))
        return durations


def _durations(transactions: Iterable[EndedTransaction]) -> Iterator[timedelta]:
    """Yield the durations; a transaction that ended before it began is counted and not measured.

    Begin and end are by the clocks of two brokers where the coordinator moved between them.
    """
    durations = (transaction.duration for transaction in transactions)
    return (duration for duration in durations if duration >= timedelta(0))
