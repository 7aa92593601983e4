"""Fleet overview: is anything wrong, in which cluster, and where do I read on?"""

from __future__ import annotations

from typing import Final

from grafana_foundation_sdk.models import units

from dashboards.annotations import firing_alerts, open_losses
from dashboards.links import Uid, from_row, from_series, to_board, to_rule_page
from dashboards.panels import (
    ATTENTION_ABOVE_ZERO,
    BAD_AT_ZERO,
    GOOD_AT_ZERO,
    Board,
    Color,
    Column,
    Graph,
    Latest,
    Section,
    Series,
    Stat,
    Step,
    Table,
)
from dashboards.partitions import UNDER_MIN_ISR, WITHOUT_LEADER
from dashboards.promql import (
    Expression,
    Scope,
    any_of,
    count,
    equals,
    largest,
    or_zero,
    top,
    total,
    where_above,
)
from rules import names

SCOPE: Final = Scope(("cluster",))
REPORTING: Final = largest(SCOPE.value(names.ROUND_INTERVAL), "cluster")
FIRING: Final = equals("state", "firing")
SEVERITIES: Final = {
    "critical": ("critical", Color.BAD),
    "warning": ("warning", Color.ATTENTION),
    "info": ("info", Color.NEUTRAL),
}


def _alerts(severity: str) -> Expression:
    alerts = total(SCOPE.value(names.ALERTS, FIRING, equals("severity", severity)), "cluster")
    return total(or_zero(alerts, REPORTING))


LOST: Final = any_of("outcome", "lost", "may_be_lost", "read_beyond", "unclean")

STATS: Final = (
    Stat(
        number=1,
        title="Clusters observed",
        description="Clusters whose Tidemark is scraped. Compare it with how many you have: a cluster that "
        "nobody observes is on none of these dashboards.",
        unit=units.Short,
        queries=(Latest(count(REPORTING)),),
        steps=BAD_AT_ZERO,
    ),
    Stat(
        number=2,
        title="Oldest observation",
        description="Age of the oldest cluster's latest snapshot. Above a few intervals (15 s each) everything "
        "else on this page is history: see Tidemark itself.",
        unit=units.Seconds,
        queries=(Latest(largest(SCOPE.age(names.LAST_SUCCESS))),),
        steps=(Step(0, Color.GOOD), Step(60, Color.ATTENTION), Step(300, Color.BAD)),
        links=(to_board(Uid.TIDEMARK, "Tidemark itself", "cluster"),),
    ),
    Stat(
        number=3,
        title="Critical alerts",
        description="Alerts of severity critical that fire. They page.",
        unit=units.Short,
        queries=(Latest(_alerts("critical")),),
        steps=GOOD_AT_ZERO,
        links=(to_board(Uid.ALERTS, "Alerts and delivery", "cluster"),),
    ),
    Stat(
        number=4,
        title="Warnings",
        description="Alerts of severity warning that fire: for today, not for tonight.",
        unit=units.Short,
        queries=(Latest(_alerts("warning")),),
        steps=ATTENTION_ABOVE_ZERO,
        links=(to_board(Uid.ALERTS, "Alerts and delivery", "cluster"),),
    ),
    Stat(
        number=5,
        title="Open losses",
        description="Partitions that lost records, or may have. A loss stays open for a day, or until a person "
        "closes it.",
        unit=units.Short,
        queries=(Latest(total(SCOPE.value(names.LOSS_PARTITIONS, LOST))),),
        steps=GOOD_AT_ZERO,
        links=(to_board(Uid.LOSSES, "Losses and sequence gaps", "cluster"),),
    ),
    Stat(
        number=6,
        title="Hanging transactions",
        description="Open transactions that no coordinator will ever end: read_committed consumers wait until "
        "a person aborts them. Unknown while a coordinator does not answer.",
        unit=units.Short,
        queries=(Latest(total(SCOPE.value(names.OPEN_TRANSACTIONS, equals("class", "hanging")))),),
        steps=GOOD_AT_ZERO,
        links=(to_board(Uid.TRANSACTIONS, "Transactions and producers", "cluster"),),
    ),
    Stat(
        number=7,
        title="Partitions without leader",
        description="Nobody can write to or read from them.",
        unit=units.Short,
        queries=(Latest(WITHOUT_LEADER.number(SCOPE)),),
        steps=GOOD_AT_ZERO,
        links=(to_board(Uid.REPLICATION, "Replication", "cluster"),),
    ),
    Stat(
        number=8,
        title="Partitions under min ISR",
        description="Fewer replicas are in sync than min.insync.replicas: producers with acks=all are rejected, "
        "and the next dead broker may lose records.",
        unit=units.Short,
        queries=(Latest(UNDER_MIN_ISR.number(SCOPE)),),
        steps=GOOD_AT_ZERO,
        links=(to_board(Uid.REPLICATION, "Replication", "cluster"),),
    ),
    Stat(
        number=9,
        title="Longest lag",
        description="Time lag of the group that is furthest behind, for read_committed readers.",
        unit=units.Seconds,
        queries=(Latest(largest(SCOPE.value(names.READ_COMMITTED_LAG_SECONDS))),),
        steps=(Step(0, Color.GOOD), Step(300, Color.ATTENTION), Step(3600, Color.BAD)),
        links=(to_board(Uid.GROUPS, "Consumer groups", "cluster"),),
    ),
    Stat(
        number=10,
        title="Not judged",
        description="Subjects whose rules answer UNKNOWN because data is missing. It is neither good nor bad "
        "news: it is what Tidemark cannot see.",
        unit=units.Short,
        queries=(Latest(total(SCOPE.value(names.VERDICTS, equals("verdict", "unknown")))),),
        steps=ATTENTION_ABOVE_ZERO,
        links=(to_board(Uid.TIDEMARK, "Tidemark itself", "cluster"),),
    ),
    Stat(
        number=11,
        title="Undelivered notifications",
        description="Notifications that were given up within a day: somebody was not notified.",
        unit=units.Short,
        queries=(Latest(total(SCOPE.value(names.NOTIFICATIONS_DEAD))),),
        steps=GOOD_AT_ZERO,
        links=(to_board(Uid.ALERTS, "Alerts and delivery", "cluster"),),
    ),
    Stat(
        number=12,
        title="Partitions at risk",
        description="Partitions that may lose records with their leader: an ISR smaller than the replica set, or "
        "a high watermark that does not follow the log end.",
        unit=units.Short,
        queries=(Latest(total(SCOPE.value(names.AT_RISK_PARTITIONS))),),
        steps=ATTENTION_ABOVE_ZERO,
        links=(to_board(Uid.REPLICATION, "Replication", "cluster"),),
    ),
)

COURSE: Final = (
    Graph(
        number=20,
        title="Firing alerts by rule",
        description="When what began, and in which order: the earliest is often the cause of the others.",
        unit=units.Short,
        queries=(
            Series(
                top(10, total(SCOPE.value(names.ALERTS, FIRING), "cluster", "rule")),
                "{{cluster}} {{rule}}",
            ),
        ),
        is_stacked=True,
        links=(from_series(Uid.ALERTS, "Alerts of this rule", cluster="cluster", rule="rule"),),
    ),
    Graph(
        number=21,
        title="Longest lag by cluster",
        description="Time lag of each cluster's group that is furthest behind, for read_committed readers.",
        unit=units.Seconds,
        queries=(
            Series(
                top(10, largest(SCOPE.value(names.READ_COMMITTED_LAG_SECONDS), "cluster")),
                "{{cluster}}",
            ),
        ),
        links=(from_series(Uid.GROUPS, "Groups of this cluster", cluster="cluster"),),
    ),
    Graph(
        number=22,
        title="Writing by cluster",
        description="Offsets per second that leaders append, markers of transactions included. Negative while a "
        "log is truncated.",
        unit=units.CountsPerSecond,
        queries=(
            Series(top(10, total(SCOPE.speed(names.LOG_END_OFFSET), "cluster")), "{{cluster}}"),
        ),
        links=(from_series(Uid.PIPELINE, "Pipelines of this cluster", cluster="cluster"),),
    ),
    Graph(
        number=23,
        title="Age of the latest observation",
        description="How old the data of each cluster is. A line that climbs is a cluster that is not observed.",
        unit=units.Seconds,
        queries=(
            Series(top(10, largest(SCOPE.age(names.LAST_SUCCESS), "cluster")), "{{cluster}}"),
        ),
        steps=(Step(0, Color.GOOD), Step(60, Color.ATTENTION)),
        links=(from_series(Uid.TIDEMARK, "Tidemark of this cluster", cluster="cluster"),),
    ),
)

TABLES: Final = (
    Table(
        number=30,
        title="Clusters",
        description="One line per cluster, the most findings first. Empty cells are not known.",
        queries=(
            Latest(total(SCOPE.value(names.OPEN_FINDINGS), "cluster")),
            Latest(WITHOUT_LEADER.number(SCOPE, "cluster")),
            Latest(UNDER_MIN_ISR.number(SCOPE, "cluster")),
            Latest(largest(SCOPE.value(names.READ_COMMITTED_LAG_SECONDS), "cluster")),
            Latest(largest(SCOPE.age(names.LAST_SUCCESS), "cluster")),
        ),
        columns=(
            Column(
                source="cluster",
                title="Cluster",
                links=(from_row(Uid.FLEET, "This cluster alone", cluster="cluster"),),
            ),
            Column(source="Value #A", title="Open findings", steps=ATTENTION_ABOVE_ZERO),
            Column(source="Value #B", title="Without leader", steps=GOOD_AT_ZERO),
            Column(source="Value #C", title="Under min ISR", steps=GOOD_AT_ZERO),
            Column(source="Value #D", title="Longest lag", unit=units.Seconds),
            Column(source="Value #E", title="Age of the data", unit=units.Seconds),
        ),
        sorted_by="Open findings",
    ),
    Table(
        number=31,
        title="Open findings by rule",
        description="What Tidemark finds now, by rule; no data means nothing, as long as clusters are observed. The link of the rule explains it and says what to do.",
        queries=(
            Latest(
                where_above(
                    total(SCOPE.value(names.OPEN_FINDINGS), "cluster", "rule", "severity"), 0
                )
            ),
        ),
        columns=(
            Column(source="cluster", title="Cluster"),
            Column(source="rule", title="Rule", links=(to_rule_page(),)),
            Column(source="severity", title="Severity", words=SEVERITIES),
            Column(source="Value", title="Open findings"),
        ),
        sorted_by="Open findings",
    ),
)

BOARD: Final = Board(
    uid=Uid.FLEET,
    title="Fleet overview",
    question="Is anything wrong, in which cluster, and which dashboard shows why?",
    variables=("cluster",),
    sections=(
        Section(title="Now", panels=STATS),
        Section(title="Since when", panels=COURSE),
        Section(title="Where", panels=TABLES),
    ),
    annotations=(firing_alerts(), open_losses()),
)
