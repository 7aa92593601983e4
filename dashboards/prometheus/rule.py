"""What a Prometheus rule file holds: recording rules and alerting rules, in groups.

Source: prometheus.io/docs/prometheus/latest/configuration/recording_rules and alerting_rules.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final

SEVERITY: Final = "severity"
PAGE: Final = "prometheus-alerts.md"  # generated: a heading per alert


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordingRule:
    """A series that Prometheus computes and stores; its name is `level:metric:operations`."""

    record: str
    expr: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AlertingRule:
    """A condition that fires. An expression without samples is UNKNOWN and fires nothing."""

    alert: str
    expr: str
    severity: str  # a Go template where the samples carry it
    summary: str  # as is `description`, a Go template over $labels and $value
    description: str
    page: str = ""  # of the folder docs/; without one the alert's heading on the page of all alerts
    for_: timedelta = timedelta(0)
    # A restart of Tidemark interrupts its series, which must not resolve an alert and fire it again.
    keep_firing_for: timedelta = timedelta(0)
    labels: Mapping[str, str] = field(default_factory=dict)  # beside the severity

    @property
    def all_labels(self) -> dict[str, str]:
        """Return the labels that the rule adds to those of the sample."""
        return {SEVERITY: self.severity, **self.labels}

    def annotations(self, docs_url: str) -> dict[str, str]:
        """Return the annotations; `docs_url` is the address at which the folder docs/ is served."""
        return {
            "summary": self.summary,
            "description": self.description,
            "runbook_url": f"{docs_url}/{self.page or f'{PAGE}#{self.alert.lower()}'}",
        }


Rule = RecordingRule | AlertingRule


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleGroup:
    """Rules that are evaluated together, in order."""

    name: str
    rules: tuple[Rule, ...]
    interval: timedelta | None = None  # None: the server's evaluation_interval


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleFile:
    """One file of groups."""

    name: str
    about: str  # its first lines, as a comment
    groups: tuple[RuleGroup, ...]

    @property
    def rules(self) -> tuple[Rule, ...]:
        """Return the rules of all groups, in order."""
        return tuple(rule for group in self.groups for rule in group.rules)
