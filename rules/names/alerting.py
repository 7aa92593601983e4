"""What Tidemark tells about its alerts, and about sending them."""

from __future__ import annotations

from typing import Final

from rules.names.metric import CLUSTER_LABELS, Metric, MetricType, Unit

RECEIVER_LABELS: Final = (*CLUSTER_LABELS, "receiver")
DURATION_BUCKETS: Final = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 20.0)

ALERTS: Final = Metric(
    name="tidemark_alerts",
    help="Alerts by rule: pending, which wait for their rule's `for`, and firing; none have no sample.",
    unit=Unit.ALERTS,
    labels=(*CLUSTER_LABELS, "rule", "severity", "state"),
)
ALERTING_FAILURES: Final = Metric(
    name="tidemark_alerting_failures_total",
    help="Rounds whose alerts could not be worked out for a defect of Tidemark.",
    unit=Unit.ROUNDS,
    labels=CLUSTER_LABELS,
    type=MetricType.COUNTER,
)
OUTBOX_UP: Final = Metric(
    name="tidemark_outbox_up",
    help="Whether the database lets notifications be fetched and what became of them be stored.",
    unit=Unit.FLAG,
    labels=CLUSTER_LABELS,
)
NOTIFICATIONS: Final = Metric(
    name="tidemark_notifications_total",
    help="Notifications that are over, by outcome: delivered, superseded by a newer one of their "
    "group that says all they did, or dead, which nobody will ever get.",
    unit=Unit.NOTIFICATIONS,
    labels=(*RECEIVER_LABELS, "outcome"),
    type=MetricType.COUNTER,
)
NOTIFICATION_FAILURES: Final = Metric(
    name="tidemark_notification_failures_total",
    help="Attempts to deliver that failed, by why; most are tried again.",
    unit=Unit.ATTEMPTS,
    labels=(*RECEIVER_LABELS, "failure"),
    type=MetricType.COUNTER,
)
NOTIFICATION_DURATION: Final = Metric(
    name="tidemark_notification_attempt_duration_seconds",
    help="How long attempts to deliver took, from resolving the name to the answer.",
    unit=Unit.SECONDS,
    labels=RECEIVER_LABELS,
    type=MetricType.HISTOGRAM,
    buckets=DURATION_BUCKETS,
)
NOTIFICATIONS_WAITING: Final = Metric(
    name="tidemark_notifications_waiting",
    help="Notifications that wait or are on their way.",
    unit=Unit.NOTIFICATIONS,
    labels=RECEIVER_LABELS,
)
NOTIFICATIONS_OLDEST: Final = Metric(
    name="tidemark_notifications_oldest_waiting_seconds",
    help="For how long the oldest of them has waited, or what it took the place of; 0 if there is none.",
    unit=Unit.SECONDS,
    labels=RECEIVER_LABELS,
)
NOTIFICATIONS_DEAD: Final = Metric(
    name="tidemark_notifications_dead",
    help="Notifications that were given up within a day; a person may replay them.",
    unit=Unit.NOTIFICATIONS,
    labels=RECEIVER_LABELS,
)
FALLBACKS: Final = Metric(
    name="tidemark_fallback_notifications_total",
    help="Notifications that the fallback receiver was told in the place of another one.",
    unit=Unit.NOTIFICATIONS,
    labels=CLUSTER_LABELS,
    type=MetricType.COUNTER,
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
