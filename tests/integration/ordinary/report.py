"""The table at the end of a run, and the file of wrong findings."""

from __future__ import annotations

import json
import tempfile
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

from tests.integration.ordinary.confirmations import commits_of
from tests.integration.ordinary.services import INTERVALS, ReportedFinding
from tests.integration.ordinary.troubles import Action, Family
from tests.integration.ordinary.truth import Truth

NEAR: Final = timedelta(seconds=90)  # actions so long before a finding are written with it
OUTSIDE: Final = "before them all"


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedFinding:
    """A finding, what confirms it (None: it is wrong), and in which family it began."""

    finding: ReportedFinding
    confirmation: str | None
    family: str

    @property
    def is_wrong(self) -> bool:
        return self.confirmation is None


def family_of(finding: ReportedFinding, families: Sequence[Family]) -> str:
    """Return the last family that had begun before a finding did."""
    begun = [family.name for family in families if family.begin <= finding.since]
    return begun[-1] if begun else OUTSIDE


def table(families: Sequence[Family], judged: Sequence[JudgedFinding]) -> str:
    """Return two lines for each family: its size, and the findings of each service in it."""
    lines = [f"{'family':26} {'count':>5} {'seconds':>8}  findings (wrong ones)"]
    rows = [(family.name, family.count, family.seconds) for family in families]
    if any(entry.family == OUTSIDE for entry in judged):
        rows.append((OUTSIDE, 0, 0.0))
    for name, count, seconds in rows:
        head = f"{name:26} {count:5} {seconds:8.0f}"
        for service in INTERVALS:
            chosen = [
                entry
                for entry in judged
                if (entry.family, entry.finding.service) == (name, service)
            ]
            lines.append(f"{head:41}  {service}: {_by_rule(chosen)}")
            head = ""
    return "\n".join(lines)


def _by_rule(judged: Iterable[JudgedFinding]) -> str:
    total, wrong = Counter[str](), Counter[str]()
    for entry in judged:
        name = f"{entry.finding.rule}/{entry.finding.severity}"
        total[name] += 1
        wrong[name] += entry.is_wrong
    return ", ".join(f"{name} {total[name]} ({wrong[name]})" for name in sorted(total)) or "-"


def write_wrong(
    judged: Sequence[JudgedFinding],
    actions: Sequence[Action],
    truth: Truth,
    figures: Mapping[str, Any],
) -> Path:
    """Write each wrong finding with its evidence, and the actions before it; return the file."""
    document = {
        "stats": figures,
        "wrong": [_wrong_row(entry, actions, truth) for entry in judged if entry.is_wrong],
        "confirmed": [
            {"by": entry.confirmation, **_row(entry)}
            for entry in judged
            if entry.confirmation not in (None, "info")
        ],
    }
    with tempfile.NamedTemporaryFile(
        "w", prefix="ordinary-trouble-", suffix=".json", delete=False
    ) as file:
        json.dump(document, file, indent=1)
    return Path(file.name)


def _row(entry: JudgedFinding) -> dict[str, Any]:
    return {
        "service": entry.finding.service,
        "family": entry.family,
        "finding": entry.finding.document,
    }


def _wrong_row(entry: JudgedFinding, actions: Sequence[Action], truth: Truth) -> dict[str, Any]:
    begin, end = entry.finding.since - NEAR, entry.finding.last_breach
    return {
        **_row(entry),
        "actions": [
            f"{action.begin:%H:%M:%S}-{action.end:%H:%M:%S} {action.what}"
            for action in actions
            if action.begin <= end and action.end >= begin
        ],
        "commits": [
            f"{at:%H:%M:%S.%f} {offset}"
            for commit in commits_of(entry.finding)
            for at, offset in truth.commits.get(commit, ())
            if begin <= at <= end + NEAR
        ],
    }
