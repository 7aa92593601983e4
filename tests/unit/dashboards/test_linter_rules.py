"""The rules of grafana/dashboard-linter hold, but for exceptions that have a reason; and the same for SQL.

Source: the pages in docs/rules of grafana/dashboard-linter; the rules are written anew here.
"""

from __future__ import annotations

import re
from typing import Any, Final

import pytest
from grafana_foundation_sdk.models import units

from dashboards.postgres import SCHEMA
from dashboards.postgres import TYPE as POSTGRES
from tests.unit.dashboards.given_dashboards import (
    DASHBOARDS,
    every_expression,
    every_panel,
    every_sql,
    every_target,
    variables_of,
)

# Rule -> why it does not hold here.
EXCEPTIONS: Final = {
    "template-job-rule": "a cluster is chosen by `cluster`, whichever job scrapes it",
    "template-instance-rule": "likewise; instances change with every deployment",
    "target-job-rule": "likewise; only metrics of the process, which every exporter has, match a job",
    "target-instance-rule": "likewise",
    "template-datasource-rule": "the variable of PostgreSQL is postgres_datasource: the type's name "
    "would make it grafana-postgresql-datasource_datasource",
}
UNITS: Final = {
    value
    for name, value in vars(units).items()
    if not name.startswith("_") and isinstance(value, str)
}
VARIABLE: Final = re.compile(r"\$\{?(\w+)")
BUILT_IN: Final = {"__rate_interval", "__range", "__timeFilter", "__timeFrom", "__timeTo", "q"}


def test_exceptions_have_reasons() -> None:
    assert all(EXCEPTIONS.values())


def test_the_data_sources_are_variables_named_after_what_they_are() -> None:
    for dashboard in DASHBOARDS:
        variables = variables_of(dashboard.document)
        assert variables["prometheus_datasource"]["query"] == "prometheus"
        assert variables["prometheus_datasource"]["label"] == "Prometheus data source"
        assert variables["postgres_datasource"]["query"] == POSTGRES


def test_lists_are_read_again_when_the_time_range_changes_and_come_from_the_chosen_source() -> None:
    for dashboard in DASHBOARDS:
        for variable in variables_of(dashboard.document).values():
            if variable["type"] == "query":
                assert variable["refresh"] == 2
                assert variable["datasource"]["uid"] == "${prometheus_datasource}"
                if variable["multi"]:
                    assert variable["allValue"] == ".+"


def test_a_variable_is_matched_as_a_set_or_as_one_value() -> None:
    for dashboard in DASHBOARDS:
        for name, variable in variables_of(dashboard.document).items():
            operators = set(re.findall(rf'(=~|!=|=)\\"\${name}\\"', dashboard.text))
            if variable["type"] == "query":
                assert operators <= {"=~" if variable["multi"] else "="}, dashboard.uid


def test_a_dashboard_is_not_editable() -> None:
    assert not any(dashboard.document["editable"] for dashboard in DASHBOARDS)


def test_a_panel_has_a_title_a_description_and_a_query() -> None:
    for shown in every_panel():
        assert shown.panel["title"], shown.name
        assert len(shown.panel["description"]) > 20, shown.name
        assert shown.panel["description"].endswith("."), shown.name
        assert shown.panel["targets"], shown.name


def test_a_panel_has_a_unit_that_grafana_has() -> None:
    for shown in every_panel():
        assert shown.panel["fieldConfig"]["defaults"]["unit"] in UNITS, shown.name


def test_a_column_s_unit_is_one_that_grafana_has() -> None:
    for shown in every_panel():
        for override in shown.panel["fieldConfig"]["overrides"]:
            for item in override["properties"]:
                assert item["id"] != "unit" or item["value"] in UNITS, shown.name


def test_every_query_uses_the_data_source_of_a_variable() -> None:
    for shown, target in every_target():
        expected = "${postgres_datasource}" if "rawSql" in target else "${prometheus_datasource}"
        assert target["datasource"]["uid"] == expected, shown.name
        mixed = {"uid": "-- Mixed --"}
        assert shown.panel["datasource"] in (target["datasource"], mixed), shown.name


def test_thresholds_rise_from_the_first_color_on() -> None:
    for shown in every_panel():
        steps = shown.panel["fieldConfig"]["defaults"].get("thresholds", {}).get("steps", [])
        if steps:
            values = [step["value"] for step in steps]
            assert values[0] is None, shown.name
            assert values[1:] == sorted(values[1:]), shown.name


def test_counters_are_only_rated_and_rates_take_grafana_s_interval() -> None:
    for name, expression in every_expression():
        for function, range_ in re.findall(
            r"(\w+)\([^()]*?_total\{[^}]*\}(?:\[([^\]]+)\])?", expression
        ):
            assert function in {"rate", "increase"}, name
            assert range_, name
        for function, range_ in re.findall(r"(rate|deriv)\([^\[]*\[([^\]]+)\]", expression):
            assert range_ == "$__rate_interval", f"{name}: {function}"


def test_a_variable_of_a_query_is_a_variable_of_its_dashboard() -> None:
    for shown, target in every_target():
        (document,) = [given.document for given in DASHBOARDS if given.uid == shown.uid]
        used = set(VARIABLE.findall(target.get("expr", "") + target.get("rawSql", "")))
        assert used - BUILT_IN <= variables_of(document).keys(), shown.name


def test_a_variable_of_a_dashboard_is_used_by_a_query() -> None:
    carried = {"rule_pages"}  # from one dashboard to the next by the menu
    for dashboard in DASHBOARDS:
        text = dashboard.text
        for name in variables_of(dashboard.document).keys() - carried:
            assert re.search(rf"\${name}\b|\${{{name}[:}}]", text), f"{dashboard.uid}: {name}"


def test_no_panel_draws_every_partition_group_or_client() -> None:
    many = {"partition", "topic", "group", "client", "endpoint", "source", "api", "replica"}
    for name, expression in every_expression():
        outer = re.match(r"(?:\()?(\w+)(?: by \(([^)]*)\))?", expression)
        assert outer, name
        labels = set((outer[2] or "").split(", "))
        if labels & many:
            assert "topk(" in expression or "changes(" in expression, name


@pytest.mark.parametrize(("name", "sql"), list(every_sql()))
def test_sql_reads_only_our_views_and_an_end_is_set(name: str, sql: str) -> None:
    sources = re.sub(r"extract\(\w+ FROM|JOIN LATERAL \(|JOIN generate_series", "", sql)
    read = re.findall(r"\b(?:FROM|JOIN) ([\w.]+)", sources)
    assert read, name
    assert all(table.startswith(f"{SCHEMA}.") for table in read), read
    assert re.search(r"LIMIT \d+$", sql), name


def links_of(value: Any) -> list[str]:
    """Return the URLs of all links anywhere in a document."""
    if isinstance(value, dict):
        own = [value["url"]] if isinstance(value.get("url"), str) else []
        return own + [url for item in value.values() for url in links_of(item)]
    return [url for item in value for url in links_of(item)] if isinstance(value, list) else []


def test_links_lead_to_dashboards_and_variables_that_there_are() -> None:
    documents = {given.uid: given.document for given in DASHBOARDS}
    linked = set()
    for document in documents.values():
        for url in links_of(document):
            if url.startswith("${rule_pages:raw}/"):
                continue
            match = re.fullmatch(r"/d/([\w-]+)\?(.*)", url)
            assert match, url
            assert "${__url_time_range}" in match[2]
            variables = variables_of(documents[match[1]])
            assert set(re.findall(r"var-(\w+)=", match[2])) <= variables.keys(), url
            assert set(re.findall(r"\$\{(\w+):queryparam\}", match[2])) <= variables.keys(), url
            linked.add(match[1])
    assert linked | {"tidemark-fleet"} == set(documents), "each is reached from another one"
