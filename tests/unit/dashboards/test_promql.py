"""Expressions hold only metrics and labels that there are, and are what Prometheus takes."""

from __future__ import annotations

import pytest

from dashboards.promql import (
    Scope,
    among,
    any_of,
    equals,
    largest,
    minus,
    or_zero,
    quantile,
    ratio,
    top,
    total,
    where_below,
)
from rules import names

SCOPE = Scope(("cluster", "topic"))


def test_a_gauge_is_selected_by_the_variables_that_it_has_as_labels() -> None:
    assert SCOPE.value(names.BROKERS).text == 'tidemark_kafka_brokers{cluster=~"$cluster"}'
    assert SCOPE.value(names.HAS_LEADER).text == (
        'tidemark_kafka_partition_has_leader{cluster=~"$cluster", topic=~"$topic"}'
    )


def test_a_matcher_of_a_label_that_the_metric_lacks_fails_where_it_is_written() -> None:
    with pytest.raises(ValueError, match="tidemark_kafka_brokers has no label topic"):
        SCOPE.value(names.BROKERS, equals("topic", "orders"))


def test_the_target_s_own_labels_may_be_matched_on_every_metric() -> None:
    memory = Scope(("job",)).value(names.PROCESS_MEMORY)
    assert memory.text == 'process_resident_memory_bytes{job=~"$job"}'


def test_a_counter_is_only_rated_and_a_gauge_never() -> None:
    with pytest.raises(ValueError, match="use rate or increase"):
        SCOPE.value(names.ROUNDS)
    with pytest.raises(ValueError, match="and no counter"):
        SCOPE.rate(names.BROKERS)
    assert SCOPE.rate(names.ROUNDS).text == (
        'rate(tidemark_rounds_total{cluster=~"$cluster"}[$__rate_interval])'
    )


def test_offsets_advance_by_deriv_so_that_a_truncated_log_is_negative_and_no_counter_reset() -> (
    None
):
    assert SCOPE.speed(names.LOG_END_OFFSET).text.startswith("deriv(")


def test_an_aggregation_by_a_label_that_is_gone_fails() -> None:
    per_cluster = total(SCOPE.value(names.HAS_LEADER), "cluster")
    with pytest.raises(ValueError, match="has no label topic"):
        largest(per_cluster, "topic")


def test_operands_whose_labels_differ_are_rejected_since_prometheus_would_match_nothing() -> None:
    per_cluster = total(SCOPE.value(names.HAS_LEADER), "cluster")
    per_topic = total(SCOPE.value(names.HAS_LEADER), "cluster", "topic")
    for operation in (minus, ratio, where_below, among, or_zero):
        with pytest.raises(ValueError, match="labels"):
            operation(per_cluster, per_topic)


def test_a_quantile_keeps_the_bucket_s_bound_while_it_sums() -> None:
    half = quantile(0.5, SCOPE.bucket_rate(names.TRANSACTION_DURATION), "outcome")
    assert half.text.startswith("histogram_quantile(0.5, sum by (le, outcome) (rate(")
    assert half.labels == {"outcome"}


def test_only_a_histogram_has_buckets() -> None:
    with pytest.raises(ValueError, match="no histogram"):
        SCOPE.bucket_rate(names.BROKERS)


def test_zero_is_only_shown_while_the_service_reports() -> None:
    findings = total(SCOPE.value(names.OPEN_FINDINGS, any_of("rule", "a", "b")), "cluster")
    reporting = largest(SCOPE.value(names.ROUND_INTERVAL), "cluster")
    assert or_zero(findings, reporting).text == f"{findings.text} or 0 * {reporting.text}"


def test_the_largest_are_a_number_of_series() -> None:
    assert top(10, SCOPE.value(names.BROKERS)).text.startswith("topk(10, ")
