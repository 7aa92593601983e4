"""The committed dashboards are what the code makes, and Grafana's own model reads them back."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any, Final

import pytest
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.cog.plugins import register_default_plugins
from grafana_foundation_sdk.models.dashboard import Dashboard

from dashboards import postgres
from dashboards.build import BOARDS, build_files
from dashboards.files import FOLDER, RECORDED_FOLDER, TITLE, DashboardFile, read_files
from dashboards.links import Uid
from dashboards.panels import Color
from tests.unit.dashboards.given_dashboards import DASHBOARDS, every_panel, variables_of

each = pytest.mark.parametrize("dashboard", DASHBOARDS, ids=lambda given: given.uid)
GRID: Final = 24  # columns of Grafana's page


def test_the_committed_files_are_what_the_code_makes() -> None:
    paths = [*FOLDER.glob("*.json"), *RECORDED_FOLDER.glob("*.json")]
    files = {path: path.read_text(encoding="utf-8") for path in paths}
    assert files == build_files(), "run `make golden`"


def test_every_uid_is_a_dashboard_and_is_stable() -> None:
    assert sorted(board.uid for board in BOARDS) == sorted(Uid)
    assert sorted(Uid) == [
        "tidemark-alerts",
        "tidemark-fleet",
        "tidemark-groups",
        "tidemark-itself",
        "tidemark-losses",
        "tidemark-pipeline",
        "tidemark-replication",
        "tidemark-transactions",
        "tidemark-usual",
    ]


@each
def test_the_model_of_grafana_reads_a_dashboard_and_writes_the_same(
    dashboard: DashboardFile,
) -> None:
    register_default_plugins()
    postgres.register()
    document = dashboard.document
    encoded = JSONEncoder(sort_keys=True).encode(Dashboard.from_json(dict(document)))
    assert json.loads(encoded) == document


@each
def test_a_dashboard_s_panels_have_numbers_of_their_own_and_do_not_overlap(
    dashboard: DashboardFile,
) -> None:
    panels = dashboard.document["panels"]
    ids = Counter(panel["id"] for panel in panels)
    assert not [number for number, times in ids.items() if times > 1]
    cells: set[tuple[int, int]] = set()
    for panel in panels:
        place = panel["gridPos"]
        assert place["x"] + place["w"] <= GRID
        own = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert not own & cells, panel["title"]
        cells |= own


@each
def test_a_dashboard_says_its_question_and_has_what_all_of_ours_have(
    dashboard: DashboardFile,
) -> None:
    document = dashboard.document
    assert document["description"].endswith("?")
    assert document["timezone"] == "utc"
    assert document["graphTooltip"] == 1, "a shared crosshair"
    assert document["editable"] is False
    assert document["tags"] == ["tidemark"]
    assert document["links"][0]["tags"] == ["tidemark"], "the menu of all dashboards"
    assert {"prometheus_datasource", "postgres_datasource"} <= variables_of(document).keys()


@each
def test_a_dashboard_goes_from_numbers_to_courses_to_tables(dashboard: DashboardFile) -> None:
    order = {"stat": 0, "timeseries": 1, "heatmap": 1, "state-timeline": 1, "table": 2}
    kinds = [
        order[panel["type"]] for panel in dashboard.document["panels"] if panel["type"] != "row"
    ]
    assert kinds == sorted(kinds)
    assert {0, 1, 2} == set(kinds)


def test_a_number_that_is_not_known_is_neither_green_nor_red() -> None:
    for shown in every_panel():
        if shown.panel["type"] == "stat":
            *_, last = shown.panel["fieldConfig"]["defaults"]["mappings"]
            assert last["type"] == "special", shown.name
            assert last["options"] == {
                "match": "null+nan",
                "result": {"text": "unknown", "color": Color.UNKNOWN},
            }


def test_only_what_has_thresholds_is_colored_by_them() -> None:
    """Where a panel has none Grafana takes its own, which are red from 80 on."""
    for shown in every_panel():
        if shown.panel["type"] == "stat":
            has_own = "thresholds" in shown.panel["fieldConfig"]["defaults"]
            mode = "background" if has_own else "none"
            assert shown.panel["options"]["colorMode"] == mode, shown.name
        if shown.panel["type"] == "state-timeline":
            defaults = shown.panel["fieldConfig"]["defaults"]
            assert defaults["color"] == {"mode": "thresholds"}, shown.name
            assert defaults["thresholds"]["steps"], shown.name


@each
def test_annotations_show_alerts(dashboard: DashboardFile) -> None:
    names = [annotation["name"] for annotation in dashboard.document["annotations"]["list"]]
    assert "Alert" in names


def test_a_table_names_every_column_of_its_query_once() -> None:
    for shown in every_panel():
        if shown.panel["type"] == "table":
            names = [override["matcher"]["options"] for override in overrides(shown.panel)]
            assert names, shown.name
            assert len(names) == len(set(names)), shown.name


def overrides(panel: Any) -> list[Any]:
    properties: list[Any] = panel["fieldConfig"]["overrides"]
    return properties


def test_files_are_read_with_the_values_that_are_given() -> None:
    values = {"prometheus_datasource": "P1", "rule_pages": "https://wiki.example/rules"}
    (fleet,) = [file for file in read_files(values) if file.uid == Uid.FLEET]
    variables = variables_of(fleet.document)
    assert variables["prometheus_datasource"]["current"]["value"] == "P1"
    assert "current" not in variables["postgres_datasource"], "Grafana takes its default"
    assert variables["rule_pages"]["query"] == "https://wiki.example/rules"
    assert fleet.title == "Fleet overview"
    assert json.loads(fleet.text) == fleet.document


def test_without_values_a_file_s_text_is_the_file() -> None:
    for file in DASHBOARDS:
        assert file.text == (FOLDER / file.name).read_text(encoding="utf-8")


def test_the_folder_has_the_name_that_the_stack_gives_it() -> None:
    assert TITLE == "Kafka exactly-once"
