"""The values that an alert gives to the placeholders of a runbook; pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

Row = Mapping[str, Any]

OF_ALERT: Final = ("fingerprint", "rule", "severity", "reason", "finding_id")
# The labels of what a rule judges; a label that an alert of the rule may lack is left out.
LABELS: Final[Mapping[str, frozenset[str]]] = {
    "cluster": frozenset(),
    "topic": frozenset({"topic"}),
    "partition": frozenset({"topic", "partition"}),
    "commit": frozenset({"group", "topic", "partition"}),
    "group": frozenset({"group"}),
    "transaction": frozenset({"transactional_id"}),
    "broker": frozenset({"broker"}),
    "client": frozenset({"client", "topic"}),
    "check": frozenset({"check"}),
    "rule": frozenset({"rule"}),
}


def values_of(alert: Row) -> dict[str, str]:
    """Return the values by name: of the evidence, of the labels, and of the alert itself, which wins.

    A value that is absent, or is a list, has no entry.
    """
    evidence, labels = alert.get("evidence") or {}, alert.get("labels") or {}
    own = {name: alert.get(name) for name in OF_ALERT}
    if "rule" in labels:  # of observation_stale: the rule that cannot judge
        own["rule"] = labels["rule"]
    every = {**evidence, **labels, **own}
    return {name: text for name, value in every.items() if (text := _text(value)) is not None}


def _text(value: object) -> str | None:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, (str, int, float)) and value != "":
        return str(value)
    return None
