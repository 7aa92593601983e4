"""Graphs read recorded series where there are some, and nothing else of a dashboard differs."""

from __future__ import annotations

import json
import re
from typing import Final

from dashboards.prometheus.recording import RECORDING, RecordedAggregation
from dashboards.promql import (
    TARGET_LABELS,
    Scope,
    equals,
    largest,
    minus,
    top,
    total,
)
from dashboards.recorded import from_recorded
from rules import names
from rules.names import METRICS
from tests.unit.dashboards.given_dashboards import (
    DASHBOARDS,
    RECORDED,
    every_expression,
    every_target,
    recorded_expressions,
)

SCOPE: Final = Scope(("cluster", "topic"))
CLUSTER: Final = Scope(("cluster",))
SELECTOR: Final = re.compile(r"([\w:]+)\{([^}]*)\}")
MATCHER: Final = re.compile(r'(\w+)(?:=~|!~|!=|=)"')
GROUPING: Final = re.compile(r"by \(([^)]*)\)")
BY_RECORD: Final = {
    rule.record: rule.labels for rule in RECORDING.rules if isinstance(rule, RecordedAggregation)
}
PER_PARTITION: Final = {metric.name for metric in METRICS if "partition" in metric.labels}
# What graphs read of every partition all the same.
CHANGES: Final = names.LEADER_EPOCH.name  # a change is counted once, whatever the step


def test_an_aggregation_reads_the_coarsest_series_with_the_labels_that_it_needs() -> None:
    span = names.OPEN_SPAN.name
    by_topic = total(SCOPE.value(names.OPEN_SPAN), "cluster", "topic")
    assert from_recorded(by_topic).text == (
        f'sum by (cluster, topic) (cluster_topic:{span}:sum{{cluster=~"$cluster", topic=~"$topic"}})'
    )
    matched = total(SCOPE.value(names.OPEN_SPAN))
    assert from_recorded(matched).text.startswith(f"sum(cluster_topic:{span}:sum{{")
    everything = total(CLUSTER.value(names.OPEN_SPAN))
    assert from_recorded(everything).text == f'sum(cluster:{span}:sum{{cluster=~"$cluster"}})'


def test_an_aggregation_that_is_not_recorded_stays() -> None:
    for expression in (
        largest(SCOPE.value(names.OPEN_SPAN), "topic"),  # sums are recorded
        total(SCOPE.value(names.OPEN_SPAN), "partition"),
        total(SCOPE.value(names.OPEN_SPAN, equals("partition", "0"))),
        total(SCOPE.value(names.LOG_END_OFFSET)),  # its speed is recorded
        total(minus(SCOPE.value(names.OPEN_SPAN), CLUSTER.value(names.OPEN_SPAN))),
    ):
        assert from_recorded(expression).text == expression.text


def test_aggregations_within_an_expression_are_replaced() -> None:
    both = (total(SCOPE.value(lag)) for lag in (names.OPEN_SPAN, names.UNREPLICATED_SPAN))
    recorded = from_recorded(top(10, minus(*both))).text
    assert re.fullmatch(
        r"topk\(10, \(sum\(cluster_topic:.*\) - sum\(cluster_topic:.*\)\)\)", recorded
    )


def test_only_graphs_differ() -> None:
    of_graphs = {
        f"{shown.name} {target['refId']}"
        for shown, target in every_target()
        if shown.panel["type"] == "timeseries"
    }
    assert recorded_expressions().keys() <= of_graphs
    expressions = dict(recorded_expressions().values())
    for scraped, recorded in zip(DASHBOARDS, RECORDED, strict=True):
        document = recorded.text
        for old, new in expressions.items():
            document = document.replace(json.dumps(new), json.dumps(old))
        assert document == scraped.text


def test_recorded_series_have_the_labels_that_are_matched_and_grouped_by() -> None:
    for name, (_, recorded) in recorded_expressions().items():
        for series, matchers in SELECTOR.findall(recorded):
            labels = BY_RECORD[series] | TARGET_LABELS
            assert set(MATCHER.findall(matchers)) <= labels, name
            for grouping in GROUPING.findall(recorded):
                assert set(grouping.split(", ")) <= labels, name


def test_no_graph_of_more_than_one_partition_reads_every_partition() -> None:
    ranges = {
        f"{shown.name} {target['refId']}"
        for shown, target in every_target(RECORDED)
        if shown.panel["type"] == "timeseries"
        and 'partition="$partition"' not in target.get("expr", "")
    }
    for name, expression in every_expression(RECORDED):
        if name in ranges:
            read = {series for series, _ in SELECTOR.findall(expression)} & PER_PARTITION
            assert read <= {CHANGES}, name
