"""Every metric, label and rule that a dashboard names exists: read from the JSON, as Grafana reads it."""

from __future__ import annotations

import re
from typing import Final

from dashboards.annotations import LOSS_RULES, SEQUENCE_RULES
from dashboards.boards.transactions import TRANSACTION_RULES
from dashboards.promql import TARGET_LABELS
from rules import names
from rules.baseline.series import Metric as HistoryMetric
from rules.catalogue.all_rules import EVERY
from rules.loss.summary import Outcome
from rules.names import METRICS, Metric
from tests.unit.dashboards.given_dashboards import (
    DASHBOARDS,
    every_expression,
    every_sql,
    variables_of,
)

BY_SERIES: Final = {series: metric for metric in METRICS for series in metric.series}
SELECTOR: Final = re.compile(r"(\w+)\{([^}]*)\}")
MATCHER: Final = re.compile(r'(\w+)(?:=~|!~|!=|=)"')
GROUPING: Final = re.compile(r"by \(([^)]*)\)")


def labels_of(metric: Metric, series: str) -> set[str]:
    own = {*metric.labels, *TARGET_LABELS}
    return own | {"le"} if series.endswith("_bucket") else own


def test_every_metric_and_every_label_of_a_matcher_exists() -> None:
    used = set()
    for name, expression in every_expression():
        for series, matchers in SELECTOR.findall(expression):
            assert series in BY_SERIES, f"{name}: {series}"
            labels = set(MATCHER.findall(matchers))
            assert labels <= labels_of(BY_SERIES[series], series), name
            used.add(series)
    assert len(used) > 60


def test_every_label_of_a_grouping_is_one_of_a_metric_of_its_expression() -> None:
    for name, expression in every_expression():
        labels_there = set().union(
            *(labels_of(BY_SERIES[series], series) for series, _ in SELECTOR.findall(expression))
        )
        for labels in GROUPING.findall(expression):
            assert set(labels.split(", ")) <= labels_there, name


def test_lists_of_values_come_from_metrics_with_that_label() -> None:
    for dashboard in DASHBOARDS:
        for variable in variables_of(dashboard.document).values():
            if variable["type"] == "query":
                query = variable["query"]["query"]
                match = re.fullmatch(r"label_values\((\w+)(?:\{(.*)\})?, (\w+)\)", query)
                assert match, query
                needed = {match[3], *MATCHER.findall(match[2] or "")}
                assert needed <= labels_of(BY_SERIES[match[1]], match[1]), query


def test_every_rule_that_is_named_exists() -> None:
    rule_ids = {rule.meta.rule_id for rule in EVERY}
    named = {*LOSS_RULES, *SEQUENCE_RULES, *TRANSACTION_RULES}
    for _, expression in every_expression():
        for values in re.findall(r'rule=~?"([^"$]+)"', expression):
            named |= set(values.split("|"))
    assert named <= rule_ids


def test_every_outcome_of_a_loss_that_is_named_exists() -> None:
    named = {
        outcome
        for _, expression in every_expression()
        for values in re.findall(
            rf'{names.LOSS_PARTITIONS.name}{{[^}}]*outcome=~"([^"]+)"', expression
        )
        for outcome in values.split("|")
    }
    assert named
    assert named <= {outcome.name.lower() for outcome in Outcome}


def test_every_metric_of_history_that_is_named_exists() -> None:
    named = {name for _, sql in every_sql() for name in re.findall(r"metric = '(\w+)'", sql)}
    assert named
    assert named <= {str(metric) for metric in HistoryMetric}
