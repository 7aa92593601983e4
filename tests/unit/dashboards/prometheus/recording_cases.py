"""Cases of the recording rules: two topics, two groups, and what comes of them at each level."""

from __future__ import annotations

from typing import Final

from tests.unit.dashboards.prometheus.cases import (
    CLUSTER,
    OTHER_TARGET,
    RECORDS,
    RecordCase,
    Samples,
    Series,
    series,
)

BILLS: Final = {**CLUSTER, "topic": "bills"}
ORDERS: Final = {**CLUSTER, "topic": "orders"}
PLACES: Final = (("orders", "0"), ("orders", "1"), ("bills", "0"))
PARTITION: Final = "tidemark_kafka_partition_"
GROUP: Final = "tidemark_kafka_group_"


def of_partitions(metric: str, *values: str) -> Series:
    """Return a metric of the two partitions of orders and of the one of bills; an empty value is absent."""
    return {
        name: text
        for (topic, partition), value in zip(PLACES, values, strict=True)
        if value
        for name, text in series(
            PARTITION + metric, value, topic=topic, partition=partition
        ).items()
    }


def by_topic(record: str, orders: float, bills: float, cluster: float) -> dict[str, Samples]:
    return {
        f"cluster_topic:{record}": ((BILLS, bills), (ORDERS, orders)),
        f"cluster:{record}": ((CLUSTER, cluster),),
    }


PARTITIONS: Final = RecordCase(
    reason="partitions are added up per topic, then per cluster; one that is unknown is left out",
    series={
        **of_partitions("open_span_offsets", "3x40", "4x40", "5x40"),
        **of_partitions("last_stable_offset_age_seconds", "3x40", "9x40", "5x40"),
        **of_partitions("unreplicated_span_offsets", "1x40", "", "2x40"),
        **of_partitions("in_sync_replicas", "1x40", "2x40", "1x40"),
        **of_partitions("replicas", "3x40", "3x40", "1x40"),
        **of_partitions("min_insync_replicas", "2x40", "2x40", "2x40"),
        **of_partitions("has_leader", "0x40", "1x40", "0x40"),
        **{
            name: values
            for metric in ("log_end_offset", "high_watermark", "last_stable_offset")
            for name, values in of_partitions(metric, "0+15x40", "0+30x40", "90x40").items()
        },
    },
    samples={
        **by_topic(f"{PARTITION}open_span_offsets:sum", 7, 5, 12),
        **by_topic(f"{PARTITION}last_stable_offset_age_seconds:max", 9, 5, 9),
        **by_topic(f"{PARTITION}unreplicated_span_offsets:sum", 1, 2, 3),
        **by_topic("tidemark_kafka_partitions_under_replicated:sum", 2, 0, 2),
        **by_topic("tidemark_kafka_partitions_under_min_isr:sum", 1, 0, 1),
        **by_topic("tidemark_kafka_partitions_without_leader:sum", 1, 1, 2),
        **by_topic(f"{PARTITION}log_end_offset:deriv2m", 3, 0, 3),
        **by_topic(f"{PARTITION}high_watermark:deriv2m", 3, 0, 3),
        **by_topic(f"{PARTITION}last_stable_offset:deriv2m", 3, 0, 3),
    },
)


def of_commits(metric: str, *values: str) -> Series:
    """Return a metric of group a on all three partitions, and of group b on that of bills."""
    commits = (*(("a", *place) for place in PLACES), ("b", *PLACES[2]))
    return {
        name: text
        for (group, topic, partition), value in zip(commits, values, strict=True)
        for name, text in series(
            GROUP + metric, value, group=group, topic=topic, partition=partition
        ).items()
    }


def by_group(
    record: str, topics: tuple[float, float, float], groups: tuple[float, float], cluster: float
) -> dict[str, Samples]:
    """Return the levels; `topics` are those of a on bills, a on orders, b on bills."""
    places = ({**BILLS, "group": "a"}, {**ORDERS, "group": "a"}, {**BILLS, "group": "b"})
    whole = ({**CLUSTER, "group": "a"}, {**CLUSTER, "group": "b"})
    return {
        f"cluster_group_topic:{GROUP}{record}": tuple(zip(places, topics, strict=True)),
        f"cluster_group:{GROUP}{record}": tuple(zip(whole, groups, strict=True)),
        f"cluster:{GROUP}{record}": ((CLUSTER, cluster),),
    }


LAGS: Final = ("read_committed_lag", "read_uncommitted_lag")
GROUPS: Final = RecordCase(
    reason="commits are added up, or the worst of them is taken, per topic, group and cluster",
    series={
        name: text
        for metric in (f"{lag}_{unit}" for lag in LAGS for unit in ("offsets", "seconds"))
        for name, text in of_commits(metric, "10x40", "20x40", "5x40", "7x40").items()
    }
    | dict(of_commits("committed_offset", "0+15x40", "0+30x40", "9x40", "900-15x40")),
    samples={
        record: samples
        for lag in LAGS
        for levels in (
            by_group(f"{lag}_offsets:sum", (5, 30, 7), (35, 7), 42),
            by_group(f"{lag}_offsets:max", (5, 20, 7), (20, 7), 20),
            by_group(f"{lag}_seconds:max", (5, 20, 7), (20, 7), 20),
        )
        for record, samples in levels.items()
    }
    | by_group("committed_offset:deriv2m", (0, 3, -1), (3, -1), 2),
)

RATIO: Final = "cluster:tidemark_kafka_transaction_aborts_per_transactions:ratio_rate5m"
CLUSTERS: Final = RecordCase(
    reason="transactions end by the second, and findings are added up by severity",
    series={
        **series("tidemark_kafka_transaction_commits_total", "0+45x40"),
        **series("tidemark_kafka_transaction_aborts_total", "0+15x40"),
        **series("tidemark_kafka_transaction_fencings_total", "0+30x40", cause="timeout"),
        **series("tidemark_kafka_sequence_rejections_total", "0+15x40"),
        **series("tidemark_open_findings", "2x40", rule="partition_offline", severity="critical"),
        **series("tidemark_open_findings", "1x40", rule="transaction_hanging", severity="critical"),
        **series("tidemark_gaps", "2x40", cause="timed_out"),
        **series("tidemark_gaps", "0x40", cause="not_authorized"),
    },
    samples={
        "cluster:tidemark_kafka_transaction_commits:rate5m": ((CLUSTER, 3),),
        "cluster:tidemark_kafka_transaction_aborts:rate5m": ((CLUSTER, 1),),
        RATIO: ((CLUSTER, 0.25),),
        "cluster_cause:tidemark_kafka_transaction_fencings:rate5m": (
            ({**CLUSTER, "cause": "timeout"}, 2),
        ),
        "cluster:tidemark_kafka_sequence_rejections:rate5m": ((CLUSTER, 1),),
        "cluster_severity:tidemark_open_findings:sum": (({**CLUSTER, "severity": "critical"}, 3),),
        "cluster:tidemark_gaps:sum": ((CLUSTER, 2),),
    },
)

MEASURED: Final = (PARTITIONS, GROUPS, CLUSTERS)
RECORDING_CASES: Final = (
    *MEASURED,
    RecordCase(
        reason="of no transaction that ended there is no ratio",
        series={
            **series("tidemark_kafka_transaction_commits_total", "8x40"),
            **series("tidemark_kafka_transaction_aborts_total", "2x40"),
        },
        samples={RATIO: ()},
    ),
    RecordCase(
        reason="none is under a minimum that is known, and not known to be where it is not",
        series={
            **of_partitions("in_sync_replicas", "3x40", "3x40", "1x40"),
            **of_partitions("replicas", "3x40", "3x40", "1x40"),
            **of_partitions("min_insync_replicas", "2x40", "", ""),
        },
        samples={
            **by_topic("tidemark_kafka_partitions_under_replicated:sum", 0, 0, 0),
            "cluster_topic:tidemark_kafka_partitions_under_min_isr:sum": ((ORDERS, 0),),
            "cluster_topic:tidemark_kafka_partitions_without_leader:sum": (),
        },
    ),
    RecordCase(
        reason="what is absent is recorded as nothing",
        series=OTHER_TARGET,
        samples=dict.fromkeys(RECORDS, ()),
    ),
)
