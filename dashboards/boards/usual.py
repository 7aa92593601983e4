"""Usual and unusual: is what is measured now usual for this hour of this day?"""

from __future__ import annotations

from typing import Final

from grafana_foundation_sdk.models import units

from dashboards.annotations import firing_alerts
from dashboards.links import Uid, from_row
from dashboards.panels import (
    Board,
    Column,
    Graph,
    Section,
    Series,
    SqlRows,
    SqlSeries,
    Stat,
    Table,
)
from dashboards.postgres import chosen, select
from dashboards.promql import Expression, Scope, largest, plus, ratio, total
from rules import names

SCOPE: Final = Scope(("cluster", "topic", "partition", "group"), "=")
OF_CLUSTER: Final = Scope(("cluster",), "=")
OF_TOPIC: Final = Scope(("cluster", "topic"), "=")
UPPER: Final = "most"
LOWER: Final = "least"
# A band has a value for the middle of every half hour, by the wall clock of its run's time zone.
HALF_HOURS: Final = (
    "baselines CROSS JOIN generate_series(date_trunc('hour', $__timeFrom()::timestamptz) - interval "
    "'45 minutes', $__timeTo()::timestamptz + interval '45 minutes', interval '15 minutes') AS at\n"
    "CROSS JOIN LATERAL (SELECT at AT TIME ZONE time_zone AS civil) AS clock\n"
    "CROSS JOIN LATERAL (SELECT (1 + 2 * extract(hour FROM civil) + div(extract(minute FROM civil), "
    "30) + CASE WHEN slots = 336 THEN 48 * (extract(isodow FROM civil) - 1) ELSE 0 END)::int AS "
    "slot) AS place"
)
BAND: Final = (
    'at AS "time", nullif(mid[slot], \'NaN\') AS "expected", '
    f"nullif(upper[slot], 'NaN') AS \"{UPPER}\", "
    f"nullif(greatest(0, lower[slot]), 'NaN') AS \"{LOWER}\", "
    "nullif(mid[slot] + threshold * (upper[slot] - mid[slot]), 'NaN') AS \"unusual above\""
)
# Of rates, too little is unusual as well. greatest() would make 0 of a threshold that is not known.
BELOW: Final = (
    ", CASE WHEN threshold IS NOT NULL THEN nullif(greatest(0, mid[slot] + coalesce(threshold_below, "
    "threshold) * (lower[slot] - mid[slot]), least(lower[slot], fall_share * mid[slot])), 'NaN') END AS \"unusual below\""
)
RATES: Final = frozenset({"consume_rate", "produce_rate"})
CLUSTER: Final = chosen("cluster", "cluster")
PER_CLUSTER: Final = (CLUSTER,)
PER_TOPIC: Final = (*PER_CLUSTER, chosen("topic", "topic"))
PER_PARTITION: Final = (*PER_TOPIC, chosen("partition::text", "partition"))
PER_COMMIT: Final = (*PER_PARTITION, chosen("consumer_group", "group"))


def band(metric: str, conditions: tuple[str, ...]) -> SqlSeries:
    """Return the query for what is usual of a metric of history, over the time that is shown."""
    return SqlSeries(
        select(
            BAND + (BELOW if metric in RATES else ""),
            HALF_HOURS,
            f"metric = '{metric}'",
            *conditions,
            "slots > 0",
            "extract(minute FROM civil) IN (15, 45)",
            order="at",
            limit=10_000,  # two hundred days
        )
    )


def usual(
    panel: tuple[int, str, str], metric: str, measured: Expression, conditions: tuple[str, ...]
) -> Graph:
    """Return the graph of what is measured, and of what is usual."""
    number, title, unit = panel
    return Graph(
        number=number,
        title=title,
        description=f"Measured, and the range that is usual at that hour, from least to most (metric {metric} "
        "of the baseline run in force); unusual is what lies beyond the outer lines. Without a band the series is "
        "too young, mostly zero, or has vanished: see the table below.",
        unit=unit,
        queries=(Series(measured, "measured"), band(metric, conditions)),
        band=(UPPER, LOWER),
    )


ENDED: Final = plus(
    total(OF_CLUSTER.rate(names.TRANSACTION_ABORTS)),
    total(OF_CLUSTER.rate(names.TRANSACTION_COMMITS)),
)

STATS: Final = (
    Stat(
        number=1,
        title="Learnt until",
        description="When the last day ended, in UTC, that the baseline run in force has learnt from. Days ago: a "
        "nightly run failed.",
        unit=units.DateTimeFromNow,
        queries=(
            SqlRows(
                select(
                    "1000 * extract(epoch FROM max(day) + 1)::float8 AS learnt_until",
                    "baseline_runs",
                    CLUSTER,
                    "is_current",
                    order="1",
                )
            ),
        ),
        width=6,
    ),
    Stat(
        number=2,
        title="Series",
        description="Series that the run in force knows.",
        unit=units.Short,
        queries=(
            SqlRows(
                select("sum(series) AS series", "baseline_runs", CLUSTER, "is_current", order="1")
            ),
        ),
        width=6,
    ),
    Stat(
        number=3,
        title="With a band",
        description="Share of the cluster's series that have bounds. The others are young, mostly zero or vanished.",
        unit=units.PercentUnit,
        queries=(
            SqlRows(
                select(
                    "avg(CASE WHEN outcome = 'banded' THEN 1.0 ELSE 0.0 END) AS share",
                    "baselines",
                    CLUSTER,
                    order="1",
                )
            ),
        ),
        width=6,
    ),
    Stat(
        number=4,
        title="New levels",
        description="Series whose level changed within the last week, as the run detected.",
        unit=units.Short,
        queries=(
            SqlRows(
                select(
                    "count(*) AS series",
                    "baselines",
                    CLUSTER,
                    "changed_at > now() - interval '7 days'",
                    order="1",
                )
            ),
        ),
        width=6,
    ),
)

READING: Final = (
    usual(
        (10, "Lag in offsets", units.Short),
        "read_committed_lag",
        largest(SCOPE.value(names.READ_COMMITTED_LAG)),
        PER_COMMIT,
    ),
    usual(
        (11, "Lag in seconds", units.Seconds),
        "read_committed_lag_seconds",
        largest(SCOPE.value(names.READ_COMMITTED_LAG_SECONDS)),
        PER_COMMIT,
    ),
    usual(
        (12, "Committing", units.CountsPerSecond),
        "consume_rate",
        total(SCOPE.speed(names.COMMITTED_OFFSET)),
        PER_COMMIT,
    ),
    usual(
        (13, "Writing", units.CountsPerSecond),
        "produce_rate",
        total(SCOPE.speed(names.LOG_END_OFFSET)),
        PER_PARTITION,
    ),
)

HOLDING: Final = (
    usual(
        (14, "Held back by open transactions", units.Short),
        "open_span",
        largest(SCOPE.value(names.OPEN_SPAN)),
        PER_PARTITION,
    ),
    usual(
        (15, "Unreplicated", units.Short),
        "unreplicated_span",
        largest(SCOPE.value(names.UNREPLICATED_SPAN)),
        PER_PARTITION,
    ),
    usual(
        (16, "Records given up, of the topic", units.RecordsPerSecond),
        "record_error_rate",
        total(OF_TOPIC.rate(names.RECORD_ERRORS)),
        (*PER_TOPIC, "partition IS NULL"),
    ),
    usual(
        (17, "Abort ratio, of the cluster", units.PercentUnit),
        "abort_ratio",
        ratio(total(OF_CLUSTER.rate(names.TRANSACTION_ABORTS)), ENDED),
        PER_CLUSTER,
    ),
)

SERIES: Final = (
    Column(source="metric", title="Metric"),
    Column(
        source="topic",
        title="Topic",
        links=(from_row(Uid.PIPELINE, "Pipeline of this topic", topic="topic"),),
    ),
    Column(source="partition", title="Partition", unit=units.NoUnit),
    Column(
        source="consumer_group",
        title="Group",
        links=(
            from_row(
                Uid.USUAL,
                "This series",
                topic="topic",
                partition="partition",
                group="consumer_group",
            ),
        ),
    ),
    Column(source="client_id", title="Client"),
)

TABLES: Final = (
    Table(
        number=20,
        title="What the run says of the chosen series",
        description="Outcome and reason for each metric of the chosen partition and group.",
        queries=(
            SqlRows(
                select(
                    "metric, topic, partition, consumer_group, client_id, outcome, reason, profile, days",
                    "baselines",
                    CLUSTER,
                    f"(topic IS NULL OR {chosen('topic', 'topic')})",
                    f"(partition IS NULL OR {chosen('partition::text', 'partition')})",
                    f"(consumer_group IS NULL OR {chosen('consumer_group', 'group')})",
                    order="metric",
                )
            ),
        ),
        columns=(
            *SERIES,
            Column(source="outcome", title="Outcome"),
            Column(source="reason", title="Reason"),
            Column(source="profile", title="Profile"),
            Column(source="days", title="Days of data"),
        ),
    ),
    Table(
        number=21,
        title="New levels, the latest first",
        description="Series of the cluster whose level changed for good, as the run detected: after a deployment that "
        "is expected, otherwise ask why.",
        queries=(
            SqlRows(
                select(
                    "metric, topic, partition, consumer_group, client_id, changed_at, changed_before, "
                    "changed_after",
                    "baselines",
                    CLUSTER,
                    "changed_at IS NOT NULL",
                    order="changed_at DESC",
                )
            ),
        ),
        columns=(
            *SERIES,
            Column(source="changed_at", title="Since", unit=units.DateTimeFromNow),
            Column(source="changed_before", title="Level before"),
            Column(source="changed_after", title="Level after"),
        ),
    ),
)

BOARD: Final = Board(
    uid=Uid.USUAL,
    title="Usual and unusual",
    question="Is what is measured usual for this hour of this day, and since when is it not?",
    variables=("cluster", "topic", "partition", "group"),
    sections=(
        Section(title="What was learnt", panels=STATS),
        Section(title="Reading and writing", panels=READING),
        Section(title="Holding back and failing", panels=HOLDING),
        Section(title="Which series", panels=TABLES),
    ),
    annotations=(firing_alerts(OF_CLUSTER),),
    hours=48,
)
