"""What is measured again and again: the metrics that history keeps, and the identity of a series."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

_as_text: Final = json.JSONEncoder(separators=(",", ":")).encode  # made once: ids come in 100,000s


class Metric(StrEnum):
    """What a series counts; the value is lasting: histories are kept under it."""

    # per group, topic and partition
    READ_COMMITTED_LAG = "read_committed_lag"  # offsets
    READ_UNCOMMITTED_LAG = "read_uncommitted_lag"  # offsets
    READ_COMMITTED_LAG_SECONDS = "read_committed_lag_seconds"
    READ_UNCOMMITTED_LAG_SECONDS = "read_uncommitted_lag_seconds"
    CONSUME_RATE = "consume_rate"  # committed offsets per second
    # per topic and partition
    PRODUCE_RATE = "produce_rate"  # offsets per second, by the log end
    OPEN_SPAN = "open_span"  # offsets, high watermark - last stable offset
    UNREPLICATED_SPAN = "unreplicated_span"  # offsets, log end - high watermark
    SEQUENCE_ERRORS = "sequence_errors"  # refused batches per second
    # per topic, of the producers whose metrics are read
    RECORD_ERROR_RATE = "record_error_rate"  # records per second
    # per cluster
    ABORT_RATIO = "abort_ratio"  # ended transactions that were aborted, 0 to 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """One series, told by its labels."""

    cluster: str  # the configured name
    metric: Metric
    topic: str | None = None
    partition: int | None = None
    group: str | None = None

    @property
    def series_id(self) -> int:
        """The same for the same labels, in every process: 63 bits of a hash, never negative.

        Among ten million series two collide with a probability of about 5e-6.
        """
        labels = (self.cluster, self.metric.value, self.topic, self.partition, self.group)
        text = _as_text(labels)
        digest = hashlib.blake2b(text.encode(), digest_size=8).digest()
        return int.from_bytes(digest, "big") >> 1
