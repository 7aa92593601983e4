"""The documentation page of a rule, generated from its docstring and its `RuleMeta`.

The six headings of a rule's docstring are the page's headings; the table comes from its `RuleMeta`
and from its closed set of reasons. `docs/rules/` holds the result and a test checks it for drift.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Sequence
from typing import Final

from rules.verdict import RuleMeta

HEADINGS: Final = (
    "Detects",
    "Why it matters",
    "Inputs",
    "Thresholds",
    "False positives",
    "Runbook",
)
_SECTION: Final = re.compile(r"^([A-Z][a-z ]+):\n((?:    .*\n|\n)+)", re.MULTILINE)


class IncompleteRuleError(ValueError):
    """A rule's docstring lacks one of the six headings."""


def page(rule: RuleMeta, text: str | None, reasons: Sequence[str]) -> str:
    """Return the Markdown page of a rule whose docstring is `text`.

    Raises:
        IncompleteRuleError: naming the headings that are missing.
    """
    sections = sections_of(text)
    missing = [heading for heading in HEADINGS if heading not in sections]
    if missing:
        raise IncompleteRuleError(f"{rule.rule_id} does not say: {', '.join(missing)}")
    body = "\n\n".join(f"## {heading}\n\n{sections[heading]}" for heading in HEADINGS)
    return f"# {rule.rule_id}\n\n{rule.summary}\n\n{_table(rule, reasons)}\n\n{body}\n"


def sections_of(text: str | None) -> dict[str, str]:
    """Return the text below each heading of a rule's docstring, as Markdown."""
    return {
        match.group(1): inspect.cleandoc(match.group(2)).strip()
        for match in _SECTION.finditer(inspect.cleandoc(text or "") + "\n")
    }


def _milder(rule: RuleMeta) -> list[str]:
    return [f"{severity} for `{reason}`" for reason, severity in rule.milder]


def _table(rule: RuleMeta, reasons: Sequence[str]) -> str:
    rows = {
        "judges": f"each {rule.subject}",
        "kind": str(rule.kind),
        "severity": "; ".join([str(rule.severity), *_milder(rule)]),
        "fires after": f"{rule.for_.total_seconds():g} s",
        "critical": "yes: observation_stale fires while it stays UNKNOWN"
        if rule.is_critical
        else "no",
        "reasons": ", ".join(f"`{reason}`" for reason in reasons),
    }
    lines = [f"| {name} | {value} |" for name, value in rows.items()]
    return "\n".join(["| | |", "|---|---|", *lines])
