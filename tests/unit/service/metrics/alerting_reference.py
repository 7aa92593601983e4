"""Stats of alerting for tests, and the samples that have to come of them, written out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from rules.verdict import Severity
from service.alerting.alerts.alert import AlertState
from service.metrics.alerting import AlertStats, DeliveryStats, ReceiverStats

Sample = tuple[str, Mapping[str, str], float | None]

DURATION: Final = "tidemark_notification_attempt_duration_seconds"
BOUNDS: Final = (
    *("0.01", "0.025", "0.05", "0.1", "0.25", "0.5"),
    *("1.0", "2.5", "5.0", "10.0", "20.0", "+Inf"),
)
FAILURES: Final = (
    *("timeout", "connection", "tls", "name", "address_denied", "redirect"),
    *("auth", "not_found", "rate_limited", "client_error", "server_error", "gone"),
)
ALERTS: Final = AlertStats(
    alerts={
        ("log_stuck", Severity.CRITICAL, AlertState.FIRING): 2,
        ("log_stuck", Severity.CRITICAL, AlertState.PENDING): 1,
    },
    failures=3,
)
DELIVERIES: Final = DeliveryStats(
    is_up=True,
    fallbacks=2,
    receivers={
        "pager": ReceiverStats(
            outcomes={"delivered": 40, "dead": 1},
            failures={"timeout": 3, "server_error": 1},
            durations=(30, 5, 5, 0, 0, 0, 0, 0, 0, 0, 3, 1),
            seconds=61.5,
            waiting=7,
            dead=1,
            oldest_seconds=12.25,
        ),
        "team": ReceiverStats(durations=(0,) * 12, waiting=0, dead=0, oldest_seconds=0.0),
        "unread": ReceiverStats(durations=(0,) * 12),
    },
)


def alert_samples(stats: AlertStats | None) -> Iterator[Sample]:
    if stats is None:
        return
    for (rule, severity, state), count in stats.alerts.items():
        labels = {"rule": rule, "severity": str(severity), "state": str(state)}
        yield "tidemark_alerts", labels, count
    yield "tidemark_alerting_failures_total", {}, stats.failures


def delivery_samples(stats: DeliveryStats | None) -> Iterator[Sample]:
    if stats is None:
        return
    start = "tidemark_notifications_"
    yield "tidemark_outbox_up", {}, int(stats.is_up)
    yield "tidemark_fallback_notifications_total", {}, stats.fallbacks
    for name, one in stats.receivers.items():
        labels = {"receiver": name}
        for outcome in ("delivered", "superseded", "dead"):
            count = one.outcomes.get(outcome, 0)
            yield start + "total", {**labels, "outcome": outcome}, count
        for failure in FAILURES:
            told = {**labels, "failure": failure}
            count = one.failures.get(failure, 0)
            yield "tidemark_notification_failures_total", told, count
        for place, bound in enumerate(BOUNDS):
            yield DURATION + "_bucket", {**labels, "le": bound}, sum(one.durations[: place + 1])
        yield DURATION + "_count", labels, sum(one.durations)
        yield DURATION + "_sum", labels, one.seconds
        backlog = {
            "waiting": one.waiting,
            "oldest_waiting_seconds": one.oldest_seconds,
            "dead": one.dead,
        }
        for suffix, value in backlog.items():
            if value is not None:
                yield start + suffix, labels, value
