"""The metrics of alerts and of sending notifications."""

from __future__ import annotations

from typing import Final

from rules.names.metric import CLUSTER_LABELS, Metric, Unit

_RECEIVER_LABELS: Final = (*CLUSTER_LABELS, "receiver")
_ATTEMPT_BUCKETS: Final = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 20.0)

ALERTS: Final = Metric(
    name="tidemark_alerts",
    help="Alerts by rule: pending, which wait for their rule's `for`, and firing; absent where "
    "there are none.",
    unit=Unit.ALERTS,
    labels=(*CLUSTER_LABELS, "rule", "severity", "state"),
)
ALERTING_FAILURES: Final = Metric(
    name="tidemark_alerting_failures_total",
    help="Rounds whose alerts could not be evaluated because of a defect of Tidemark.",
    unit=Unit.ROUNDS,
)
OUTBOX_UP: Final = Metric(
    name="tidemark_outbox_up",
    help="Whether notifications can be fetched from the database, and their results stored.",
    unit=Unit.FLAG,
)
NOTIFICATIONS: Final = Metric(
    name="tidemark_notifications_total",
    help="Completed notifications by outcome: delivered, superseded by a newer one of their group "
    "with the same content, or dead: given up without delivery.",
    unit=Unit.NOTIFICATIONS,
    labels=(*_RECEIVER_LABELS, "outcome"),
)
NOTIFICATION_FAILURES: Final = Metric(
    name="tidemark_notification_failures_total",
    help="Failed delivery attempts by reason; most are retried.",
    unit=Unit.ATTEMPTS,
    labels=(*_RECEIVER_LABELS, "failure"),
)
NOTIFICATION_DURATION: Final = Metric(
    name="tidemark_notification_attempt_duration_seconds",
    help="Duration of delivery attempts, from resolving the name to the response.",
    unit=Unit.SECONDS,
    labels=_RECEIVER_LABELS,
    buckets=_ATTEMPT_BUCKETS,
)
NOTIFICATIONS_WAITING: Final = Metric(
    name="tidemark_notifications_waiting",
    help="Notifications that wait or are being sent.",
    unit=Unit.NOTIFICATIONS,
    labels=_RECEIVER_LABELS,
)
NOTIFICATIONS_OLDEST: Final = Metric(
    name="tidemark_notifications_oldest_waiting_seconds",
    help="How long the oldest waiting notification, or the one that it superseded, has waited; 0 if none.",
    unit=Unit.SECONDS,
    labels=_RECEIVER_LABELS,
)
NOTIFICATIONS_DEAD: Final = Metric(
    name="tidemark_notifications_dead",
    help="Notifications that were given up within the last day; they can be replayed.",
    unit=Unit.NOTIFICATIONS,
    labels=_RECEIVER_LABELS,
)
FALLBACKS: Final = Metric(
    name="tidemark_fallback_notifications_total",
    help="Notifications that were sent to the fallback receiver in place of another one.",
    unit=Unit.NOTIFICATIONS,
)

ALERTING_METRICS: Final = (
    ALERTS,
    ALERTING_FAILURES,
    OUTBOX_UP,
    NOTIFICATIONS,
    NOTIFICATION_FAILURES,
    NOTIFICATION_DURATION,
    NOTIFICATIONS_WAITING,
    NOTIFICATIONS_OLDEST,
    NOTIFICATIONS_DEAD,
    FALLBACKS,
)
