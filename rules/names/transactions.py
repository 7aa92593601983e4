"""What is observed of the transactions of a cluster: those that are open, and how others ended."""

from __future__ import annotations

from typing import Final

from rules.names.metric import CLUSTER_LABELS, Metric, MetricType, Unit

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

# ------------------------------------------------------------------ open now
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

# ------------------------------------------------------------------ ended since the process started
_ABSENT: Final = "Absent while the log __transaction_state may not be read."

TRANSACTION_DURATION: Final = Metric(
    name="tidemark_kafka_transaction_duration_seconds",
    help="How long transactions took from their first partition to their last marker, since "
    f"Tidemark started. {_ABSENT}",
    unit=Unit.SECONDS,
    labels=(*CLUSTER_LABELS, "outcome"),
    type=MetricType.HISTOGRAM,
    buckets=DURATION_BUCKETS,
)
TRANSACTION_COMMITS: Final = Metric(
    name="tidemark_kafka_transaction_commits_total",
    help=f"Transactions that were committed since Tidemark started. {_ABSENT}",
    unit=Unit.TRANSACTIONS,
    labels=CLUSTER_LABELS,
    type=MetricType.COUNTER,
)
TRANSACTION_ABORTS: Final = Metric(
    name="tidemark_kafka_transaction_aborts_total",
    help="Transactions that were aborted since Tidemark started, by their owner or not. " + _ABSENT,
    unit=Unit.TRANSACTIONS,
    labels=CLUSTER_LABELS,
    type=MetricType.COUNTER,
)
TRANSACTION_FENCINGS: Final = Metric(
    name="tidemark_kafka_transaction_fencings_total",
    help="Open transactions that were taken from their producer since Tidemark started, by cause: "
    "a second_instance with the same transactional id, or the timeout. An abort of a "
    "transactions v2 client by a second instance, within the timeout, looks like its own abort and is "
    "not counted. " + _ABSENT,
    unit=Unit.TRANSACTIONS,
    labels=(*CLUSTER_LABELS, "cause"),
    type=MetricType.COUNTER,
)

ENDED_METRICS: Final = (
    TRANSACTION_DURATION,
    TRANSACTION_COMMITS,
    TRANSACTION_ABORTS,
    TRANSACTION_FENCINGS,
)
