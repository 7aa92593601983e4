"""The metrics of reading the brokers' logs, per source."""

from __future__ import annotations

from typing import Final

from rules.names.metric import CLUSTER_LABELS, Metric, MetricType, Unit

SOURCE_LABELS: Final = (*CLUSTER_LABELS, "source")

BROKER_LOG_LINES: Final = Metric(
    name="tidemark_broker_log_lines_total",
    help="Lines that were read from a source of broker logs.",
    unit=Unit.LINES,
    labels=SOURCE_LABELS,
    type=MetricType.COUNTER,
)
BROKER_LOG_UNPARSED: Final = Metric(
    name="tidemark_broker_log_unparsed_lines_total",
    help="Lines about sequences or lost records that could not be parsed.",
    unit=Unit.LINES,
    labels=SOURCE_LABELS,
    type=MetricType.COUNTER,
)
BROKER_LOG_LOST: Final = Metric(
    name="tidemark_broker_log_lost_bytes_total",
    help="Bytes of log files that were removed before they were read, or part of a line of more than "
    "a megabyte. Bytes that were written and removed between two rounds are not counted.",
    unit=Unit.BYTES,
    labels=SOURCE_LABELS,
    type=MetricType.COUNTER,
)
BROKER_LOG_LAST_LINE: Final = Metric(
    name="tidemark_broker_log_last_line_timestamp_seconds",
    help="When the latest line was written, by the broker's clock; absent before the first.",
    unit=Unit.TIMESTAMP,
    labels=SOURCE_LABELS,
)

BROKER_LOG_METRICS: Final = (
    BROKER_LOG_LINES,
    BROKER_LOG_UNPARSED,
    BROKER_LOG_LOST,
    BROKER_LOG_LAST_LINE,
)
