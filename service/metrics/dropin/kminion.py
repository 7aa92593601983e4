"""The metrics of KMinion, with its default namespace.

Source of names, labels and types: redpanda-data/kminion v2.3.5, prometheus/exporter.go, minion/client_hooks.go,
e2e/service.go and logging/logger.go.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np

from rules import names
from rules.facts.column import Column
from rules.facts.gap import GapScope
from rules.names import Metric, Unit
from service.metrics.dropin.columns import (
    by_group_and_topic,
    first_of_topic,
    members,
    native,
    partition_counts,
    topic_sum,
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
from service.metrics.totals import SelfMetrics

LABELS: Final = LabelNames(topic="topic_name", partition="partition_id", group="group_id")
LAG: Final = native(names.READ_UNCOMMITTED_LAG)
# What KMinion itself queries: other gaps do not concern its metrics.
ITS_SCOPES: Final = frozenset(
    {
        GapScope.PLACEMENT,
        GapScope.GROUPS,
        GapScope.MEMBERS,
        GapScope.COMMITS,
        GapScope.OFFSETS,
    }
)


def _topics() -> tuple[Family, ...]:
    watermark, start = names.HIGH_WATERMARK, names.LOG_START_OFFSET
    return (
        LABELS.family(
            *(Subject.PARTITION, "kminion_kafka_topic_partition_high_water_mark", Unit.OFFSET),
            "High watermark of the partition: the end of what is replicated.",
            column=native(watermark),
            native=watermark.name,
        ),
        LABELS.family(
            *(Subject.TOPIC, "kminion_kafka_topic_high_water_mark_sum", Unit.OFFSETS),
            "Sum of the high watermarks of the topic; absent if one of them is not known.",
            column=topic_sum(watermark),
            native=f"sum by (topic) ({watermark.name})",
        ),
        LABELS.family(
            *(Subject.PARTITION, "kminion_kafka_topic_partition_low_water_mark", Unit.OFFSET),
            "First offset of the partition that the leader still retains.",
            column=native(start),
            native=start.name,
        ),
        LABELS.family(
            *(Subject.TOPIC, "kminion_kafka_topic_low_water_mark_sum", Unit.OFFSETS),
            "Sum of the first retained offsets of the topic; absent if one of them is not known.",
            column=topic_sum(start),
            native=f"sum by (topic) ({start.name})",
        ),
    )


def _groups() -> tuple[Family, ...]:
    offset, lag = names.COMMITTED_OFFSET, names.READ_UNCOMMITTED_LAG
    return (
        LABELS.family(
            *(Subject.GROUP, "kminion_kafka_consumer_group_members", Unit.MEMBERS),
            "Members of the group, as its coordinator describes it.",
            column=members,
            native=names.GROUP_MEMBERS.name,
        ),
        LABELS.family(
            *(Subject.COMMIT, "kminion_kafka_consumer_group_topic_partition_lag", Unit.OFFSETS),
            "High watermark minus committed offset; absent where the group is above it.",
            column=LAG,
            native=lag.name,
        ),
        LABELS.family(
            *(Subject.GROUP_TOPIC, "kminion_kafka_consumer_group_topic_lag", Unit.OFFSETS),
            "Sum of the group's lags on the topic; absent if one of them is not known.",
            column=by_group_and_topic(LAG, total),
            native=f"sum by (group, topic) ({lag.name})",
        ),
        LABELS.family(
            *(Subject.GROUP_TOPIC, "kminion_kafka_consumer_group_topic_offset_sum", Unit.OFFSETS),
            "Sum of the offsets that the group has committed on the topic.",
            column=by_group_and_topic(native(offset), total),
            native=f"sum by (group, topic) ({offset.name})",
        ),
    )


def _up(seen: ObservedRound) -> Values:
    is_whole = all(gap.scope not in ITS_SCOPES for gap in seen.snapshot.gaps)
    return [({"version": seen.totals.version}, int(is_whole))]


def _down(totals: SelfMetrics) -> Values:
    return [({"version": totals.version}, 0)]


def _requests(totals: SelfMetrics) -> Values:
    return single(sum(totals.requests.values()))


def _cluster(seen: ObservedRound) -> Values:
    snapshot = seen.snapshot
    controller = snapshot.controller
    labels = {
        "broker_count": len(snapshot.brokers),
        "controller_id": controller,
        "cluster_id": snapshot.cluster_id,
    }
    return [(_present(labels), 1)]


def _brokers(seen: ObservedRound) -> Values:
    controller = seen.snapshot.controller
    for broker in seen.snapshot.brokers:
        is_controller = None if controller is None else controller == broker.broker_id
        labels = {
            "broker_id": broker.broker_id,
            "address": broker.host,
            "port": broker.port,
            "rack_id": broker.rack or None,
            "is_controller": None if is_controller is None else str(is_controller).lower(),
        }
        yield _present(labels), 1


def _topic_infos(seen: ObservedRound) -> Values:
    index = seen.snapshot.partitions.index
    counts, factors = partition_counts(seen), _replication_factors(seen)
    for topic in seen.subjects.topics.tolist():
        labels = {
            "topic_name": index.topics[topic],
            "partition_count": counts[topic],
            "replication_factor": factors[topic],
        }
        yield _present(labels), 1


def _replication_factors(seen: ObservedRound) -> Column:
    """Return the number of replicas of each topic's first partition, as KMinion does."""
    replicas = seen.snapshot.partitions.replicas
    lengths = Column(np.where(replicas.valid, replicas.lengths, 0), replicas.valid)
    return first_of_topic(lengths, seen)


def _group_infos(seen: ObservedRound) -> Values:
    for place in seen.subjects.groups.tolist():
        group = seen.snapshot.groups[place]
        if group.state is None:
            continue
        labels = {
            "group_id": group.group_id,
            "protocol_type": group.protocol_type,
            "state": group.state,
            "coordinator_id": group.coordinator,
        }
        yield _present(labels), int(group.state == "Stable")


def _present(labels: Mapping[str, object]) -> dict[str, str]:
    return {name: str(value) for name, value in labels.items() if value is not None}


def _info(name: str, text: str, *labels: str, unit: Unit = Unit.INFO) -> Metric:
    return Metric(name=name, help=text, unit=unit, labels=labels)


_SINGLES: Final = (
    Single(
        metric=_info(
            "kminion_exporter_up",
            "Whether the latest round saw all placements, offsets, groups and commits; the version is "
            "Tidemark's.",
            "version",
            unit=Unit.FLAG,
        ),
        values=_up,
        blind=_down,
        native=names.GAPS.name,
    ),
    Single(
        metric=_info(
            "kminion_kafka_requests_sent_total",
            "Requests that rounds have sent to brokers since Tidemark started.",
            unit=Unit.REQUESTS,
        ),
        values=lambda seen: _requests(seen.totals),
        blind=_requests,
        native=f"sum by (cluster) ({names.REQUESTS.name})",
    ),
    Single(
        metric=_info(
            "kminion_kafka_cluster_info",
            "Number of brokers, active controller and id of the cluster.",
            *("broker_count", "controller_id", "cluster_id"),
        ),
        values=_cluster,
        native=f"{names.BROKERS.name}, {names.CONTROLLER_INFO.name}",
    ),
    Single(
        metric=_info(
            "kminion_kafka_broker_info",
            "Id, advertised address and rack of a broker.",
            *("broker_id", "address", "port", "rack_id", "is_controller"),
        ),
        values=_brokers,
        native="",
    ),
    Single(
        metric=_info(
            "kminion_kafka_topic_info",
            "Number of partitions of a topic, and of replicas of its first partition.",
            *("topic_name", "partition_count", "replication_factor"),
        ),
        values=_topic_infos,
        native=names.REPLICAS.name,
    ),
    Single(
        metric=_info(
            "kminion_kafka_consumer_group_info",
            "1 while the group is Stable, 0 in any other state; absent while that is not known.",
            *("group_id", "protocol_type", "state", "coordinator_id"),
            unit=Unit.FLAG,
        ),
        values=_group_infos,
        native=names.GROUP_INFO.name,
    ),
)

_ASSIGNMENT: Final = "the assignment of partitions to members is not queried"
_LOG_DIRS: Final = "log directories are not queried"

KMINION: Final = Exporter(
    name="kminion",
    labels=LABELS,
    families=(*_topics(), *_groups()),
    singles=_SINGLES,
    missing={
        "kminion_kafka_consumer_group_empty_members": _ASSIGNMENT,
        "kminion_kafka_consumer_group_topic_members": _ASSIGNMENT,
        "kminion_kafka_consumer_group_topic_assigned_partitions": _ASSIGNMENT,
        "kminion_kafka_broker_log_dir_size_total_bytes": _LOG_DIRS,
        "kminion_kafka_topic_log_dir_size_total_bytes": _LOG_DIRS,
        "kminion_kafka_consumer_group_offset_commits_total": "`__consumer_offsets` is not consumed",
        "kminion_exporter_offset_consumer_records_consumed_total": "`__consumer_offsets` is not consumed",
        "kminion_kafka_requests_received_total": "responses are not counted",
        "kminion_kafka_sent_bytes": "bytes are not counted",
        "kminion_kafka_received_bytes": "bytes are not counted",
        "kminion_log_messages_total": "it counts log lines of another program",
        "kminion_end_to_end_*": "Tidemark writes nothing to the cluster that it watches",
        "go_*": "they are of that program's runtime",
        "process_*": "they are of that process",
        "promhttp_*": "they are of that program's HTTP server",
    },
    missing_labels={
        "cluster_version": "KMinion guesses it from the requests that brokers support",
        "cleanup_policy": "this setting of topics is not read; nor are other `configKeys`",
        "protocol": "the assignor of a group is not read",
    },
)
