"""Runbooks as JSON: a line of the list, and a whole one, also filled in for an alert."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from service.runbooks.commands import fill, fill_text
from service.runbooks.filling import values_of
from service.runbooks.form import KEYS, Block, Prose, Runbook
from service.terminal.parts import Row


def row_of(runbook: Runbook, *, is_own: bool) -> dict[str, Any]:
    """Return a line of the list of runbooks."""
    facts: dict[str, Any] = {name: runbook.facts.get(name) for name in KEYS}
    return {**facts, "is_own": is_own, "source": runbook.source}


def document_of(runbook: Runbook, alert: Row | None) -> dict[str, Any]:
    """Return a runbook, filled in for an alert if there is one."""
    values = None if alert is None else values_of(alert)
    sections = [
        {"name": name, "items": list(_items(items, values))}
        for name, items in runbook.sections.items()
    ]
    fingerprint = None if alert is None else alert.get("fingerprint")
    return {
        **runbook.facts,
        "source": runbook.source,
        "alert": fingerprint,
        "sections": sections,
    }


def _items(
    items: Sequence[Prose | Block], values: Mapping[str, str] | None
) -> Iterator[dict[str, Any]]:
    """Yield what a section has; of an alert's, filled, and without what is for another reason."""

    def text(template: str) -> str:
        return template if values is None else fill_text(template, values)

    for item in items:
        if isinstance(item, Prose):
            yield {"text": text("\n".join(item.lines))}
        elif values is None or item.is_for(values.get("reason")):
            yield {
                "kind": str(item.kind),
                "when": list(item.when),
                "commands": [
                    line if values is None else str(fill(line, values)) for line in item.commands
                ],
                "expect": text(item.expect),
            }
