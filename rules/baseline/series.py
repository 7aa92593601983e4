"""The metrics that the history stores, and the identity of a series."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from hashlib import blake2b
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_as_text: Final = json.JSONEncoder(separators=(",", ":")).encode  # made once: ids come in 100,000s
_NULL: Final = "null"


class Metric(StrEnum):
    """What a series measures; the value is lasting: histories are stored under it."""

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
    SEQUENCE_ERRORS = "sequence_errors"  # rejected batches per second
    # per topic, of the producers whose metrics are read
    RECORD_ERROR_RATE = "record_error_rate"  # records per second
    # per cluster
    ABORT_RATIO = "abort_ratio"  # ended transactions that were aborted, 0 to 1
    # per topic and client id, from its first failed record or retry on; see rules.record_errors.series
    CLIENT_RECORD_ERROR_RATE = "client_record_error_rate"  # records per second that failed for good
    CLIENT_RECORD_RETRY_RATE = "client_record_retry_rate"  # records per second, sent again


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """One series, identified by its labels."""

    cluster: str  # the configured name
    metric: Metric
    topic: str | None = None
    partition: int | None = None
    group: str | None = None
    client_id: str | None = None

    @property
    def text(self) -> bytes:
        """The labels as JSON, lasting, as ids are made of it: [cluster, metric, topic, partition, group].

        A client id follows them where there is one.
        """
        return text_head(self.cluster, self.metric) + text_tail(
            self.topic, self.partition, self.group, self.client_id
        )

    @property
    def series_id(self) -> int:
        """The same for the same labels, in every process: 63 bits of a hash, never negative.

        Among ten million series two collide with a probability of about 5e-6.
        """
        return int(series_ids([self.text])[0])


def text_head(cluster: str, metric: Metric) -> bytes:
    """Return how the texts of all series of a metric begin."""
    return _as_text((cluster, metric.value))[:-1].encode() + b","


def text_tail(
    topic: str | None, partition: int | None, group: str | None, client_id: str | None = None
) -> bytes:
    """Return how the texts of all metrics of a topic, partition, group or client end."""
    number = _NULL if partition is None else partition
    client = "" if client_id is None else f",{_as_text(client_id)}"
    return f"{_quoted(topic)},{number},{_quoted(group)}{client}]".encode()


def _quoted(text: str | None) -> str:
    return _NULL if text is None else _as_text(text)


def series_ids(texts: Iterable[bytes]) -> NDArray[np.int64]:
    """Return the ids of series by their texts, in their order; it costs a microsecond each."""
    import numpy as np  # noqa: PLC0415 - a command that names metrics needs none of its 100 ms

    digests = b"".join([blake2b(text, digest_size=8).digest() for text in texts])
    return (np.frombuffer(digests, ">u8") >> 1).astype(np.int64)
