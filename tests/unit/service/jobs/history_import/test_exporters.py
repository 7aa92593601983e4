"""Which series of an exporter become which of history, and by which query."""

from __future__ import annotations

import pytest

from rules.baseline.series import Metric
from service.cli.history.command import EXPORTERS as CHOICES
from service.jobs.history_import.exporters import EXPORTERS, custom_query, queries_of

LAG, SECONDS = Metric.READ_UNCOMMITTED_LAG, Metric.READ_UNCOMMITTED_LAG_SECONDS
CONSUMED, PRODUCED = Metric.CONSUME_RATE, Metric.PRODUCE_RATE


@pytest.mark.parametrize(
    ("exporter", "expected"),
    [
        (
            "kafka_exporter",
            {
                "kafka_consumergroup_lag": LAG,
                "kafka_consumergroup_current_offset": CONSUMED,
                "kafka_topic_partition_current_offset": PRODUCED,
            },
        ),
        (
            "kminion",
            {
                "kminion_kafka_consumer_group_topic_partition_lag": LAG,
                "kminion_kafka_topic_partition_high_water_mark": PRODUCED,
            },
        ),
        (
            "kafka_lag_exporter",
            {
                "kafka_consumergroup_group_lag": LAG,
                "kafka_consumergroup_group_lag_seconds": SECONDS,
                "kafka_consumergroup_group_offset": CONSUMED,
                "kafka_partition_latest_offset": PRODUCED,
            },
        ),
        (
            "burrow",
            {
                "burrow_kafka_consumer_partition_lag": LAG,
                "burrow_kafka_consumer_current_offset": CONSUMED,
                "burrow_kafka_topic_partition_offset": PRODUCED,
            },
        ),
    ],
)
def test_series_of_an_exporter_are_those_of_history(
    exporter: str, expected: dict[str, Metric]
) -> None:
    sources = EXPORTERS[exporter]
    assert {source.name: source.metric for source in sources} == expected
    assert all(source.is_offset is (source.metric in {CONSUMED, PRODUCED}) for source in sources)


def test_the_command_offers_all_of_them() -> None:
    assert set(CHOICES) == set(EXPORTERS)


def test_a_query_takes_the_greatest_of_what_the_matchers_select() -> None:
    query = next(iter(queries_of("kafka_lag_exporter", ['job="a"', 'env!="dev"'])))
    assert query.text == (
        "max by (topic, partition, cluster_name) "
        '(kafka_partition_latest_offset{job="a",env!="dev"})'
    )
    assert query.labels == {"topic": "topic", "partition": "partition"}


def test_a_query_of_ones_own_names_its_metric() -> None:
    query = custom_query("abort_ratio=sum(a) / sum(b == 1)")
    assert (query.metric, query.text) == (Metric.ABORT_RATIO, "sum(a) / sum(b == 1)")
    with pytest.raises(ValueError, match="METRIC of history"):
        custom_query("lag=up")
