"""Alerts and delivery: what fires, who was notified, and what did not arrive?"""

from __future__ import annotations

from typing import Final

from grafana_foundation_sdk.models import units

from dashboards.annotations import firing_alerts
from dashboards.boards.fleet import SEVERITIES
from dashboards.links import Uid, from_row, to_board, to_rule_page
from dashboards.panels import (
    ATTENTION_ABOVE_ZERO,
    BAD_AT_ZERO,
    GOOD_AT_ZERO,
    Board,
    Color,
    Column,
    Graph,
    Heatmap,
    Latest,
    Section,
    Series,
    SqlRows,
    Stat,
    StateTimeline,
    Step,
    Table,
)
from dashboards.postgres import chosen, select, within
from dashboards.promql import (
    Expression,
    Scope,
    equals,
    largest,
    or_zero,
    quantile,
    smallest,
    top,
    total,
)
from rules import names

SCOPE: Final = Scope(("cluster", "rule", "receiver"))
REPORTING: Final = largest(SCOPE.value(names.ROUND_INTERVAL), "cluster")
YES_NO: Final = {"1": ("yes", Color.GOOD), "0": ("no", Color.BAD)}


def _alerts(state: str) -> Expression:
    alerts = total(SCOPE.value(names.ALERTS, equals("state", state)), "cluster")
    return total(or_zero(alerts, REPORTING))


STATS: Final = (
    Stat(
        number=1,
        title="Firing",
        description="Alerts that fire now, silenced ones among them.",
        unit=units.Short,
        queries=(Latest(_alerts("firing")),),
        steps=GOOD_AT_ZERO,
    ),
    Stat(
        number=2,
        title="Pending",
        description="Alerts that wait for the time that their rule sets before it fires.",
        unit=units.Short,
        queries=(Latest(_alerts("pending")),),
        steps=ATTENTION_ABOVE_ZERO,
    ),
    Stat(
        number=3,
        title="Waiting notifications",
        description="Notifications that wait or are being sent.",
        unit=units.Short,
        queries=(Latest(total(SCOPE.value(names.NOTIFICATIONS_WAITING))),),
    ),
    Stat(
        number=4,
        title="Longest wait",
        description="How long the oldest notification has waited. Minutes mean that a receiver does not answer.",
        unit=units.Seconds,
        queries=(Latest(largest(SCOPE.value(names.NOTIFICATIONS_OLDEST))),),
        steps=(Step(0, Color.GOOD), Step(60, Color.ATTENTION), Step(300, Color.BAD)),
    ),
    Stat(
        number=5,
        title="Given up",
        description="Notifications that were given up within a day. `tidemark deliveries replay` sends them again.",
        unit=units.Short,
        queries=(Latest(total(SCOPE.value(names.NOTIFICATIONS_DEAD))),),
        steps=GOOD_AT_ZERO,
    ),
    Stat(
        number=6,
        title="Outbox works",
        description="Whether notifications can be read from the database, and their results stored.",
        unit=units.BoolYesNo,
        queries=(Latest(smallest(SCOPE.value(names.OUTBOX_UP))),),
        steps=BAD_AT_ZERO,
        words=YES_NO,
        links=(to_board(Uid.TIDEMARK, "Tidemark itself", "cluster"),),
    ),
)

COURSE: Final = (
    StateTimeline(
        number=10,
        title="When which rule fired",
        description="A bar while alerts of a rule fire: the ten rules with the most alerts. The first bar is often "
        "the cause of the others.",
        unit=units.Short,
        queries=(
            Series(
                top(
                    10,
                    total(SCOPE.value(names.ALERTS, equals("state", "firing")), "cluster", "rule"),
                ),
                "{{cluster}} {{rule}}",
            ),
        ),
        width=24,
        steps=(Step(0, Color.GOOD), Step(1, Color.ATTENTION)),
        words={"0": ("no alert", Color.GOOD)},
    ),
    Graph(
        number=11,
        title="Notifications by outcome",
        description="Completed notifications per second. superseded: a newer one of its group had the same content. "
        "dead: given up.",
        unit=units.OpsPerSecond,
        queries=(
            Series(
                total(SCOPE.rate(names.NOTIFICATIONS), "receiver", "outcome"),
                "{{receiver}}, {{outcome}}",
            ),
        ),
    ),
    Graph(
        number=12,
        title="Failed attempts by reason",
        description="Attempts that failed per second; most are tried again.",
        unit=units.OpsPerSecond,
        queries=(
            Series(
                top(10, total(SCOPE.rate(names.NOTIFICATION_FAILURES), "receiver", "failure")),
                "{{receiver}}, {{failure}}",
            ),
        ),
    ),
    Graph(
        number=13,
        title="How long receivers take",
        description="Duration of delivery attempts, from resolving the name to the response: half of them, and 99 %.",
        unit=units.Seconds,
        queries=(
            Series(
                quantile(0.5, SCOPE.bucket_rate(names.NOTIFICATION_DURATION), "receiver"),
                "{{receiver}}, half",
            ),
            Series(
                quantile(0.99, SCOPE.bucket_rate(names.NOTIFICATION_DURATION), "receiver"),
                "{{receiver}}, 99 %",
            ),
        ),
    ),
    Heatmap(
        number=14,
        title="Attempts by duration",
        description="How many attempts took how long.",
        unit=units.Seconds,
        queries=(Series(total(SCOPE.bucket_rate(names.NOTIFICATION_DURATION), "le")),),
    ),
    Graph(
        number=15,
        title="Waiting by receiver",
        description="Notifications that wait, by receiver.",
        unit=units.Short,
        queries=(
            Series(total(SCOPE.value(names.NOTIFICATIONS_WAITING), "receiver"), "{{receiver}}"),
        ),
    ),
    Graph(
        number=16,
        title="Longest wait by receiver",
        description="How long the oldest notification of each receiver has waited.",
        unit=units.Seconds,
        queries=(
            Series(largest(SCOPE.value(names.NOTIFICATIONS_OLDEST), "receiver"), "{{receiver}}"),
        ),
        steps=(Step(0, Color.GOOD), Step(60, Color.ATTENTION)),
    ),
    Graph(
        number=17,
        title="Sent to the fallback receiver",
        description="Notifications that went to the fallback receiver in place of another one, within each step.",
        unit=units.Short,
        queries=(
            Series(
                total(SCOPE.increase(names.FALLBACKS, over="$__rate_interval"), "cluster"),
                "{{cluster}}",
            ),
        ),
    ),
    Graph(
        number=18,
        title="Rounds whose alerts could not be evaluated",
        description="Failures of alerting itself, within each step: a defect of Tidemark.",
        unit=units.Short,
        queries=(
            Series(
                total(SCOPE.increase(names.ALERTING_FAILURES, over="$__rate_interval"), "cluster"),
                "{{cluster}}",
            ),
        ),
        steps=(Step(0, Color.GOOD), Step(1, Color.BAD)),
    ),
)

WHICH: Final = (chosen("cluster", "cluster"), chosen("rule", "rule"))
TABLES: Final = (
    Table(
        number=20,
        title="Alerts",
        description="Alerts that are pending or fire, the worst first, and who acknowledged them.",
        queries=(
            SqlRows(
                select(
                    "cluster, rule, severity, state, reason, topic, partition, consumer_group, "
                    "transactional_id, active_at, fired_at, acknowledged_by",
                    "alerts",
                    *WHICH,
                    "state <> 'resolved'",
                    order="array_position(ARRAY['critical', 'warning', 'info'], severity), active_at",
                )
            ),
        ),
        columns=(
            Column(source="cluster", title="Cluster"),
            Column(source="rule", title="Rule", links=(to_rule_page(),)),
            Column(source="severity", title="Severity", words=SEVERITIES),
            Column(source="state", title="State"),
            Column(source="reason", title="Reason"),
            Column(
                source="topic",
                title="Topic",
                links=(
                    from_row(
                        Uid.PIPELINE, "Pipeline of this topic", cluster="cluster", topic="topic"
                    ),
                ),
            ),
            Column(source="partition", title="Partition", unit=units.NoUnit),
            Column(
                source="consumer_group",
                title="Group",
                links=(
                    from_row(Uid.GROUPS, "This group", cluster="cluster", group="consumer_group"),
                ),
            ),
            Column(source="transactional_id", title="Transactional id"),
            Column(source="active_at", title="Active", unit=units.DateTimeFromNow),
            Column(source="fired_at", title="Fired", unit=units.DateTimeFromNow),
            Column(source="acknowledged_by", title="Acknowledged by"),
        ),
    ),
    Table(
        number=21,
        title="What alerts did",
        description="Transitions of alerts in the time that is shown, the latest first.",
        queries=(
            SqlRows(
                select(
                    "at, cluster, rule, severity, transition, reason, topic, partition, consumer_group",
                    "alert_transitions",
                    *WHICH,
                    within("at"),
                    order="at DESC",
                )
            ),
        ),
        columns=(
            Column(source="at", title="Time", unit=units.DatetimeISO),
            Column(source="cluster", title="Cluster"),
            Column(source="rule", title="Rule", links=(to_rule_page(),)),
            Column(source="severity", title="Severity", words=SEVERITIES),
            Column(source="transition", title="Transition"),
            Column(source="reason", title="Reason"),
            Column(source="topic", title="Topic"),
            Column(source="partition", title="Partition", unit=units.NoUnit),
            Column(source="consumer_group", title="Group"),
        ),
    ),
    Table(
        number=22,
        title="Notifications",
        description="Notifications of the time that is shown, and those that still wait, the latest first.",
        queries=(
            SqlRows(
                select(
                    "created_at, cluster, receiver, reason, is_firing, alerts, state, attempts, "
                    "last_failure, done_at, dead_reason",
                    "notifications",
                    f"(cluster IS NULL OR {chosen('cluster', 'cluster')})",
                    chosen("receiver", "receiver"),
                    f"(done_at IS NULL OR {within('created_at')})",
                    order="created_at DESC",
                )
            ),
        ),
        columns=(
            Column(source="created_at", title="Time", unit=units.DatetimeISO),
            Column(source="cluster", title="Cluster"),
            Column(source="receiver", title="Receiver"),
            Column(source="reason", title="Reason"),
            Column(source="is_firing", title="Firing", unit=units.BoolYesNo),
            Column(source="alerts", title="Alerts"),
            Column(
                source="state",
                title="State",
                words={
                    "delivered": ("delivered", Color.GOOD),
                    "waiting": ("waiting", Color.ATTENTION),
                    "sending": ("sending", Color.ATTENTION),
                    "superseded": ("superseded", Color.NEUTRAL),
                    "dead": ("given up", Color.BAD),
                },
            ),
            Column(source="attempts", title="Attempts"),
            Column(source="last_failure", title="Last failure"),
            Column(source="done_at", title="Completed", unit=units.DateTimeFromNow),
            Column(source="dead_reason", title="Given up because"),
        ),
    ),
    Table(
        number=23,
        title="Silences",
        description="What holds back notifications now or later. Alerts still fire meanwhile.",
        queries=(
            SqlRows(
                select(
                    "matchers, starts_at, ends_at, created_by, comment",
                    "silences",
                    "ends_at > now()",
                    order="starts_at",
                )
            ),
        ),
        columns=(
            Column(source="matchers", title="Matchers"),
            Column(source="starts_at", title="From", unit=units.DatetimeISO),
            Column(source="ends_at", title="Until", unit=units.DatetimeISO),
            Column(source="created_by", title="By"),
            Column(source="comment", title="Comment"),
        ),
        height=6,
    ),
)

BOARD: Final = Board(
    uid=Uid.ALERTS,
    title="Alerts and delivery",
    question="What fires, who was notified, and what did not arrive?",
    variables=("cluster", "rule", "receiver"),
    sections=(
        Section(title="Now", panels=STATS),
        Section(title="Since when", panels=COURSE),
        Section(title="Which alerts and notifications", panels=TABLES),
    ),
    annotations=(firing_alerts(),),
    hours=24,
)
