"""What is observed of each partition."""

from __future__ import annotations

from typing import Final

from rules.names.metric import PARTITION_LABELS, Metric, Unit


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
