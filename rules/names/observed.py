"""What is observed of a cluster: its partitions, groups, brokers, transactions and rejected sequences."""

from __future__ import annotations

from typing import Final

from rules.names.metric import (
    CLUSTER_LABELS,
    COMMIT_LABELS,
    GROUP_LABELS,
    PARTITION_LABELS,
    PRODUCER_LABELS,
    Metric,
    Unit,
)


def _partition(name: str, unit: Unit, text: str) -> Metric:
    return Metric(
        name=f"tidemark_kafka_partition_{name}", help=text, unit=unit, labels=PARTITION_LABELS
    )


LOG_START_OFFSET: Final = _partition(
    "log_start_offset", Unit.OFFSET, "First offset that the leader still retains."
)
LAST_STABLE_OFFSET: Final = _partition(
    "last_stable_offset",
    Unit.OFFSET,
    "First offset whose transaction is undecided: how far read_committed readers get.",
)
HIGH_WATERMARK: Final = _partition(
    "high_watermark",
    Unit.OFFSET,
    "End of what is replicated: how far read_uncommitted readers get.",
)
LOG_END_OFFSET: Final = _partition(
    "log_end_offset", Unit.OFFSET, "Next offset that the leader writes."
)
LEADER_EPOCH: Final = _partition(
    "leader_epoch", Unit.EPOCH, "Generation of the leader, from its own ListOffsets answer."
)
OPEN_SPAN: Final = _partition(
    "open_span_offsets",
    Unit.OFFSETS,
    "High watermark minus last stable offset: offsets held back by open transactions.",
)
LAST_STABLE_OFFSET_AGE: Final = _partition(
    "last_stable_offset_age_seconds",
    Unit.SECONDS,
    "How long the last stable offset has not advanced while the high watermark is ahead of it, as "
    "far as Tidemark saw; absent where nothing holds it back.",
)
UNREPLICATED_SPAN: Final = _partition(
    "unreplicated_span_offsets",
    Unit.OFFSETS,
    "Log end offset minus high watermark: offsets that exist on too few replicas.",
)
IN_SYNC_REPLICAS: Final = _partition(
    "in_sync_replicas", Unit.REPLICAS, "Replicas that are in sync, the leader included."
)
REPLICAS: Final = _partition("replicas", Unit.REPLICAS, "Replicas that are assigned.")
MIN_INSYNC_REPLICAS: Final = _partition(
    "min_insync_replicas", Unit.REPLICAS, "The topic's effective min.insync.replicas."
)
HAS_LEADER: Final = _partition("has_leader", Unit.FLAG, "Whether the partition has a leader.")

PARTITION_METRICS: Final = (
    LOG_START_OFFSET,
    LAST_STABLE_OFFSET,
    HIGH_WATERMARK,
    LOG_END_OFFSET,
    LEADER_EPOCH,
    OPEN_SPAN,
    LAST_STABLE_OFFSET_AGE,
    UNREPLICATED_SPAN,
    IN_SYNC_REPLICAS,
    REPLICAS,
    MIN_INSYNC_REPLICAS,
    HAS_LEADER,
)

REPLICA_LOG_END_OFFSET: Final = Metric(
    name="tidemark_kafka_replica_log_end_offset",
    help="Next offset that a replica writes, by its broker's id; only of partitions at risk: those with "
    "an ISR smaller than the replica set, or with a high watermark that is unchanged while the log end "
    "is ahead of it. Absent where the broker does not answer.",
    unit=Unit.OFFSET,
    labels=(*PARTITION_LABELS, "replica"),
)

REPLICA_METRICS: Final = (REPLICA_LOG_END_OFFSET,)


def _commit(name: str, unit: Unit, text: str) -> Metric:
    return Metric(name=f"tidemark_kafka_group_{name}", help=text, unit=unit, labels=COMMIT_LABELS)


COMMITTED_OFFSET: Final = _commit(
    "committed_offset",
    Unit.OFFSET,
    "Next offset that the group will read; the start offset of a share group.",
)
READ_COMMITTED_LAG: Final = _commit(
    "read_committed_lag_offsets",
    Unit.OFFSETS,
    "Last stable offset minus committed offset; absent where the group is above it. Of a share group "
    "the reported lag without the open span (Kafka 4.2).",
)
READ_UNCOMMITTED_LAG: Final = _commit(
    "read_uncommitted_lag_offsets",
    Unit.OFFSETS,
    "High watermark minus committed offset; absent where the group is above it. Of a share group what "
    "its coordinator reports (Kafka 4.2).",
)
READ_COMMITTED_LAG_SECONDS: Final = _commit(
    "read_committed_lag_seconds",
    Unit.SECONDS,
    "For how long the oldest unread offset has been below the last stable offset; 0 if none is "
    "unread, absent if that was before anything remembered.",
)
READ_UNCOMMITTED_LAG_SECONDS: Final = _commit(
    "read_uncommitted_lag_seconds",
    Unit.SECONDS,
    "For how long the oldest unread offset has been below the high watermark; 0 if none is "
    "unread, absent if that was before anything remembered.",
)
NOTHING_TO_READ: Final = _commit(
    "nothing_to_read",
    Unit.FLAG,
    "Whether the read_committed lag holds only markers and aborted records; absent if not determined.",
)

COMMIT_METRICS: Final = (
    COMMITTED_OFFSET,
    READ_COMMITTED_LAG,
    READ_UNCOMMITTED_LAG,
    READ_COMMITTED_LAG_SECONDS,
    READ_UNCOMMITTED_LAG_SECONDS,
    NOTHING_TO_READ,
)

GROUP_MEMBERS: Final = Metric(
    name="tidemark_kafka_group_members",
    help="Members of the group, as its coordinator describes it.",
    unit=Unit.MEMBERS,
    labels=GROUP_LABELS,
)
GROUP_INFO: Final = Metric(
    name="tidemark_kafka_group_info",
    help="Type and state of the group in Kafka's words; no state label while it is unknown.",
    unit=Unit.INFO,
    labels=(*GROUP_LABELS, "type", "state"),
)

GROUP_METRICS: Final = (GROUP_MEMBERS, GROUP_INFO)

BROKERS: Final = Metric(
    name="tidemark_kafka_brokers",
    help="Brokers that are registered.",
    unit=Unit.BROKERS,
)
CONTROLLER_INFO: Final = Metric(
    name="tidemark_kafka_controller_info",
    help="Id of the active controller, as the quorum reports it; absent without permission to query it.",
    unit=Unit.INFO,
    labels=(*CLUSTER_LABELS, "controller_id"),
)

CLUSTER_METRICS: Final = (BROKERS, CONTROLLER_INFO)

# Seconds. A commit writes and replicates three records at least: 5 ms is quick. Kafka Streams
# commits every 100 ms, Flink with its checkpoints, every 10 s to 10 min. 60 s is the default of a
# producer's transaction.timeout.ms, and up to 10 s later the coordinator aborts, so that timeouts
# are within (60, 75]. 900 s is the default of a broker's transaction.max.timeout.ms.
DURATION_BUCKETS: Final = (
    0.005,
    0.01,
    0.025,
    0.05,
    0.1,
    0.25,
    0.5,
    1.0,
    2.5,
    5.0,
    10.0,
    30.0,
    60.0,
    75.0,
    150.0,
    300.0,
    600.0,
    900.0,
)

OPEN_TRANSACTIONS: Final = Metric(
    name="tidemark_kafka_open_transactions",
    help="Open transactions by class; hanging, marker_not_replicated and unknown also count "
    "transactions that only a partition shows, once per partition. Absent while a coordinator does "
    "not answer or transactional ids may be hidden from Tidemark; these three also while a leader "
    "that had to be queried does not answer.",
    unit=Unit.TRANSACTIONS,
    labels=(*CLUSTER_LABELS, "class"),
)
OLDEST_TRANSACTION: Final = Metric(
    name="tidemark_kafka_open_transactions_oldest_age_seconds",
    help="How long the oldest open transaction of a class has been open, by its coordinator's clock; "
    "since Tidemark first observed it where no coordinator reports its start. Absent where there is "
    "none, and while their number is absent.",
    unit=Unit.SECONDS,
    labels=(*CLUSTER_LABELS, "class"),
)

OPEN_METRICS: Final = (OPEN_TRANSACTIONS, OLDEST_TRANSACTION)

_ABSENT: Final = "Absent while the log __transaction_state may not be read."

TRANSACTION_DURATION: Final = Metric(
    name="tidemark_kafka_transaction_duration_seconds",
    help="How long transactions took from their first partition to their last marker, since "
    f"Tidemark started. {_ABSENT}",
    unit=Unit.SECONDS,
    labels=(*CLUSTER_LABELS, "outcome"),
    buckets=DURATION_BUCKETS,
)
MARKER_DURATION: Final = Metric(
    name="tidemark_kafka_transaction_marker_duration_seconds",
    help="How long the markers of transactions took, from the coordinator's decision to commit or abort "
    "to their last marker, since Tidemark started, by the broker id of the coordinator; transactions whose "
    f"decision was not read are left out. {_ABSENT}",
    unit=Unit.SECONDS,
    labels=(*CLUSTER_LABELS, "coordinator", "outcome"),
    buckets=DURATION_BUCKETS,
)
TRANSACTION_COMMITS: Final = Metric(
    name="tidemark_kafka_transaction_commits_total",
    help=f"Transactions that were committed since Tidemark started. {_ABSENT}",
    unit=Unit.TRANSACTIONS,
)
TRANSACTION_ABORTS: Final = Metric(
    name="tidemark_kafka_transaction_aborts_total",
    help="Transactions that were aborted since Tidemark started, by their owner or not. " + _ABSENT,
    unit=Unit.TRANSACTIONS,
)
TRANSACTION_FENCINGS: Final = Metric(
    name="tidemark_kafka_transaction_fencings_total",
    help="Open transactions that were taken from their producer since Tidemark started, by cause: "
    "a second_instance with the same transactional id, or the timeout. An abort of a "
    "transactions v2 client by a second instance, within the timeout, looks like its own abort and is "
    "not counted. " + _ABSENT,
    unit=Unit.TRANSACTIONS,
    labels=(*CLUSTER_LABELS, "cause"),
)

RECORDS_PER_TRANSACTION: Final = Metric(
    name="tidemark_kafka_transaction_mean_records",
    help="Records in a transaction, the mean of all transactions of the last five to ten minutes: what the "
    "partitions that they marked grew by, without the markers. Records that were written there without a "
    f"transaction are counted too. Absent where no transaction ended, or an end offset was not read. {_ABSENT}",
    unit=Unit.RECORDS,
)
TRANSACTIONAL_IDS: Final = Metric(
    name="tidemark_kafka_transactional_ids",
    help="Transactional ids that ended a transaction in the last five to ten minutes, by the broker id of their "
    f"coordinator; at most 4,000 in five minutes. {_ABSENT}",
    unit=Unit.TRANSACTIONAL_IDS,
    labels=(*CLUSTER_LABELS, "coordinator"),
)

COST_METRICS: Final = (RECORDS_PER_TRANSACTION, TRANSACTIONAL_IDS)

ENDED_METRICS: Final = (
    TRANSACTION_DURATION,
    MARKER_DURATION,
    TRANSACTION_COMMITS,
    TRANSACTION_ABORTS,
    TRANSACTION_FENCINGS,
)

SEQUENCE_REJECTIONS: Final = Metric(
    name="tidemark_kafka_sequence_rejections_total",
    help="Batches that brokers logged as rejected because of their sequence; absent where no log "
    "is read. A line that arrives from two sources counts twice.",
    unit=Unit.LINES,
)
SEQUENCE_EPISODES: Final = Metric(
    name="tidemark_kafka_sequence_episodes",
    help="Producers on partitions with rejected sequences in the last day, by what it was.",
    unit=Unit.EPISODES,
    labels=(*CLUSTER_LABELS, "class", "phase"),
)

SEQUENCE_METRICS: Final = (SEQUENCE_REJECTIONS, SEQUENCE_EPISODES)

_AS_SCRAPED: Final = (
    "As its process exposes it, so that it starts again at 0 with the process; absent while its "
    "endpoint does not answer."
)
_CLIENT: Final = (
    "By client.id and the address of the process; without a topic label where the client exposes only "
    f"the sum over its topics. {_AS_SCRAPED}"
)

RECORD_ERRORS: Final = Metric(
    name="tidemark_kafka_record_errors_total",
    help=f"Records that a producer gave up: they failed for good. {_CLIENT}",
    unit=Unit.RECORDS,
    labels=PRODUCER_LABELS,
)
RECORD_RETRIES: Final = Metric(
    name="tidemark_kafka_record_retries_total",
    help=f"Records that a producer sent again. {_CLIENT}",
    unit=Unit.RECORDS,
    labels=PRODUCER_LABELS,
)
BROKER_REQUEST_ERRORS: Final = Metric(
    name="tidemark_kafka_broker_request_errors_total",
    help="Errors that a broker answered, by request and error in Kafka's words, once per partition of "
    "an answer; the broker is named by the address of its metrics: they do not contain its id. "
    + _AS_SCRAPED,
    unit=Unit.ERRORS,
    labels=(*CLUSTER_LABELS, "broker", "request", "error"),
)
UNCLEAN_ELECTIONS: Final = Metric(
    name="tidemark_kafka_unclean_elections_total",
    help="Unclean leader elections that a controller counted, those of the last known leader included, "
    "which lose nothing; the controller is named by the address of its metrics. " + _AS_SCRAPED,
    unit=Unit.ELECTIONS,
    labels=(*CLUSTER_LABELS, "controller"),
)

SCRAPED_METRICS: Final = (
    RECORD_ERRORS,
    RECORD_RETRIES,
    BROKER_REQUEST_ERRORS,
    UNCLEAN_ELECTIONS,
)

OBSERVED_METRICS: Final = (
    *PARTITION_METRICS,
    *REPLICA_METRICS,
    *COMMIT_METRICS,
    *GROUP_METRICS,
    *CLUSTER_METRICS,
    *OPEN_METRICS,
    *ENDED_METRICS,
    *COST_METRICS,
    *SEQUENCE_METRICS,
    *SCRAPED_METRICS,
)
