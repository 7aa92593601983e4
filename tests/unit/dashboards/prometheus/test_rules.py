"""The rules for Prometheus use what there is, say what a reader needs, and are proven one by one.

Whether they fire when they must is for promtool: tests/integration/test_stack_files.py.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import pytest

from dashboards.prometheus.alerting import alert_name
from dashboards.prometheus.expressions import TARGET_LABELS, select
from dashboards.prometheus.files import DOCS_URL, FILES
from dashboards.prometheus.rule import AlertingRule
from dashboards.prometheus.watching import WATCHING
from rules import names
from rules.catalogue.all_rules import EVERY
from rules.names import METRICS
from rules.verdict import RuleMeta, Severity
from tests.unit.dashboards.prometheus.alerting_cases import ALERTING_CASES
from tests.unit.dashboards.prometheus.cases import ALERTS, RECORDS, AlertCase
from tests.unit.dashboards.prometheus.recording_cases import MEASURED
from tests.unit.dashboards.prometheus.watching_cases import WATCHING_CASES

DOCS: Final = Path(__file__).parents[4] / "docs"
EXPRESSIONS: Final = {
    **{name: rule.expr for name, rule in ALERTS.items()},
    **{name: rule.expr for name, rule in RECORDS.items()},
}
LABELS: Final = {
    **{series: {*metric.labels, *TARGET_LABELS} for metric in METRICS for series in metric.series},
    "up": set(TARGET_LABELS),  # Prometheus' own
}
RECORDED: Final = re.compile(r"\w+:\w+:\w+")
METRIC: Final = re.compile(r"\b(tidemark_\w+|up)\b(?:\{([^}]*)\})?")
DROPPED: Final = re.compile(r"\b(?:without|by|on|ignoring)\s*\(([^)]*)\)")
JUDGING: Final = [rule.meta for rule in EVERY if rule.meta.severity is not Severity.INFO]
each_expression = pytest.mark.parametrize("name", EXPRESSIONS)
each_alert = pytest.mark.parametrize("rule", ALERTS.values(), ids=ALERTS)


@each_expression
def test_an_expression_uses_metrics_and_labels_that_exist(name: str) -> None:
    expr = EXPRESSIONS[name]
    of_metrics = RECORDED.sub("", expr)
    used = METRIC.findall(of_metrics)
    assert used or RECORDED.search(expr)
    for metric, matchers in used:
        labels = re.findall(r"(\w+)\s*(?:=~|!~|!=|=)", matchers)
        assert set(labels) <= LABELS[metric], metric


@each_expression
def test_an_expression_drops_and_joins_labels_that_exist(name: str) -> None:
    every = {label for labels in LABELS.values() for label in labels}
    for labels in DROPPED.findall(EXPRESSIONS[name]):
        assert {label.strip() for label in labels.split(",")} <= every


@each_expression
def test_an_expression_reads_series_that_are_recorded_before_it(name: str) -> None:
    before = list(RECORDS)[: list(RECORDS).index(name)] if name in RECORDS else []
    assert set(RECORDED.findall(EXPRESSIONS[name])) <= set(before)


def test_a_label_that_a_metric_does_not_have_cannot_be_selected() -> None:
    with pytest.raises(ValueError, match="no label for the matcher topic"):
        select(names.OPEN_FINDINGS, 'topic="orders"')


def test_a_recorded_series_is_named_by_level_metric_and_operations() -> None:
    for record in RECORDS:
        level, metric, operations = record.split(":")
        assert set(level.split("_")) <= {"cluster", "group", "topic", "cause", "severity"}
        assert metric.startswith("tidemark_")
        assert not metric.endswith("_total")
        assert re.fullmatch(r"sum|max|deriv2m|rate5m|ratio_rate5m", operations)


@each_alert
def test_an_alert_says_how_severe_it_is_and_what_to_do(rule: AlertingRule) -> None:
    annotations = rule.annotations(DOCS_URL)
    assert all(annotations.values())
    assert set(annotations) == {"summary", "description", "runbook_url"}
    assert rule.severity in set(Severity) or (
        rule.severity == "{{ $labels.severity }}" and "severity" in rule.expr
    )


@each_alert
def test_the_page_of_an_alert_exists(rule: AlertingRule) -> None:
    url = rule.annotations(DOCS_URL)["runbook_url"]
    page, _, anchor = url.removeprefix(f"{DOCS_URL}/").partition("#")
    headings = re.findall(r"^#+ (.*)$", (DOCS / page).read_text(encoding="utf-8"), re.MULTILINE)
    assert not anchor or anchor in {heading.lower() for heading in headings}


@pytest.mark.parametrize("meta", JUDGING, ids=lambda meta: meta.rule_id)
def test_a_rule_alerts_once_as_late_and_as_severely_as_it_says(meta: RuleMeta) -> None:
    (rule,) = [rule for rule in ALERTS.values() if rule.labels.get("rule") == meta.rule_id]
    assert rule.alert == alert_name(meta.rule_id)
    assert rule.for_ == meta.for_
    assert rule.severity in {meta.severity, "{{ $labels.severity }}"}


def test_what_is_only_information_alerts_nobody() -> None:
    alerting = {rule.labels["rule"] for rule in ALERTS.values() if "rule" in rule.labels}
    assert alerting == {meta.rule_id for meta in JUDGING}


def test_alerts_on_tidemark_itself_are_none_that_tidemark_delivers() -> None:
    ids = "|".join(rule.meta.rule_id for rule in EVERY)
    for rule in WATCHING.rules:
        assert not re.search(rf'rule="({ids})"', rule.expr)


def test_no_alert_and_no_recorded_series_is_declared_twice() -> None:
    rules = [rule for file in FILES for rule in file.rules]
    assert len(rules) == len(ALERTS) + len(RECORDS)


def test_every_alert_is_proven_to_fire_and_to_stay_silent() -> None:
    cases = [case for case in (*ALERTING_CASES, *WATCHING_CASES) if isinstance(case, AlertCase)]
    assert {case.alert for case in cases if case.fires} == set(ALERTS)
    assert {case.alert for case in cases if case.silent} == set(ALERTS)


def test_every_recorded_series_is_proven_to_have_a_value() -> None:
    assert {
        record for case in MEASURED for record, samples in case.samples.items() if samples
    } == set(RECORDS)
