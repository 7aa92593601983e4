"""Receivers for a person: which of them accept deliveries, and which do not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from service.cli.server.listing import Row, text, utc
from service.cli.terminal.columns import Rows

# Column -> whether its cells are short and never folded.
COLUMNS: Final = {
    "name": False,
    "kind": True,
    "state": True,
    "waiting": True,
    "dead": True,
    "last success (UTC)": True,
    "last failure (UTC)": True,
    "why": False,
    "endpoint": False,
}


def table(rows: Sequence[Row]) -> Rows:
    """Return one line per receiver."""
    grid = Rows(COLUMNS)
    for row in rows:
        grid.add(_cells(row), style="bold red" if row.get("state") == "failing" else None)
    return grid


def _cells(row: Row) -> list[str]:
    failure = row.get("last_failure") or {}
    return [
        _name(row),
        text(row.get("kind")),
        text(row.get("state")),
        _waiting(row),
        text(row.get("dead")),
        utc(row.get("last_success_at")),
        utc(failure.get("at")),
        text(failure.get("detail") or failure.get("failure")),
        text(row.get("endpoint")),
    ]


def _name(row: Row) -> str:
    roles = ("default", row.get("is_default")), ("fallback", row.get("is_fallback"))
    suffix = ", ".join(role for role, is_so in roles if is_so)
    return f"{row.get('name')} ({suffix})" if suffix else text(row.get("name"))


def _waiting(row: Row) -> str:
    since = row.get("oldest_waiting_at")
    return text(row.get("waiting")) if since is None else f"{row.get('waiting')} since {utc(since)}"
