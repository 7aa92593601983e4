"""The stack's alerts agree with the metrics and rules that there are, and are proven one by one.

Whether they fire when they must is for promtool: tests/integration/test_stack_files.py.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from ruamel.yaml import YAML

from rules.catalogue.all_rules import RULES, SELF_MONITORING
from rules.names import METRICS
from rules.verdict import Severity

STACK: Final = Path(__file__).parents[2] / "dashboards" / "stack"


def read_yaml(name: str) -> Any:
    return YAML(typ="safe").load((STACK / name).read_text(encoding="utf-8"))


def alerts() -> list[Mapping[str, Any]]:
    return [rule for group in read_yaml("tidemark_alerts.yml")["groups"] for rule in group["rules"]]


def test_alerts_use_metrics_that_exist() -> None:
    used = {name for rule in alerts() for name in re.findall(r"tidemark_\w+", rule["expr"])}
    assert used
    assert used <= {metric.name for metric in METRICS}


def test_alerts_name_rules_that_exist() -> None:
    used = {name for rule in alerts() for name in re.findall(r'rule!?="(\w+)"', rule["expr"])}
    assert used
    assert used <= {SELF_MONITORING.rule_id, *(rule.meta.rule_id for rule in RULES)}


def test_alerts_stand_on_jobs_that_are_scraped() -> None:
    jobs = {job["job_name"] for job in read_yaml("prometheus.yml")["scrape_configs"]}
    used = {name for rule in alerts() for name in re.findall(r'job="(\w+)"', rule["expr"])}
    assert used <= jobs


def test_findings_of_every_rule_are_told_as_urgently_as_the_rule_says() -> None:
    told = {
        severity: rule["labels"]["severity"]
        for rule in alerts()
        for severity in re.findall(r'open_findings{severity="(\w+)"', rule["expr"])
    }
    wanted = {rule.meta.severity for rule in RULES if rule.meta.severity is not Severity.INFO}
    assert told == {severity: severity for severity in wanted}


def test_every_alert_is_proven_to_fire_and_to_stay_silent() -> None:
    groups = read_yaml("tidemark_alerts_test.yml")["tests"]
    cases = [case for group in groups for case in group["alert_rule_test"]]
    fires = {case["alertname"] for case in cases if case.get("exp_alerts")}
    is_silent = {case["alertname"] for case in cases if not case.get("exp_alerts")}
    assert fires == is_silent == {rule["alert"] for rule in alerts()}
