"""Cases of the alerts on Kafka: each fires when its rule would, and is silent while nothing is known."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from dashboards.prometheus.alerting import alert_name
from tests.unit.dashboards.prometheus.cases import (
    CLUSTER,
    OTHER_TARGET,
    AlertCase,
    SilentCase,
    series,
)

# Rule -> when it fires if it is broken from the first minute on, and how severe that is.
ON_FINDINGS: Final[Mapping[str, tuple[str, str, str]]] = {
    "broker_gone": ("45s", "1m", "critical"),
    "controller_absent": ("45s", "1m", "critical"),
    "committed_beyond_log_end": ("45s", "1m", "critical"),
    "committed_records_lost": ("45s", "1m", "critical"),
    "consumer_data_expired": ("45s", "1m", "critical"),
    "high_watermark_stuck": ("45s", "1m", "critical"),
    "observation_stale": ("45s", "1m", "critical"),
    "records_possibly_lost": ("45s", "1m", "critical"),
    "sequence_gap_loss": ("45s", "1m", "critical"),
    "transaction_hanging": ("45s", "1m", "critical"),
    "transaction_marker_stuck": ("45s", "1m", "critical"),
    "consumer_group_rebalancing": ("15m45s", "16m", "warning"),
    "broker_silent": ("45s", "1m", "warning"),
    "controller_moves_often": ("45s", "1m", "warning"),
    "coordinator_slow": ("15m45s", "16m", "warning"),
    "exactly_once_posture": ("10m45s", "11m", "warning"),
    "partition_under_replicated": ("45s", "1m", "warning"),
    "consumer_group_rewound": ("45s", "1m", "warning"),
    "consumer_partitions_unowned": ("5m45s", "6m", "warning"),
    "lag_objective_burning": ("45s", "1m", "warning"),
    "producer_fenced": ("45s", "1m", "warning"),
    "read_committed_consumers_blocked": ("45s", "1m", "warning"),
    "record_error_rate_high": ("2m45s", "3m", "warning"),
    "sequence_gap_reordering": ("45s", "1m", "warning"),
    "transaction_abort_ratio_high": ("5m45s", "6m", "warning"),
    "transaction_overdue": ("45s", "1m", "warning"),
    "unclean_leader_election": ("45s", "1m", "warning"),
}
OFFLINE: Final = "partition_offline"
UNDER_MIN_ISR: Final = "partition_under_min_isr"
LSO_STUCK: Final = "last_stable_offset_stuck"
STALLED: Final = "consumer_group_stalled"
TOPIC: Final = {**CLUSTER, "topic": "orders"}


def findings(rule: str, severity: str, values: str) -> dict[str, str]:
    return series("tidemark_open_findings", values, rule=rule, severity=severity)


def of_findings() -> Iterator[AlertCase]:
    for rule, (before, at, severity) in ON_FINDINGS.items():
        others = {other: place for place, other in enumerate(ON_FINDINGS, 1) if other != rule}
        yield AlertCase(
            alert=alert_name(rule),
            reason="its open findings alert as severely as they are, after its rule's for",
            series=findings(rule, severity, "0x3 2x80"),
            silent=(before,),
            fires=(at,),
            labels={**CLUSTER, "rule": rule, "severity": severity},
            value="2",
        )
        yield AlertCase(
            alert=alert_name(rule),
            reason="findings of severity info, and those of other rules, do not alert",
            series=findings(rule, "info", "3x80")
            | {
                name: value
                for other in others
                for name, value in findings(other, "critical", "1x80").items()
            },
            silent=("15m",),
        )


FINDINGS: Final = (
    *of_findings(),
    AlertCase(
        alert=alert_name("records_possibly_lost"),
        reason="a milder finding of a critical rule is a warning",
        series=findings("records_possibly_lost", "warning", "1x80"),
        fires=("1m",),
        labels={**CLUSTER, "rule": "records_possibly_lost", "severity": "warning"},
        value="1",
    ),
    AlertCase(
        alert=alert_name("committed_records_lost"),
        reason="a restart of Tidemark resolves nothing, and what is over ends five minutes later",
        series=findings("committed_records_lost", "critical", "1x10 stale _x7 1x10 0x40"),
        fires=("3m", "6m", "10m"),
        silent=("13m",),
        labels={**CLUSTER, "rule": "committed_records_lost", "severity": "critical"},
        value="1",
    ),
)


def partition(
    *,
    leader: str,
    in_sync: str = "",
    minimum: str = "2x80",
    replicas: str = "3x80",
    number: int = 0,
) -> dict[str, str]:
    """Return a partition of topic orders; what is empty is absent."""
    values = {
        "has_leader": leader,
        "in_sync_replicas": in_sync,
        "min_insync_replicas": minimum,
        "replicas": replicas,
    }
    return {
        name: text
        for metric, value in values.items()
        if value
        for name, text in series(
            f"tidemark_kafka_partition_{metric}", value, topic="orders", partition=str(number)
        ).items()
    }


PARTITIONS: Final = (
    AlertCase(
        alert=alert_name(OFFLINE),
        reason="a partition without a leader pages after half a minute",
        series=partition(leader="1x3 0x76") | partition(leader="1x80", number=1),
        silent=("1m15s",),
        fires=("1m30s",),
        labels=TOPIC,
        value="1",
    ),
    AlertCase(
        alert=alert_name(OFFLINE),
        reason="leaders that change within half a minute page nobody",
        series=partition(leader="1x3 0x1 1x75"),
        silent=("1m30s", "15m"),
    ),
    AlertCase(
        alert=alert_name(UNDER_MIN_ISR),
        reason="fewer replicas in sync than acks=all needs page after a minute",
        series=partition(leader="1x80", in_sync="3x3 1x76")
        | partition(leader="1x80", in_sync="3x3 1x76", number=1)
        | partition(leader="1x80", in_sync="2x80", number=2),
        silent=("1m45s",),
        fires=("2m",),
        labels=TOPIC,
        value="2",
    ),
    AlertCase(
        alert=alert_name(UNDER_MIN_ISR),
        reason="a topic whose minimum is above its replicas has all that it can have",
        series=partition(leader="1x80", in_sync="2x80", minimum="3x80", replicas="2x80"),
        silent=("15m",),
    ),
    AlertCase(
        alert=alert_name(UNDER_MIN_ISR),
        reason="a partition without a leader has an alert of its own",
        series=partition(leader="0x80", in_sync="1x80"),
        silent=("15m",),
    ),
    AlertCase(
        alert=alert_name(UNDER_MIN_ISR),
        reason="a minimum that may not be read is unknown",
        series=partition(leader="1x80", in_sync="1x80", minimum=""),
        silent=("15m",),
    ),
    AlertCase(
        alert=alert_name(LSO_STUCK),
        reason="a last stable offset that is held back for two minutes is a warning",
        series=series(
            "tidemark_kafka_partition_last_stable_offset_age_seconds",
            "_x4 0+15x76",
            topic="orders",
            partition="0",
        ),
        silent=("2m45s",),
        fires=("3m",),
        labels=TOPIC,
        value="2m 0s",
    ),
)


def commit(
    partition: int = 0,
    *,
    nothing: str = "0x120",
    committed: str = "0+10x20 200x100",
    seconds: str = "0x20 15+15x100",
) -> dict[str, str]:
    """Return a commit of group billing that stops after five minutes; what is empty is absent."""
    values = {
        "nothing_to_read": nothing,
        "committed_offset": committed,
        "read_committed_lag_seconds": seconds,
    }
    labels = {"group": "billing", "topic": "orders", "partition": str(partition)}
    return {
        name: text
        for metric, value in values.items()
        if value
        for name, text in series(f"tidemark_kafka_group_{metric}", value, **labels).items()
    }


def members(values: str) -> dict[str, str]:
    return series("tidemark_kafka_group_members", values, group="billing")


GROUP: Final = {**CLUSTER, "group": "billing"}
GROUPS: Final = (
    AlertCase(
        alert=alert_name(STALLED),
        reason="a group that does not move for ten minutes is a warning, with its partitions counted",
        series=commit() | commit(1) | commit(2, committed="0+10x120") | members("2x120"),
        silent=("14m30s",),
        fires=("15m15s",),
        labels=GROUP,
        value="2",
    ),
    AlertCase(
        alert=alert_name(STALLED),
        reason="a group whose application is down is a warning too",
        series=commit() | members("0x120"),
        silent=("14m30s",),
        fires=("15m15s",),
        labels=GROUP,
        value="1",
    ),
    AlertCase(
        alert=alert_name(STALLED),
        reason="a group with members is not abandoned, however old the records that it does not read",
        series=commit(seconds="") | members("2x120"),
        silent=("14m30s",),
        fires=("15m15s",),
        labels=GROUP,
        value="1",
    ),
    AlertCase(
        alert=alert_name(STALLED),
        reason="a marker alone is nothing to read",
        series=commit(nothing="1x120") | members("2x120"),
        silent=("25m",),
    ),
    AlertCase(
        alert=alert_name(STALLED),
        reason="whether there is anything to read is not determined",
        series=commit(nothing="") | members("2x120"),
        silent=("25m",),
    ),
    AlertCase(
        alert=alert_name(STALLED),
        reason="a group that moves is well, whatever its lag",
        series=commit(committed="0+1x120") | members("2x120"),
        silent=("25m",),
    ),
    AlertCase(
        alert=alert_name(STALLED),
        reason="an abandoned group has nobody to read what came in the last seven days",
        series=commit(seconds="604800+15x120") | members("0x120"),
        silent=("25m",),
    ),
)

FIRING: Final = (*FINDINGS, *PARTITIONS, *GROUPS)
ALERTING_CASES: Final = (
    *FIRING,
    SilentCase(
        reason="what is absent is unknown, and alerts nobody",
        series=OTHER_TARGET,
        alerts=tuple(dict.fromkeys(case.alert for case in FIRING)),
        silent=("0s", "15m", "20m"),
    ),
)
