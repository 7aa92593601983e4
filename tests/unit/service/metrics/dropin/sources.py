"""What three exporters expose, as their own source declares it: names, types and labels.

Written out by hand from these files, so that a name cannot change by accident:
- danielqsj/kafka_exporter at 953e2f1745b90101f331ad629f10be5239845f69 (15 commits after v1.9.0): kafka_exporter.go
- redpanda-data/kminion v2.3.5: prometheus/exporter.go, minion/client_hooks.go, logging/logger.go, e2e/service.go,
  with the namespace of prometheus/config.go and the configKeys of minion/config_topic_config.go
- seglo/kafka-lag-exporter v0.8.2: src/main/scala/com/lightbend/kafkalagexporter/Metrics.scala
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

Families = Mapping[str, tuple[str, tuple[str, ...]]]  # name -> type, labels


def _gauges(prefix: str, names: Mapping[str, str]) -> dict[str, tuple[str, tuple[str, ...]]]:
    return {prefix + name: ("gauge", tuple(labels.split())) for name, labels in names.items()}


KAFKA_EXPORTER: Final[Families] = {
    **_gauges("kafka_", {"brokers": "", "broker_info": "id address"}),
    **_gauges(
        "kafka_topic_",
        {
            "partitions": "topic",
            "partition_current_offset": "topic partition",
            "partition_oldest_offset": "topic partition",
            "partition_leader": "topic partition",
            "partition_replicas": "topic partition",
            "partition_in_sync_replica": "topic partition",
            "partition_leader_is_preferred": "topic partition",
            "partition_under_replicated_partition": "topic partition",
        },
    ),
    **_gauges(
        "kafka_consumergroup",
        {
            "_current_offset": "consumergroup topic partition",
            "_current_offset_sum": "consumergroup topic",
            "_lag": "consumergroup topic partition",
            "_lag_sum": "consumergroup topic",
            "_members": "consumergroup",
            "zookeeper_lag_zookeeper": "consumergroup topic partition",
        },
    ),
    **_gauges(
        "kafka_exporter_", {"build_info": "version revision branch goversion goos goarch tags"}
    ),
}

_GROUP: Final = "kminion_kafka_consumer_group_"
_E2E: Final = "kminion_end_to_end_"
KMINION: Final[Families] = {
    **_gauges("kminion_exporter_", {"up": "version"}),
    "kminion_exporter_offset_consumer_records_consumed_total": ("counter", ()),
    "kminion_log_messages_total": ("counter", ("level",)),
    **_gauges(
        "kminion_kafka_",
        {
            "cluster_info": "cluster_version broker_count controller_id cluster_id",
            "broker_info": "broker_id address port rack_id is_controller",
            "broker_log_dir_size_total_bytes": "broker_id address port rack_id",
            "topic_log_dir_size_total_bytes": "topic_name",
            "topic_info": "topic_name partition_count replication_factor cleanup_policy",
            "topic_partition_low_water_mark": "topic_name partition_id",
            "topic_low_water_mark_sum": "topic_name",
            "topic_partition_high_water_mark": "topic_name partition_id",
            "topic_high_water_mark_sum": "topic_name",
        },
    ),
    **_gauges(
        _GROUP,
        {
            "info": "group_id protocol protocol_type state coordinator_id",
            "members": "group_id",
            "empty_members": "group_id",
            "topic_members": "group_id topic_name",
            "topic_assigned_partitions": "group_id topic_name",
            "topic_offset_sum": "group_id topic_name",
            "topic_partition_lag": "group_id topic_name partition_id",
            "topic_lag": "group_id topic_name",
        },
    ),
    f"{_GROUP}offset_commits_total": ("counter", ("group_id",)),
    "kminion_kafka_requests_sent_total": ("counter", ()),
    "kminion_kafka_sent_bytes": ("counter", ()),
    "kminion_kafka_requests_received_total": ("counter", ()),
    "kminion_kafka_received_bytes": ("counter", ()),
    f"{_E2E}messages_produced_in_flight": ("gauge", ("partition_id",)),
    f"{_E2E}messages_produced_total": ("counter", ("partition_id",)),
    f"{_E2E}messages_produced_failed_total": ("counter", ("partition_id",)),
    f"{_E2E}messages_received_total": ("counter", ("partition_id",)),
    f"{_E2E}messages_lost_total": ("counter", ("partition_id",)),
    f"{_E2E}offset_commits_total": ("counter", ("coordinator_id",)),
    f"{_E2E}offset_commits_failed_total": ("counter", ("coordinator_id", "reason")),
    f"{_E2E}produce_latency_seconds": ("histogram", ("partition_id",)),
    f"{_E2E}roundtrip_latency_seconds": ("histogram", ("partition_id",)),
    f"{_E2E}offset_commit_latency_seconds": ("histogram", ("coordinator_id",)),
}

_COMMIT: Final = "cluster_name group topic partition member_host consumer_id client_id"
KAFKA_LAG_EXPORTER: Final[Families] = {
    **_gauges(
        "kafka_partition_",
        {
            "latest_offset": "cluster_name topic partition",
            "earliest_offset": "cluster_name topic partition",
        },
    ),
    **_gauges(
        "kafka_consumergroup_",
        {
            "group_offset": _COMMIT,
            "group_lag": _COMMIT,
            "group_lag_seconds": _COMMIT,
            "group_max_lag": "cluster_name group",
            "group_max_lag_seconds": "cluster_name group",
            "group_sum_lag": "cluster_name group",
            "group_topic_sum_lag": "cluster_name group topic",
            "poll_time_ms": "cluster_name",
        },
    ),
}

# Of their languages' client libraries, without a list in their own source.
LIBRARIES: Final[Mapping[str, tuple[str, ...]]] = {
    "kafka_exporter": ("go_*", "process_*", "promhttp_*"),
    "kminion": ("go_*", "process_*", "promhttp_*"),
    "kafka_lag_exporter": ("jvm_*", "process_*"),
}
SOURCES: Final[Mapping[str, Families]] = {
    "kafka_exporter": KAFKA_EXPORTER,
    "kminion": KMINION,
    "kafka_lag_exporter": KAFKA_LAG_EXPORTER,
}
