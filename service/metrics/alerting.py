"""Samples of alerts, and of sending them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from rules import names
from rules.names import Metric
from rules.verdict import Severity
from service.alerting.alerts.alert import AlertState
from service.alerting.sending.answers import Failure
from service.metrics.lines import histogram_lines, line

AlertCounts = Mapping[tuple[str, Severity, AlertState], int]  # by rule; of those not over

_OUTCOMES = ("delivered", "superseded", "dead")


@dataclass(frozen=True, slots=True, kw_only=True)
class ReceiverStats:
    """How sending to one receiver goes."""

    outcomes: Mapping[str, int] = field(default_factory=dict)  # of notifications, since the start
    failures: Mapping[str, int] = field(default_factory=dict)  # of attempts, since the start
    durations: tuple[int, ...]  # attempts by the buckets of the histogram, each alone
    seconds: float = 0.0  # that all attempts took
    waiting: int = 0
    dead: int = 0  # within a day
    oldest_seconds: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveryStats:
    """How sending goes."""

    is_up: bool
    fallbacks: int = 0  # since the start
    receivers: Mapping[str, ReceiverStats] = field(default_factory=dict)  # by name, as they are set


@dataclass(frozen=True, slots=True, kw_only=True)
class AlertStats:
    """How alerting goes."""

    alerts: AlertCounts = field(default_factory=dict)
    failures: int = 0  # steps that died of a defect, since the start


Samples = dict[Metric, bytes]


def alert_samples(cluster: str, stats: AlertStats | None) -> Samples:
    """Write what is known of alerts: those there are, by rule."""
    if stats is None:
        return {}
    counts = [
        ({"rule": rule, "severity": str(severity), "state": str(state)}, count)
        for (rule, severity, state), count in sorted(stats.alerts.items())
    ]
    return {
        names.ALERTS: _lines(names.ALERTS, cluster, counts),
        names.ALERTING_FAILURES: _line(names.ALERTING_FAILURES, cluster, stats.failures),
    }


def delivery_samples(cluster: str, stats: DeliveryStats | None) -> Samples:
    """Write how sending goes; without a receiver there is nothing to tell."""
    if stats is None or not stats.receivers:
        return {}
    told = stats.receivers.items()
    by_outcome = [
        ({"receiver": name, "outcome": outcome}, one.outcomes.get(outcome, 0))
        for name, one in told
        for outcome in _OUTCOMES
    ]
    by_failure = [
        ({"receiver": name, "failure": str(failure)}, one.failures.get(failure, 0))
        for name, one in told
        for failure in Failure  # also those that never were: a rise from nothing is seen by nobody
    ]
    durations = b"".join(
        histogram_lines(
            names.NOTIFICATION_DURATION,
            {"cluster": cluster, "receiver": name},
            one.durations,
            one.seconds,
        )
        for name, one in told
    )
    return {
        names.OUTBOX_UP: _line(names.OUTBOX_UP, cluster, int(stats.is_up)),
        names.NOTIFICATIONS: _lines(names.NOTIFICATIONS, cluster, by_outcome),
        names.NOTIFICATION_FAILURES: _lines(names.NOTIFICATION_FAILURES, cluster, by_failure),
        names.NOTIFICATION_DURATION: durations,
        names.NOTIFICATIONS_WAITING: _lines(
            names.NOTIFICATIONS_WAITING,
            cluster,
            [({"receiver": name}, one.waiting) for name, one in told],
        ),
        names.NOTIFICATIONS_OLDEST: _lines(
            names.NOTIFICATIONS_OLDEST,
            cluster,
            [({"receiver": name}, one.oldest_seconds) for name, one in told],
        ),
        names.NOTIFICATIONS_DEAD: _lines(
            names.NOTIFICATIONS_DEAD,
            cluster,
            [({"receiver": name}, one.dead) for name, one in told],
        ),
        names.FALLBACKS: _line(names.FALLBACKS, cluster, stats.fallbacks),
    }


def _line(metric: Metric, cluster: str, value: float) -> bytes:
    return line(metric, {"cluster": cluster}, value)


def _lines(
    metric: Metric, cluster: str, values: Sequence[tuple[Mapping[str, str], float]]
) -> bytes:
    return b"".join(line(metric, {"cluster": cluster, **own}, value) for own, value in values)
