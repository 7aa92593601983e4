"""What three public dashboards query: metrics, the labels they match and join by. Facts, not their text.

- danielqsj/kafka_exporter at 953e2f17: kafka_exporter_overview.json (7589 on grafana.com)
- dsbasko/kafka-cookbook at b2f6d94a: lectures/08-operations/08-01-monitoring-and-metrics/grafana-dashboard.json
- seglo/kafka-lag-exporter v0.8.2: grafana/Kafka_Lag_Exporter_Dashboard.json
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

NAMESPACE: Final = "streams"  # of the scrape job


@dataclass(frozen=True, kw_only=True)
class Query:
    """One expression: a metric with matchers, perhaps over a time, perhaps joined."""

    metric: str
    matched: tuple[str, ...] = ()
    over: str | None = None  # rate or delta, with its window
    join: str | None = None  # sum, max, count or topk with its number
    by: tuple[str, ...] | None = None
    ends: str | None = None  # a metric that takes the place of the value, by partition
    minus: str | None = None  # a metric that is subtracted

    def expression(self, matchers: Mapping[str, str]) -> str:
        """Return it in PromQL, with the selector of each matched label."""
        text = self._joined(self._selected(self.metric, matchers), matchers)
        if self.minus is None:
            return text
        return f"{text} - {self._joined(self._selected(self.minus, matchers), matchers)}"

    def _selected(self, metric: str, matchers: Mapping[str, str]) -> str:
        chosen = ",".join(f"{label}{matchers[label]}" for label in self.matched)
        selector = f"{metric}{{{chosen}}}"
        if self.over is None:
            return selector
        function, window = self.over.split()
        return f"{function}({selector}[{window}])"

    def _joined(self, text: str, matchers: Mapping[str, str]) -> str:
        if self.ends is not None:
            chosen = ",".join(f"{label}{matchers[label]}" for label in self.matched[:2])
            on = "namespace,cluster_name,topic,partition"
            text = f"{text} * 0 + on({on}) group_left() {self.ends}{{{chosen}}}"
        if self.join is None:
            return text
        function, _, number = self.join.partition(" ")
        labels = "" if self.by is None else f" by ({','.join(self.by)})"
        return f"{function}{labels}({number + ',' if number else ''}{text})"


_OFFSET, _COMMITTED = "kafka_topic_partition_current_offset", "kafka_consumergroup_current_offset"
_HERE: Final = ("instance", "topic")
KAFKA_EXPORTER: Final = (
    Query(metric=_OFFSET, matched=_HERE, over="rate 1m", join="sum", by=("topic",)),
    Query(
        metric="kafka_consumergroup_lag", matched=_HERE, join="sum", by=("consumergroup", "topic")
    ),
    Query(metric=_OFFSET, matched=_HERE, over="delta 5m", join="sum", by=("topic",)),
    Query(
        metric=_COMMITTED,
        matched=_HERE,
        over="delta 5m",
        join="sum",
        by=("consumergroup", "topic"),
    ),
    Query(metric="kafka_topic_partitions", matched=_HERE, join="sum", by=("topic",)),
    Query(metric=_COMMITTED, join="count", by=("job",)),  # its variables
    Query(metric=_COMMITTED, join="count", by=("instance",)),
    Query(metric=_OFFSET, matched=("instance",), join="count", by=("topic",)),
)

_WATERMARKS: Final = "kminion_kafka_topic_high_water_mark_sum"
KMINION: Final = (
    Query(metric="kminion_kafka_cluster_info"),
    Query(metric="kminion_kafka_consumer_group_info", join="count", by=("group_id",)),
    Query(metric=_WATERMARKS, over="rate 1m", join="sum", by=("topic_name",)),
    Query(
        metric="kminion_kafka_consumer_group_topic_lag", join="sum", by=("group_id", "topic_name")
    ),
    Query(
        metric=_WATERMARKS,
        minus="kminion_kafka_topic_low_water_mark_sum",
        join="sum",
        by=("topic_name",),
    ),
)
# Of its other panels: sizes are missing here, and the last one no KMinion exposes.
NOT_ANSWERED: Final = (
    "kminion_kafka_topic_log_dir_size_total_bytes",
    "kminion_kafka_topic_partition_count",
)

_GROUP: Final = "kafka_consumergroup_group_"
_CHOSEN: Final = ("namespace", "cluster_name", "group")
KAFKA_LAG_EXPORTER: Final = (
    Query(metric=f"{_GROUP}max_lag_seconds", matched=_CHOSEN, join="topk 50"),
    Query(metric=f"{_GROUP}lag_seconds", matched=_CHOSEN, join="topk 25"),
    Query(metric=f"{_GROUP}max_lag", matched=_CHOSEN, join="topk 50"),
    Query(metric=f"{_GROUP}lag", matched=_CHOSEN, join="topk 25"),
    Query(metric=f"{_GROUP}max_lag_seconds", matched=_CHOSEN),
    Query(metric=f"{_GROUP}max_lag", matched=_CHOSEN),
    Query(metric=f"{_GROUP}lag_seconds", matched=_CHOSEN, join="max", by=("group",)),
    Query(metric=f"{_GROUP}offset", matched=_CHOSEN, join="sum"),
    Query(
        metric=f"{_GROUP}offset",
        matched=_CHOSEN,
        ends="kafka_partition_latest_offset",
        join="sum",
    ),
    Query(metric=f"{_GROUP}lag", join="count", by=("namespace",)),  # its variables
    Query(metric=f"{_GROUP}lag", matched=_CHOSEN[:1], join="count", by=("cluster_name",)),
    Query(metric=f"{_GROUP}lag", matched=_CHOSEN[:2], join="count", by=("group",)),
)

QUERIES: Final[Mapping[str, tuple[Query, ...]]] = {
    "kafka_exporter": KAFKA_EXPORTER,
    "kminion": KMINION,
    "kafka_lag_exporter": KAFKA_LAG_EXPORTER,
}


def matchers(instance: str) -> dict[str, str]:
    """Return what its variables stand for: everything that the target `instance` shows."""
    return {
        "instance": f'="{instance}"',
        "topic": '=~".*"',
        "namespace": f'="{NAMESPACE}"',
        "cluster_name": '="default"',
        "group": '=~".+"',
    }
