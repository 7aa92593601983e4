"""The metric names keep Prometheus's conventions, so that nobody has to look one up twice."""

from __future__ import annotations

import math
import re

import pytest

from rules import names
from rules.names import Metric, MetricType, Unit

LABELS = {
    "address",
    "api",
    "bound",
    "broker",
    "cause",
    "check",
    "class",
    "client",
    "cluster",
    "controller",
    "controller_id",
    "coordinator",
    "endpoint",
    "error",
    "failure",
    "group",
    "job_name",
    "metric",
    "kind",
    "outcome",
    "partition",
    "phase",
    "reason",
    "receiver",
    "replica",
    "request",
    "rule",
    "severity",
    "source",
    "state",
    "task",
    "topic",
    "type",
    "verdict",
    "version",
}
OBSERVED = (
    *names.PARTITION_METRICS,
    *names.REPLICA_METRICS,
    *names.COMMIT_METRICS,
    *names.GROUP_METRICS,
    *names.CLUSTER_METRICS,
    *names.OPEN_METRICS,
    *names.ENDED_METRICS,
    *names.COST_METRICS,
    *names.SEQUENCE_METRICS,
    *names.SCRAPED_METRICS,
)

every_metric = pytest.mark.parametrize("metric", names.METRICS, ids=lambda metric: metric.name)


def test_every_metric_of_the_module_is_listed_once() -> None:
    defined = [value for value in vars(names).values() if isinstance(value, Metric)]
    assert len(defined) == len(names.METRICS)
    assert set(defined) == set(names.METRICS)
    assert len({metric.name for metric in names.METRICS}) == len(names.METRICS)


@every_metric
def test_a_prefix_tells_what_was_observed_from_tidemark_itself(metric: Metric) -> None:
    prefix = "process" if metric in names.STANDARD_METRICS else "tidemark"
    assert re.fullmatch(prefix + r"_[a-z]+(_[a-z]+)*", metric.name)
    assert metric.name.startswith("tidemark_kafka_") == (metric in OBSERVED)


@every_metric
def test_only_counters_end_with_total(metric: Metric) -> None:
    assert metric.name.endswith("_total") == (metric.type is MetricType.COUNTER)
    assert not metric.family.endswith("_total")


@every_metric
def test_only_a_histogram_has_series_under_other_names(metric: Metric) -> None:
    is_histogram = metric.type is MetricType.HISTOGRAM
    parts = ("_bucket", "_sum", "_count") if is_histogram else ("",)
    assert metric.series == tuple(metric.name + part for part in parts)
    assert not any(metric.name.endswith(part) for part in ("_bucket", "_sum", "_count"))


@every_metric
def test_buckets_of_a_histogram_ascend_to_a_finite_bound(metric: Metric) -> None:
    assert bool(metric.buckets) == (metric.type is MetricType.HISTOGRAM)
    assert list(metric.buckets) == sorted(set(metric.buckets))
    assert all(0 < bound < math.inf for bound in metric.buckets)


def test_a_timeout_by_default_and_the_longest_allowed_have_buckets_of_their_own() -> None:
    bounds = names.TRANSACTION_DURATION.buckets
    default, cleanup, longest = 60.0, 10.0, 900.0
    after_default = bounds[bounds.index(default) + 1]
    assert default + cleanup < after_default
    assert bounds[-1] == longest


@pytest.mark.parametrize(
    ("unit", "ending"),
    [
        (Unit.SECONDS, "_seconds"),
        (Unit.TIMESTAMP, "_timestamp_seconds"),
        (Unit.OFFSETS, "_offsets"),
        (Unit.INFO, "_info"),
    ],
)
def test_a_unit_unchanged_at_the_end_of_the_name(unit: Unit, ending: str) -> None:
    ours = [metric for metric in names.METRICS if metric not in names.STANDARD_METRICS]
    for metric in ours:
        if metric.unit is unit:
            assert metric.family.endswith(ending)
        elif unit is not Unit.SECONDS:  # a timestamp ends with _seconds too
            assert not metric.name.endswith(ending)


@every_metric
def test_help_is_a_sentence_that_needs_no_escaping(metric: Metric) -> None:
    assert re.fullmatch(r"[A-Z][^\\\"\n|]+\.", metric.help)


@every_metric
def test_labels_are_from_the_closed_set_and_not_part_of_the_name(metric: Metric) -> None:
    assert set(metric.labels) <= LABELS
    assert len(set(metric.labels)) == len(metric.labels)
    assert (metric in names.PROCESS_METRICS) == ("cluster" not in metric.labels)
    assert metric in names.PROCESS_METRICS or metric.labels[0] == "cluster"


def test_every_label_of_the_closed_set_is_used() -> None:
    assert {label for metric in names.METRICS for label in metric.labels} == LABELS
