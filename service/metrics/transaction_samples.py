"""The sample lines of transactions: open ones of a round, and ended ones so far."""

from __future__ import annotations

from rules import names
from rules.facts.transaction_log import Outcome
from rules.names import Metric
from service.metrics.ended_transactions import EndedTransactions
from service.metrics.lines import histogram_lines, line
from service.metrics.open_transactions import OpenTransactions


def open_samples(cluster: str, transactions: OpenTransactions) -> dict[Metric, bytes]:
    """Return the lines of open transactions; a class that cannot be known has none."""
    return {
        metric: b"".join(
            line(metric, {"cluster": cluster, "class": class_}, value)
            for class_, value in values.items()
        )
        for metric, values in (
            (names.OPEN_TRANSACTIONS, transactions.counts),
            (names.OLDEST_TRANSACTION, transactions.age_seconds),
        )
    }


def ended_samples(cluster: str, transactions: EndedTransactions) -> dict[Metric, bytes]:
    """Return the lines of ended transactions; none while the log may not be read."""
    if not transactions.is_known:
        return dict.fromkeys(names.ENDED_METRICS, b"")
    own = {"cluster": cluster}
    histogram, fencings = names.TRANSACTION_DURATION, names.TRANSACTION_FENCINGS
    commits, aborts = names.TRANSACTION_COMMITS, names.TRANSACTION_ABORTS
    return {
        histogram: b"".join(
            histogram_lines(
                histogram, {**own, "outcome": outcome}, took.counts, took.total.total_seconds()
            )
            for outcome, took in transactions.durations.items()
        ),
        commits: line(commits, own, transactions.ended[Outcome.COMMITTED]),
        aborts: line(aborts, own, transactions.ended[Outcome.ABORTED]),
        fencings: b"".join(
            line(fencings, {**own, "cause": cut}, count)
            for cut, count in transactions.fencings.items()
        ),
    }
