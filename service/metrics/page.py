"""Writes the page docs/metrics.md from `rules/names/`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from rules import names
from rules.names import Metric, MetricType

INTRODUCTION: Final = """\
# Metrics

Generated from `rules/names/` by `make golden`; a test compares.

`tidemark_kafka_...` is what was observed in Kafka, `tidemark_...` is Tidemark itself. All of them
are written when a round is first scraped, once for all scrapers, without timestamps. A value that is not
known has no sample: never 0, -1 or NaN. Offsets count transaction markers too, so that a lag or
span in offsets is not a number of records. While the cluster cannot be queried, only metrics of
Tidemark itself and counters are shown: no older value is repeated as if it were current.

Partitions and groups beyond the limit on series, or excluded by pattern, are missing altogether. What
they leave of the limit is for replicas of partitions at risk, then for what brokers, controllers and
clients count. `tidemark_series_dropped` says how many series are missing and why.

The same rounds under the names of other exporters: moving from
[kafka_exporter](moving-from-kafka-exporter.md), [KMinion](moving-from-kminion.md),
[Kafka Lag Exporter](moving-from-kafka-lag-exporter.md).
"""

SECTIONS: Final[tuple[tuple[str, tuple[Metric, ...]], ...]] = (
    ("Partitions", names.PARTITION_METRICS),
    ("Replicas of partitions at risk", names.REPLICA_METRICS),
    ("What groups committed, per partition", names.COMMIT_METRICS),
    ("Groups", names.GROUP_METRICS),
    ("Cluster", names.CLUSTER_METRICS),
    ("Transactions that are open", names.OPEN_METRICS),
    ("Transactions that ended", names.ENDED_METRICS),
    ("What transactions cost", names.COST_METRICS),
    ("Rejected sequences", names.SEQUENCE_METRICS),
    ("What clients, brokers and controllers count", names.SCRAPED_METRICS),
    ("Tidemark itself", names.SELF_METRICS),
)


def metrics_page() -> str:
    """Return the whole page."""
    return "\n".join([INTRODUCTION, *(_section(title, metrics) for title, metrics in SECTIONS)])


def _section(title: str, metrics: Iterable[Metric]) -> str:
    head = f"## {title}\n\n| metric | type | unit | labels | meaning |\n|---|---|---|---|---|\n"
    return head + "".join(f"{_row(metric)}\n" for metric in metrics)


def _row(metric: Metric) -> str:
    labels = ", ".join(metric.labels)
    meaning = metric.help + _buckets(metric)
    return f"| `{metric.name}` | {metric.type} | {metric.unit} | {labels} | {meaning} |"


def _buckets(metric: Metric) -> str:
    if metric.type is not MetricType.HISTOGRAM:
        return ""
    bounds = ", ".join(map(repr, metric.buckets))
    series = ", ".join(f"`{name}`" for name in metric.series)
    return f" Queried as {series}; buckets (`le`): {bounds}, +Inf."
