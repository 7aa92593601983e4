"""Whether matchers would mute every alert, whatever its subject."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from rules.catalogue.all_rules import EVERY
from rules.verdict import Severity
from service.alerting.alerts.identity import ALERTNAME, SEVERITY, Labels
from service.alerting.alerts.matchers import Matchers, all_match

UNLIKELY: Final = "\N{SNOWMAN}\N{COMET}"  # no cluster has this name


def matches_everything(matchers: Matchers) -> bool:
    """Return whether matchers match the alerts of every rule in any cluster, whatever their subject.

    Alertmanager only checks whether they match an alert without labels; but all severities, or a list
    of all rules, reach as far.
    """
    return all_match(matchers, {}) or all(all_match(matchers, labels) for labels in _bare())


def _bare() -> Iterator[Labels]:
    for rule in EVERY:
        for severity in Severity:
            yield {
                ALERTNAME: rule.meta.rule_id,
                SEVERITY: str(severity),
                "cluster": UNLIKELY,
            }
