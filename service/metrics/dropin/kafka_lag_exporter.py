"""The metrics of Kafka Lag Exporter.

Source of names, labels and types: seglo/kafka-lag-exporter v0.8.2,
src/main/scala/com/lightbend/kafkalagexporter/Metrics.scala.
"""

from __future__ import annotations

from typing import Final

from rules import names
from rules.facts.times import SECOND_US
from rules.names import Metric, Unit
from service.metrics.dropin.columns import (
    by_group,
    by_group_and_topic,
    highest,
    native,
    time_lag,
    total,
)
from service.metrics.dropin.exporter import (
    Exporter,
    Family,
    LabelNames,
    ObservedRound,
    Single,
    Subject,
)
from service.metrics.lines import Values

MS_PER_SECOND: Final = 1000
LABELS: Final = LabelNames(
    topic="topic", partition="partition", group="group", cluster="cluster_name"
)
LAG: Final = native(names.READ_UNCOMMITTED_LAG)


def _partitions_and_commits() -> tuple[Family, ...]:
    watermark, start = names.HIGH_WATERMARK, names.LOG_START_OFFSET
    offset, lag = names.COMMITTED_OFFSET, names.READ_UNCOMMITTED_LAG
    return (
        LABELS.family(
            *(Subject.PARTITION, "kafka_partition_latest_offset", Unit.OFFSET),
            "High watermark of the partition: the end of what is replicated.",
            column=native(watermark),
            native=watermark.name,
        ),
        LABELS.family(
            *(Subject.PARTITION, "kafka_partition_earliest_offset", Unit.OFFSET),
            "First offset of the partition that the leader still retains.",
            column=native(start),
            native=start.name,
        ),
        LABELS.family(
            *(Subject.COMMIT, "kafka_consumergroup_group_offset", Unit.OFFSET),
            "Offset that the group has committed: the next one it will read.",
            column=native(offset),
            native=offset.name,
        ),
        LABELS.family(
            *(Subject.COMMIT, "kafka_consumergroup_group_lag", Unit.OFFSETS),
            "High watermark minus committed offset; absent where the group is above it.",
            column=LAG,
            native=lag.name,
        ),
        LABELS.family(
            *(Subject.COMMIT, "kafka_consumergroup_group_lag_seconds", Unit.SECONDS),
            "For how long the oldest unread offset has been below the high watermark; absent if that "
            "was before anything remembered.",
            column=time_lag,
            native=names.READ_UNCOMMITTED_LAG_SECONDS.name,
            steps=SECOND_US,
        ),
    )


def _groups() -> tuple[Family, ...]:
    lag, seconds = names.READ_UNCOMMITTED_LAG.name, names.READ_UNCOMMITTED_LAG_SECONDS.name
    return (
        LABELS.family(
            *(Subject.GROUP, "kafka_consumergroup_group_max_lag", Unit.OFFSETS),
            "Largest lag of the group on a partition; absent if one of its lags is not known.",
            column=by_group(LAG, highest),
            native=f"max by (group) ({lag})",
        ),
        LABELS.family(
            *(Subject.GROUP, "kafka_consumergroup_group_max_lag_seconds", Unit.SECONDS),
            "Largest time lag of the group on a partition; absent if one of them is not known.",
            column=by_group(time_lag, highest),
            native=f"max by (group) ({seconds})",
            steps=SECOND_US,
        ),
        LABELS.family(
            *(Subject.GROUP, "kafka_consumergroup_group_sum_lag", Unit.OFFSETS),
            "Sum of the group's lags; absent if one of them is not known.",
            column=by_group(LAG, total),
            native=f"sum by (group) ({lag})",
        ),
        LABELS.family(
            *(Subject.GROUP_TOPIC, "kafka_consumergroup_group_topic_sum_lag", Unit.OFFSETS),
            "Sum of the group's lags on the topic; absent if one of them is not known.",
            column=by_group_and_topic(LAG, total),
            native=f"sum by (group, topic) ({lag})",
        ),
    )


def _poll_time(seen: ObservedRound) -> Values:
    took = seen.totals.took_seconds
    seconds = seen.snapshot.report.took_seconds if took is None else took
    return [({"cluster_name": seen.snapshot.cluster}, seconds * MS_PER_SECOND)]


_MEMBER: Final = "which member reads a partition is not queried"

KAFKA_LAG_EXPORTER: Final = Exporter(
    name="kafka_lag_exporter",
    labels=LABELS,
    families=(*_partitions_and_commits(), *_groups()),
    singles=(
        Single(
            metric=Metric(
                name="kafka_consumergroup_poll_time_ms",
                help="Duration of the latest round, everything that Tidemark observes included.",
                unit=Unit.MILLISECONDS,
                labels=("cluster_name",),
            ),
            values=_poll_time,
            native=f"1000 * {names.ROUND_DURATION.name}",
        ),
    ),
    missing={"jvm_*": "there is no JVM", "process_*": "they are of that process"},
    missing_labels={"member_host": _MEMBER, "consumer_id": _MEMBER, "client_id": _MEMBER},
)
