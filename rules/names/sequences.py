"""What brokers rejected because of its sequence, and what that was."""

from __future__ import annotations

from typing import Final

from rules.names.metric import CLUSTER_LABELS, Metric, MetricType, Unit

SEQUENCE_REJECTIONS: Final = Metric(
    name="tidemark_kafka_sequence_rejections_total",
    help="Batches that brokers logged as rejected because of their sequence; absent where no log "
    "is read. A line that arrives from two sources counts twice.",
    unit=Unit.LINES,
    labels=CLUSTER_LABELS,
    type=MetricType.COUNTER,
)
SEQUENCE_EPISODES: Final = Metric(
    name="tidemark_kafka_sequence_episodes",
    help="Producers on partitions with rejected sequences in the last day, by what it was.",
    unit=Unit.EPISODES,
    labels=(*CLUSTER_LABELS, "class", "phase"),
)

SEQUENCE_METRICS: Final = (SEQUENCE_REJECTIONS, SEQUENCE_EPISODES)
