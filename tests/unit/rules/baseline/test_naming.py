"""Names of series: both notations, and what names none."""

from __future__ import annotations

import pytest

from rules.baseline.naming import LABELS, SeriesNameError, Unnamed, name_of, parse_name
from rules.baseline.series import Metric, Series

ODD = Series(
    cluster="c", metric=Metric.CONSUME_RATE, topic="a.b-c_1", partition=0, group='g/1 "x"\\\n,}'
)


def test_a_name_is_read_back_whatever_the_group_is_called() -> None:
    assert parse_name(name_of(ODD), "c") == ODD


def test_every_metric_has_its_labels() -> None:
    assert set(LABELS) == set(Metric)


@pytest.mark.parametrize(
    "text",
    [
        "read_committed_lag/orders/3/bill/ing",
        ' read_committed_lag { topic = "orders" , partition="3", group="bill/ing", } ',
    ],
)
def test_both_notations_name_the_same_series(text: str) -> None:
    found = parse_name(text, "c")
    assert (found.topic, found.partition, found.group) == ("orders", 3, "bill/ing")


def test_a_series_of_the_cluster_has_no_labels() -> None:
    assert parse_name("abort_ratio", "c") == Series(cluster="c", metric=Metric.ABORT_RATIO)


@pytest.mark.parametrize(
    "text",
    [
        "client_record_retry_rate/orders/orders/1:blue",
        'client_record_retry_rate{client_id="orders/1:blue",topic="orders"}',
    ],
)
def test_a_client_is_named_in_both_notations(text: str) -> None:
    found = parse_name(text, "c")
    assert (found.topic, found.partition, found.client_id) == ("orders", None, "orders/1:blue")
    assert parse_name(name_of(found), "c") == found


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", Unnamed.SYNTAX),
        ('read_committed_lag{topic="a"', Unnamed.SYNTAX),
        ('produce_rate{topic="a" partition="1"}', Unnamed.SYNTAX),
        ('produce_rate{topic="a",topic="b"}', Unnamed.SYNTAX),
        ("consumer_lag/a/0/g", Unnamed.METRIC),
        ("produce_rate/a/0/g", Unnamed.LABELS),
        ("produce_rate/a", Unnamed.LABELS),
        ("produce_rate/a/-1", Unnamed.LABELS),
        ("produce_rate/a/2147483648", Unnamed.LABELS),
        ("produce_rate/a b/1", Unnamed.LABELS),
        ("read_committed_lag/a/0/", Unnamed.LABELS),
        ("client_record_error_rate/a/", Unnamed.LABELS),
        ("client_record_error_rate/a", Unnamed.LABELS),
    ],
)
def test_what_names_no_series_is_rejected_with_the_reason(text: str, reason: Unnamed) -> None:
    with pytest.raises(SeriesNameError) as error:
        parse_name(text, "c")
    assert error.value.reason is reason
