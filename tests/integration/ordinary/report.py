"""The table at the end, and the file of what was said wrongly."""

from __future__ import annotations

import json
import tempfile
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

from tests.integration.ordinary.troubles import Family, Trouble
from tests.integration.ordinary.watchers import Said

NEAR: Final = timedelta(seconds=90)  # what happened so long before a finding is told with it
BEFORE_ALL: Final = "before and after"


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """A finding, and why it may be; None where it is wrong."""

    said: Said
    excuse: str | None
    family: str


def family_of(said: Said, families: Sequence[Family]) -> str:
    """Return the last family that had begun when a finding did."""
    begun = [one.name for one in families if one.begin <= said.since]
    return begun[-1] if begun else BEFORE_ALL


def table(families: Sequence[Family], judged: Sequence[Judged]) -> str:
    """Return a line for each family: what it was, and what each service said in it."""
    lines = [f"{'family':26} {'count':>5} {'seconds':>8}  said (wrongly)"]
    shown = [(one.name, one.count, one.seconds) for one in families]
    others = {one.family for one in judged} - {one.name for one in families}
    for name, count, seconds in [*shown, *((other, 0, 0.0) for other in sorted(others))]:
        for service in ("A", "B"):
            chosen = [one for one in judged if (one.family, one.said.service) == (name, service)]
            head = f"{name:26} {count:5} {seconds:8.0f}" if service == "A" else " " * 41
            lines.append(f"{head}  {service}: {_by_rule(chosen)}")
    return "\n".join(lines)


def _by_rule(judged: Iterable[Judged]) -> str:
    all_of, wrong = Counter[str](), Counter[str]()
    for one in judged:
        name = f"{one.said.rule}/{one.said.severity}"
        all_of[name] += 1
        wrong[name] += one.excuse is None
    return ", ".join(f"{name} {all_of[name]} ({wrong[name]})" for name in sorted(all_of)) or "-"


def write_wrong(
    seed: int, judged: Sequence[Judged], diary: Sequence[Trouble], truth: Mapping[str, Any]
) -> Path:
    """Write each wrong finding with its evidence, and what happened before it; return the file."""
    rows = [
        {
            "service": one.said.service,
            "family": one.family,
            "finding": one.said.document,
            "happened": [
                f"{trouble.begin:%H:%M:%S}-{trouble.end:%H:%M:%S} {trouble.what}"
                for trouble in diary
                if trouble.begin <= one.said.last_breach and trouble.end >= one.said.since - NEAR
            ],
        }
        for one in judged
        if one.excuse is None
    ]
    document = {
        "seed": seed,
        "truth": truth,
        "wrong": rows,
        "excused": [
            {"why": one.excuse, "service": one.said.service, "finding": one.said.document}
            for one in judged
            if one.excuse not in (None, "info")
        ],
    }
    with tempfile.NamedTemporaryFile(
        "w", prefix="ordinary-trouble-", suffix=".json", delete=False
    ) as file:
        json.dump(document, file, indent=1)
    return Path(file.name)
