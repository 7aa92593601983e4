"""What is observed of each group, and of each of its commits."""

from __future__ import annotations

from typing import Final

from rules.names.metric import COMMIT_LABELS, GROUP_LABELS, Metric, Unit


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
    "Last stable offset minus committed offset; absent where the group is above it.",
)
READ_UNCOMMITTED_LAG: Final = _commit(
    "read_uncommitted_lag_offsets",
    Unit.OFFSETS,
    "High watermark minus committed offset; absent where the group is above it.",
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
