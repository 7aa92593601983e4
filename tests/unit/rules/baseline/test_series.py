"""Ids of series are stored for years: none may ever change."""

from __future__ import annotations

import json

import pytest

from rules.baseline.series import Metric, Series, series_ids, text_head, text_tail

GOLDEN = (
    pytest.param(
        Series(
            cluster="prod",
            metric=Metric.READ_COMMITTED_LAG,
            topic="orders",
            partition=0,
            group="billing",
        ),
        3112989303313550533,
        id="of a commit",
    ),
    pytest.param(
        Series(
            cluster="prod",
            metric=Metric.READ_UNCOMMITTED_LAG_SECONDS,
            topic="orders",
            partition=2**31 - 1,
            group="",
        ),
        5474053811111840016,
        id="of a group whose name is empty, which is not none",
    ),
    pytest.param(
        Series(cluster="prod", metric=Metric.PRODUCE_RATE, topic="orders", partition=11),
        7813082094540600354,
        id="of a partition",
    ),
    pytest.param(
        Series(cluster="prod", metric=Metric.RECORD_ERROR_RATE, topic="orders"),
        7070024742940083700,
        id="of a topic",
    ),
    pytest.param(
        Series(cluster="prod", metric=Metric.ABORT_RATIO),
        4347023126393893668,
        id="of a cluster",
    ),
    pytest.param(
        Series(
            cluster="prod",
            metric=Metric.CONSUME_RATE,
            topic="a.b_c-d",
            partition=7,
            group='Kasse "Süd" \\ 漢字 \U0001f600 \x7f\n/',
        ),
        4296671032969839916,
        id="of a group with what JSON writes otherwise",
    ),
    pytest.param(
        Series(cluster='größe "1"', metric=Metric.OPEN_SPAN, topic="t", partition=1),
        4046752069485258290,
        id="of a cluster with what JSON writes otherwise",
    ),
)


@pytest.mark.parametrize(("series", "series_id"), GOLDEN)
def test_an_id_is_what_it_was(series: Series, series_id: int) -> None:
    assert series.series_id == series_id


@pytest.mark.parametrize(("series", "series_id"), GOLDEN)
def test_a_text_tells_the_labels(series: Series, series_id: int) -> None:
    labels = [series.cluster, series.metric.value, series.topic, series.partition, series.group]
    assert json.loads(series.text) == labels
    head = text_head(series.cluster, series.metric)
    tail = text_tail(series.topic, series.partition, series.group)
    assert series_ids([b"other", head + tail]).tolist()[1:] == [series_id]


def test_no_series_have_no_ids() -> None:
    assert series_ids([]).tolist() == []
