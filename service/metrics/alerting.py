"""Stats of alerts and of sending them, and their values by metric."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from rules import names
from rules.names import Metric
from rules.verdict import Severity
from service.alerting.alerts.alert import AlertState
from service.alerting.sending.answers import Failure
from service.metrics.lines import Histogram, Values, single

AlertCounts = Mapping[tuple[str, Severity, AlertState], int]  # by rule; of those not over

_OUTCOMES = ("delivered", "superseded", "dead")


@dataclass(frozen=True, slots=True, kw_only=True)
class ReceiverStats:
    """Stats of sending to one receiver."""

    outcomes: Mapping[str, int] = field(default_factory=dict)  # of notifications, since the start
    failures: Mapping[str, int] = field(default_factory=dict)  # of attempts, since the start
    durations: tuple[int, ...]  # attempts by the buckets of the histogram, each alone
    seconds: float = 0.0  # that all attempts took
    # Of the outbox; None: it was not read since the start.
    waiting: int | None = None
    dead: int | None = None  # within a day
    oldest_seconds: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveryStats:
    """Stats of sending."""

    is_up: bool
    fallbacks: int = 0  # since the start
    rejected_rows: int = 0  # attempts that the database rejects for good, since the start
    receivers: Mapping[str, ReceiverStats] = field(default_factory=dict)  # by name, as they are set


@dataclass(frozen=True, slots=True, kw_only=True)
class AlertStats:
    """Stats of alerting."""

    alerts: AlertCounts = field(default_factory=dict)
    failures: int = 0  # steps that died of a defect, since the start


def alert_values(stats: AlertStats | None) -> dict[Metric, Values]:
    """Return the values of alerts: their number by rule, severity and state."""
    if stats is None:
        return {}
    return {
        names.ALERTS: [
            ({"rule": rule, "severity": severity, "state": state}, count)
            for (rule, severity, state), count in sorted(stats.alerts.items())
        ],
        names.ALERTING_FAILURES: single(stats.failures),
    }


def delivery_values(stats: DeliveryStats | None) -> dict[Metric, Values]:
    """Return the values of sending; none without a receiver."""
    if stats is None or not stats.receivers:
        return {}
    receivers = [({"receiver": name}, receiver) for name, receiver in stats.receivers.items()]
    return {
        names.OUTBOX_UP: single(int(stats.is_up)),
        names.NOTIFICATIONS: [
            ({**own, "outcome": outcome}, receiver.outcomes.get(outcome, 0))
            for own, receiver in receivers
            for outcome in _OUTCOMES
        ],
        names.NOTIFICATION_FAILURES: [
            ({**own, "failure": failure}, receiver.failures.get(failure, 0))
            for own, receiver in receivers
            for failure in Failure  # also those that never occurred: a rise from an absent series goes unnoticed
        ],
        names.NOTIFICATION_DURATION: [
            (own, Histogram(receiver.durations, receiver.seconds)) for own, receiver in receivers
        ],
        names.NOTIFICATIONS_WAITING: _present(
            (own, receiver.waiting) for own, receiver in receivers
        ),
        names.NOTIFICATIONS_OLDEST: _present(
            (own, receiver.oldest_seconds) for own, receiver in receivers
        ),
        names.NOTIFICATIONS_DEAD: _present((own, receiver.dead) for own, receiver in receivers),
        names.FALLBACKS: single(stats.fallbacks),
    }


def _present(values: Iterable[tuple[Mapping[str, str], float | None]]) -> Values:
    """Return the values that are known."""
    return [(own, value) for own, value in values if value is not None]
