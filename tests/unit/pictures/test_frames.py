"""Series are named by their legend, reduced to their last value, and merged into rows by their labels."""

from __future__ import annotations

import math
from typing import Any

from tests.pictures.answers import Answer, Rows, Series
from tests.pictures.frames import columns_of, last_of, legend, lines_of, values_of


def panel(*targets: dict[str, str], **more: Any) -> dict[str, Any]:
    return {
        "targets": list(targets),
        "fieldConfig": {"defaults": {"unit": "short"}, "overrides": more.pop("overrides", [])},
        "options": {"sortBy": more.pop("sort_by", [])},
        "transformations": [
            {"id": "merge", "options": {}},
            {"id": "organize", "options": {"indexByName": more.pop("order", {})}},
        ],
    }


def instant(value: float, **labels: str) -> Series:
    return Series(labels=labels, points=((0.0, value),))


def named(name: str, *properties: tuple[str, Any]) -> dict[str, Any]:
    return {
        "matcher": {"id": "byName", "options": name},
        "properties": [{"id": key, "value": value} for key, value in properties],
    }


def test_a_legend_is_filled_in_with_labels() -> None:
    assert legend("{{cluster}} {{ topic }}", {"cluster": "a", "topic": "b"}) == "a b"
    assert legend("{{gone}}", {}) == "{{gone}}"
    assert legend("interval", {}) == "interval"
    assert legend("", {"b": "2", "a": "1"}) == '{a="1", b="2"}'


def test_columns_of_sql_are_series_and_what_is_null_is_no_point() -> None:
    rows = Rows(
        columns=("time", "most", "empty"),
        times=("time",),
        rows=((1000.0, 4.0, None), (2000.0, None, None)),
    )
    (line,) = lines_of(panel({"refId": "A"}), {"A": Answer(rows=rows)})
    assert (line.name, line.points) == ("most", ((1.0, 4.0),))


def test_options_of_a_name_win() -> None:
    shown = panel({"refId": "A", "legendFormat": "most"}, overrides=[named("most", ("unit", "s"))])
    (line,) = lines_of(shown, {"A": Answer(series=(instant(1),))})
    assert line.options["unit"] == "s"


def test_the_last_value_is_the_last_number() -> None:
    assert last_of(((1, 3.0), (2, 4.0), (3, math.nan))) == 4.0
    assert last_of(((1, math.nan),)) is None
    assert last_of(()) is None


def test_a_stat_has_a_value_per_series_and_none_without_an_answer() -> None:
    shown = panel({"refId": "A", "legendFormat": "{{cluster}}"})
    two = Answer(series=(instant(3, cluster="a"), instant(2, cluster="b")))
    assert values_of(shown, {"A": two}) == [("a", 3.0), ("b", 2.0)]
    assert values_of(shown, {"A": Answer()}) == []
    null = Rows(columns=("day",), times=(), rows=((None,),))
    assert values_of(shown, {"A": Answer(rows=null)}) == [("day", None)]


def test_series_with_the_same_labels_are_a_row_and_the_largest_is_first() -> None:
    shown = panel(
        {"refId": "A"},
        {"refId": "B"},
        order={"cluster": 0, "Value #A": 1, "Value #B": 2},
        overrides=[named("Value #A", ("displayName", "Lag"))],
        sort_by=[{"displayName": "Lag", "desc": True}],
    )
    answers = {
        "A": Answer(series=(instant(1, cluster="a"), instant(5, cluster="b"))),
        "B": Answer(series=(instant(7, cluster="a"), instant(9, cluster="c"))),
    }
    columns = columns_of(shown, answers)
    assert [column.title for column in columns] == ["cluster", "Lag", "Value #B"]
    assert [column.cells for column in columns] == [
        ("b", "a", "c"),
        (5.0, 1.0, None),
        (None, 7.0, 9.0),
    ]


def test_the_value_of_a_single_query_has_no_letter() -> None:
    (group, value) = columns_of(
        panel({"refId": "A"}, order={"group": 0, "Value": 1}),
        {"A": Answer(series=(instant(1, group="g"),))},
    )
    assert (group.title, value.title, value.cells) == ("group", "Value", (1.0,))


def test_rows_of_sql_keep_their_order() -> None:
    rows = Rows(columns=("rule", "at"), times=("at",), rows=(("b", 2.0), ("a", 1.0)))
    (rule, at) = columns_of(panel({"refId": "A"}), {"A": Answer(rows=rows)})
    assert rule.cells == ("b", "a")
    assert at.is_time
    assert not rule.is_time
