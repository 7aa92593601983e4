"""Whether matchers would hold back every alert, whatever it is about."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from rules.catalogue.all_rules import EVERY
from rules.verdict import Severity
from service.alerting.alerts.identity import ALERTNAME, SEVERITY, Labels
from service.alerting.alerts.matchers import Matchers, all_match

UNLIKELY: Final = "\N{SNOWMAN}\N{COMET}"  # no cluster is called so


def matches_everything(matchers: Matchers) -> bool:
    """Tell whether matchers match each rule's alerts in any cluster, without a word of their subject.

    Alertmanager asks only whether they match an alert without labels; but a severity of any kind, or
    a list of all rules, reaches as far.
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
