"""The metrics of kafka_exporter.

Source of names, labels and types: danielqsj/kafka_exporter, kafka_exporter.go, 15 commits after v1.9.0
(953e2f17).
"""

from __future__ import annotations

from typing import Final

from rules import names
from rules.facts.identity import Broker
from rules.names import Metric, Unit
from service.metrics.dropin.columns import (
    by_group_and_topic,
    is_preferred,
    is_under_replicated,
    leader,
    members,
    native,
    partition_counts,
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
from service.metrics.lines import Values, single

LABELS: Final = LabelNames(topic="topic", partition="partition", group="consumergroup")
OFFSET, LAG = native(names.COMMITTED_OFFSET), native(names.READ_UNCOMMITTED_LAG)


def _partition_offsets() -> tuple[Family, ...]:
    about = Subject.PARTITION
    watermark, start = names.HIGH_WATERMARK, names.LOG_START_OFFSET
    return (
        LABELS.family(
            *(about, "kafka_topic_partition_current_offset", Unit.OFFSET),
            "High watermark of the partition: the end of what is replicated.",
            column=native(watermark),
            native=watermark.name,
        ),
        LABELS.family(
            *(about, "kafka_topic_partition_oldest_offset", Unit.OFFSET),
            "First offset of the partition that the leader still retains.",
            column=native(start),
            native=start.name,
        ),
    )


def _partition_replicas() -> tuple[Family, ...]:
    about = Subject.PARTITION
    return (
        LABELS.family(
            *(about, "kafka_topic_partition_leader", Unit.BROKER_ID),
            "Id of the broker that leads the partition; absent without a leader.",
            column=leader,
            native=names.HAS_LEADER.name,
        ),
        LABELS.family(
            *(about, "kafka_topic_partition_replicas", Unit.REPLICAS),
            "Replicas that are assigned to the partition.",
            column=native(names.REPLICAS),
            native=names.REPLICAS.name,
        ),
        LABELS.family(
            *(about, "kafka_topic_partition_in_sync_replica", Unit.REPLICAS),
            "Replicas of the partition that are in sync, the leader included.",
            column=native(names.IN_SYNC_REPLICAS),
            native=names.IN_SYNC_REPLICAS.name,
        ),
        LABELS.family(
            *(about, "kafka_topic_partition_leader_is_preferred", Unit.FLAG),
            "Whether the first of the assigned replicas leads the partition.",
            column=is_preferred,
            native="",
        ),
        LABELS.family(
            *(about, "kafka_topic_partition_under_replicated_partition", Unit.FLAG),
            "Whether fewer replicas are in sync than are assigned.",
            column=is_under_replicated,
            native=f"{names.IN_SYNC_REPLICAS.name} < {names.REPLICAS.name}",
        ),
    )


def _groups() -> tuple[Family, ...]:
    offset, lag = names.COMMITTED_OFFSET.name, names.READ_UNCOMMITTED_LAG.name
    return (
        LABELS.family(
            *(Subject.COMMIT, "kafka_consumergroup_current_offset", Unit.OFFSET),
            "Offset that the group has committed: the next one it will read.",
            column=OFFSET,
            native=offset,
        ),
        LABELS.family(
            *(Subject.COMMIT, "kafka_consumergroup_lag", Unit.OFFSETS),
            "High watermark minus committed offset; absent where the group is above it.",
            column=LAG,
            native=lag,
        ),
        LABELS.family(
            *(Subject.GROUP_TOPIC, "kafka_consumergroup_current_offset_sum", Unit.OFFSETS),
            "Sum of the offsets that the group has committed on the topic.",
            column=by_group_and_topic(OFFSET, total),
            native=f"sum by (group, topic) ({offset})",
        ),
        LABELS.family(
            *(Subject.GROUP_TOPIC, "kafka_consumergroup_lag_sum", Unit.OFFSETS),
            "Sum of the group's lags on the topic; absent if one of them is not known.",
            column=by_group_and_topic(LAG, total),
            native=f"sum by (group, topic) ({lag})",
        ),
        LABELS.family(
            *(Subject.GROUP, "kafka_consumergroup_members", Unit.MEMBERS),
            "Members of the group, as its coordinator describes it.",
            column=members,
            native=names.GROUP_MEMBERS.name,
        ),
    )


def _brokers(seen: ObservedRound) -> Values:
    return single(len(seen.snapshot.brokers))


def _infos(seen: ObservedRound) -> Values:
    return [
        ({"id": str(broker.broker_id), "address": _address(broker)}, 1)
        for broker in seen.snapshot.brokers
    ]


def _address(broker: Broker) -> str:
    host = f"[{broker.host}]" if ":" in broker.host else broker.host
    return f"{host}:{broker.port}"


KAFKA_EXPORTER: Final = Exporter(
    name="kafka_exporter",
    labels=LABELS,
    families=(
        LABELS.family(
            *(Subject.TOPIC, "kafka_topic_partitions", Unit.PARTITIONS),
            "Partitions of the topic.",
            column=partition_counts,
            native=f"count by (topic) ({names.HAS_LEADER.name})",
        ),
        *_partition_offsets(),
        *_partition_replicas(),
        *_groups(),
    ),
    singles=(
        Single(
            metric=Metric(
                name="kafka_brokers",
                help="Brokers that are registered.",
                unit=Unit.BROKERS,
                labels=(),
            ),
            values=_brokers,
            native=names.BROKERS.name,
        ),
        Single(
            metric=Metric(
                name="kafka_broker_info",
                help="Id and advertised address of a broker.",
                unit=Unit.INFO,
                labels=("id", "address"),
            ),
            values=_infos,
            native="",
        ),
    ),
    missing={
        "kafka_consumergroupzookeeper_lag_zookeeper": "no supported Kafka keeps offsets in ZooKeeper",
        "kafka_exporter_build_info": "it is the version of another program",
        "go_*": "they are of that program's runtime",
        "process_*": "they are of that process",
        "promhttp_*": "they are of that program's HTTP server",
    },
    missing_labels={},
)
