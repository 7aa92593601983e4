"""What a metric is: its name, type, unit and labels."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

CLUSTER_LABELS: Final = ("cluster",)
PARTITION_LABELS: Final = ("cluster", "topic", "partition")
GROUP_LABELS: Final = ("cluster", "group")
COMMIT_LABELS: Final = ("cluster", "group", "topic", "partition")
PRODUCER_LABELS: Final = ("cluster", "client", "address", "topic")


class MetricType(StrEnum):
    """How a metric moves; the words of the exposition formats."""

    GAUGE = "gauge"
    COUNTER = "counter"  # name ends with _total; starts again at 0 with the process
    HISTOGRAM = "histogram"  # counts by size, likewise; `le` says up to which size


class Unit(StrEnum):
    """What one step of the value is."""

    OFFSET = "offset"  # a position in a partition
    OFFSETS = "offsets"  # a number of offsets, not of records: markers use offsets too
    EPOCH = "epoch"
    SECONDS = "seconds"
    MILLISECONDS = "milliseconds"  # only in names of others
    TIMESTAMP = "seconds since 1970-01-01 UTC"
    FLAG = "1 yes, 0 no"
    INFO = "always 1; the labels carry the meaning"
    OF_SERIES = "that of the series which its labels name"
    DEVIATIONS = "usual deviations"
    REPLICAS = "replicas"
    MEMBERS = "members"
    BROKERS = "brokers"
    BROKER_ID = "broker id"
    REQUESTS = "requests"
    COMMITS = "commits"
    TRANSACTIONS = "transactions"
    TRANSACTIONAL_IDS = "transactional ids"
    GAPS = "gaps"
    SERIES = "series"
    SAMPLES = "samples"
    FINDINGS = "findings"
    SETTINGS = "settings"
    SUBJECTS = "subjects"  # what rules judge: partitions, commits, rules
    PARTITIONS = "partitions"
    ROUNDS = "rounds"
    ROWS = "rows"
    RUNS = "runs"
    OBSERVATIONS = "observations"
    TRANSITIONS = "transitions"
    STEPS = "steps"
    RESTARTS = "restarts"
    LINES = "lines"
    RECORDS = "records"
    ERRORS = "errors"
    ELECTIONS = "elections"
    EPISODES = "episodes"
    BYTES = "bytes"
    FILES = "files"
    ALERTS = "alerts"
    NOTIFICATIONS = "notifications"
    ATTEMPTS = "attempts"
    DESCRIPTORS = "file descriptors"


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """One metric: one quantity in one unit."""

    name: str  # as it is queried
    help: str
    unit: Unit
    labels: tuple[str, ...] = CLUSTER_LABELS
    buckets: tuple[float, ...] = ()  # upper bounds of a histogram, inclusive, without infinity

    @property
    def type(self) -> MetricType:
        """Return how it moves: Prometheus' convention for names is our rule."""
        if self.buckets:
            return MetricType.HISTOGRAM
        return MetricType.COUNTER if self.name.endswith("_total") else MetricType.GAUGE

    @property
    def series(self) -> tuple[str, ...]:
        """Return the names under which it is queried: a histogram has three, its own is none."""
        if self.type is not MetricType.HISTOGRAM:
            return (self.name,)
        return tuple(f"{self.name}_{part}" for part in ("bucket", "sum", "count"))

    @property
    def family(self) -> str:
        """Return the name that OpenMetrics gives the family: a counter's is without `_total`."""
        return self.name.removesuffix("_total") if self.type is MetricType.COUNTER else self.name
