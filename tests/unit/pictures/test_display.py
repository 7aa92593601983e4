"""What is not known has a text and a color of its own; the rest has the color of the step that it reaches."""

from __future__ import annotations

import math
from typing import Any, Final

import pytest

from tests.pictures.answers import Cell
from tests.pictures.colors import darker, hex_of
from tests.pictures.display import Shown, show
from tests.unit.dashboards.given_dashboards import every_panel

STEPS: Final = [
    {"value": None, "color": "green"},
    {"value": 1, "color": "orange"},
    {"value": 10, "color": "red"},
]
UNKNOWN: Final = {
    "type": "special",
    "options": {"match": "null+nan", "result": {"text": "unknown", "color": "#6e7687"}},
}
OPTIONS: Final[dict[str, Any]] = {
    "unit": "short",
    "thresholds": {"mode": "absolute", "steps": STEPS},
    "mappings": [
        {"type": "value", "options": {"5": {"text": "five", "color": "text"}}},
        UNKNOWN,
    ],
}


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (0.0, Shown("0", "green")),
        (0.99, Shown("0.99", "green")),
        (1.0, Shown("1", "orange")),
        (10.0, Shown("10", "red")),
        (-4.0, Shown("-4", "green")),
        (5.0, Shown("five", "text")),
        (None, Shown("unknown", "#6e7687")),
        (math.nan, Shown("unknown", "#6e7687")),
    ],
)
def test_a_value_is_mapped_or_has_the_color_of_its_step(value: Cell, shown: Shown) -> None:
    assert show(value, OPTIONS, 0) == shown


def test_without_steps_grafana_has_its_own() -> None:
    assert show(79.0, {"unit": "short"}, 0).color == "green"
    assert show(80.0, {"unit": "short"}, 0).color == "red"


def test_without_a_mapping_nothing_has_the_color_of_the_first_step() -> None:
    assert show(None, {"noValue": "unknown"}, 0) == Shown("unknown", "green")


def test_texts_and_times_are_shown_as_they_are() -> None:
    assert show("orders", {"unit": "short"}, 0).text == "orders"
    assert show(True, {"unit": "bool_yes_no"}, 0).text == "Yes"
    assert show(False, {"unit": "short"}, 0).text == "false"
    assert show(0.0, {"unit": "short"}, 0, is_time=True).text == "00:00:00"
    assert (
        show(True, {"mappings": [{"type": "value", "options": {"true": {"text": "on"}}}]}, 0).text
        == "on"
    )


def test_every_color_of_the_dashboards_has_a_place_on_the_screen() -> None:
    for shown in every_panel():
        for step in shown.panel["fieldConfig"]["defaults"].get("thresholds", {}).get("steps", ()):
            assert hex_of(step["color"]).startswith("#"), shown.name


def test_a_darker_color_has_a_share_of_each_part() -> None:
    assert darker("#8040ff", 0.5) == "#402080"
