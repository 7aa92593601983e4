"""Time ranges are asked for as Grafana asks for them, and values of PostgreSQL arrive as it gets them."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal

import pytest

from tests.pictures.answers import Cell
from tests.pictures.recording import Window, cell_of
from tests.unit.dashboards.given_dashboards import with_sql_values, with_values


def test_a_short_time_has_a_point_per_scrape_and_rates_over_four() -> None:
    window = Window(start=1000.0, end=1300.5)
    assert window.step == 2
    assert window.ranges == {"$__rate_interval": "8s", "$__range": "301s"}


def test_a_long_time_has_as_many_points_as_a_graph_has_pixels() -> None:
    window = Window(start=0.0, end=21_600.0)
    assert window.step == 31
    assert window.ranges["$__rate_interval"] == "33s"


def test_all_or_one_value_is_chosen() -> None:
    ranges = {"$__rate_interval": "8s", "$__range": "5m"}
    many = 'rate(a{cluster=~"$cluster", x="y"}[$__rate_interval])'
    assert with_values(many, {}, ranges) == 'rate(a{cluster=~".+", x="y"}[8s])'
    assert with_values('a{topic="$topic"}[$__range]', {"topic": "b"}, ranges) == 'a{topic="b"}[5m]'
    start, end = datetime(2026, 1, 2, tzinfo=UTC), datetime(2026, 1, 3, tzinfo=UTC)
    sql = with_sql_values("$__timeFilter(at) AND ${x:regex} ${y:regex}", start, end, {"x": "b"})
    assert sql == "at BETWEEN '2026-01-02T00:00:00Z' AND '2026-01-03T00:00:00Z' AND b .+"


@pytest.mark.parametrize(
    ("value", "cell"),
    [
        (datetime(1970, 1, 1, 0, 0, 2, tzinfo=UTC), 2000.0),
        (Decimal("0.5"), 0.5),
        (None, None),
        (True, True),
        ("a\nb", "a\nb"),
        ({"a": 1}, "{'a': 1}"),
    ],
)
def test_a_value_of_postgresql_is_a_cell(value: object, cell: Cell) -> None:
    assert cell_of(value) == cell
