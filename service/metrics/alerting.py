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
    """Stats of sending to one receiver."""

    outcomes: Mapping[str, int] = field(default_factory=dict)  # of notifications, since the start
    failures: Mapping[str, int] = field(default_factory=dict)  # of attempts, since the start
    durations: tuple[int, ...]  # attempts by the buckets of the histogram, each alone
    seconds: float = 0.0  # that all attempts took
    waiting: int = 0
    dead: int = 0  # within a day
    oldest_seconds: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveryStats:
    """Stats of sending."""

    is_up: bool
    fallbacks: int = 0  # since the start
    receivers: Mapping[str, ReceiverStats] = field(default_factory=dict)  # by name, as they are set


@dataclass(frozen=True, slots=True, kw_only=True)
class AlertStats:
    """Stats of alerting."""

    alerts: AlertCounts = field(default_factory=dict)
    failures: int = 0  # steps that died of a defect, since the start


Samples = dict[Metric, bytes]


def alert_samples(cluster: str, stats: AlertStats | None) -> Samples:
    """Return the lines of alerts: their number by rule, severity and state."""
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
    """Return the lines of sending; none without a receiver."""
    if stats is None or not stats.receivers:
        return {}
    receivers = stats.receivers.items()
    by_outcome = [
        ({"receiver": name, "outcome": outcome}, receiver.outcomes.get(outcome, 0))
        for name, receiver in receivers
        for outcome in _OUTCOMES
    ]
    by_failure = [
        ({"receiver": name, "failure": str(failure)}, receiver.failures.get(failure, 0))
        for name, receiver in receivers
        for failure in Failure  # also those that never occurred: a rise from an absent series goes unnoticed
    ]
    durations = b"".join(
        histogram_lines(
            names.NOTIFICATION_DURATION,
            {"cluster": cluster, "receiver": name},
            receiver.durations,
            receiver.seconds,
        )
        for name, receiver in receivers
    )
    return {
        names.OUTBOX_UP: _line(names.OUTBOX_UP, cluster, int(stats.is_up)),
        names.NOTIFICATIONS: _lines(names.NOTIFICATIONS, cluster, by_outcome),
        names.NOTIFICATION_FAILURES: _lines(names.NOTIFICATION_FAILURES, cluster, by_failure),
        names.NOTIFICATION_DURATION: durations,
        names.NOTIFICATIONS_WAITING: _lines(
            names.NOTIFICATIONS_WAITING,
            cluster,
            [({"receiver": name}, receiver.waiting) for name, receiver in receivers],
        ),
        names.NOTIFICATIONS_OLDEST: _lines(
            names.NOTIFICATIONS_OLDEST,
            cluster,
            [({"receiver": name}, receiver.oldest_seconds) for name, receiver in receivers],
        ),
        names.NOTIFICATIONS_DEAD: _lines(
            names.NOTIFICATIONS_DEAD,
            cluster,
            [({"receiver": name}, receiver.dead) for name, receiver in receivers],
        ),
        names.FALLBACKS: _line(names.FALLBACKS, cluster, stats.fallbacks),
    }


def _line(metric: Metric, cluster: str, value: float) -> bytes:
    return line(metric, {"cluster": cluster}, value)


def _lines(
    metric: Metric, cluster: str, values: Sequence[tuple[Mapping[str, str], float]]
) -> bytes:
    return b"".join(line(metric, {"cluster": cluster, **own}, value) for own, value in values)
