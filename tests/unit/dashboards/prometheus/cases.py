"""What a case of a Prometheus rule is, and the file of `promtool test rules` that cases make.

The annotations that are expected are those of the rule with the case's labels and value in them: a label that
the samples do not have is an error here, where Prometheus would print nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from dashboards.prometheus.files import DOCS_URL, FILES
from dashboards.prometheus.rule import AlertingRule, RecordingRule

STEP: Final = "15s"  # of scrapes and of evaluations
TARGET: Final = {"job": "tidemark", "instance": "tidemark:8780"}
OTHER_TARGET: Final = {'up{job="prometheus"}': "1x80"}  # all of Tidemark's series are absent
CLUSTER: Final = {**TARGET, "cluster": "compose"}
ALERTS: Final = {
    rule.alert: rule for file in FILES for rule in file.rules if isinstance(rule, AlertingRule)
}
RECORDS: Final = {
    rule.record: rule for file in FILES for rule in file.rules if isinstance(rule, RecordingRule)
}
_LABEL: Final = re.compile(r"\{\{ \$labels\.(\w+) \}\}")
_VALUE: Final = re.compile(r"\{\{ \$value[^}]*\}\}")

Labels = Mapping[str, str]
Series = Mapping[str, str]  # a series with its labels -> its values in promtool's notation
Samples = tuple[tuple[Labels, float], ...]
Document = dict[str, Any]


def series(name: str, values: str, **labels: str) -> dict[str, str]:
    """Return one series of Tidemark's target in cluster compose, unless labels say otherwise."""
    return {named(name, {**CLUSTER, **labels}): values}


def named(name: str, labels: Labels) -> str:
    pairs = ", ".join(f'{key}="{value}"' for key, value in labels.items())
    return f"{name}{{{pairs}}}"


@dataclass(frozen=True, slots=True, kw_only=True)
class AlertCase:
    """Series under which an alert is silent at some times, and fires at another one if `fires` says so."""

    alert: str
    reason: str
    series: Series
    silent: tuple[str, ...] = ()
    fires: tuple[str, ...] = ()
    labels: Labels = field(default_factory=lambda: CLUSTER)  # of the sample
    value: str = ""  # as the annotations print it

    def document(self) -> Document:
        expected = [self._expected()] if self.fires else []
        times: list[tuple[str, list[Document]]] = [
            *((at, []) for at in self.silent),
            *((at, expected) for at in self.fires),
        ]
        return simulation(
            f"{self.alert}: {self.reason}",
            self.series,
            alert_rule_test=[
                {"eval_time": at, "alertname": self.alert, "exp_alerts": alerts}
                for at, alerts in times
            ],
        )

    def _expected(self) -> Document:
        rule = ALERTS[self.alert]
        return {
            "exp_labels": {**self.labels, **self._expanded(rule.all_labels)},
            "exp_annotations": self._expanded(rule.annotations(DOCS_URL)),
        }

    def _expanded(self, templates: Mapping[str, str]) -> dict[str, str]:
        return {key: self._text(template) for key, template in templates.items()}

    def _text(self, template: str) -> str:
        text = _LABEL.sub(lambda match: self.labels[match[1]], template)
        return _VALUE.sub(self.value, text)


@dataclass(frozen=True, slots=True, kw_only=True)
class SilentCase:
    """Series under which none of some alerts fires."""

    reason: str
    series: Series
    alerts: tuple[str, ...]
    silent: tuple[str, ...]

    def document(self) -> Document:
        return simulation(
            self.reason,
            self.series,
            alert_rule_test=[
                {"eval_time": at, "alertname": alert, "exp_alerts": []}
                for alert in self.alerts
                for at in self.silent
            ],
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordCase:
    """Series, and the samples that recording rules make of them after ten minutes."""

    reason: str
    series: Series
    samples: Mapping[str, Samples]  # by recorded series; none: absent

    def document(self) -> Document:
        return simulation(
            self.reason,
            self.series,
            promql_expr_test=[
                {
                    "expr": record,
                    "eval_time": "10m",
                    "exp_samples": [
                        {"labels": named(record, labels), "value": value}
                        for labels, value in samples
                    ],
                }
                for record, samples in self.samples.items()
            ],
        )


Case = AlertCase | SilentCase | RecordCase


def simulation(name: str, given: Series, **tests: list[dict[str, Any]]) -> Document:
    inputs = [{"series": series_name, "values": values} for series_name, values in given.items()]
    return {"name": name, "interval": STEP, "input_series": inputs, **tests}


def promtool_file(rules: Path, cases: Iterable[Case]) -> Document:
    """Return what `promtool test rules` reads: JSON is YAML."""
    return {
        "rule_files": [str(rules)],
        "evaluation_interval": STEP,
        "tests": [case.document() for case in cases],
    }
