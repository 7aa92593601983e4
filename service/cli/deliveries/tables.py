"""Deliveries for a person: which arrived, which wait, which were given up, and why."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Final

from rich.console import RenderableType
from rich.text import Text

from collectors.naming import counted
from service.cli.server.listing import Row, more, text, time, utc
from service.cli.terminal.columns import Rows, lines
from service.cli.terminal.printable import printable
from service.cli.terminal.showing import SHOWN

STYLES: Final = {"dead": "bold red", "waiting": "bold yellow"}
# Column -> whether its cells are short and never folded.
COLUMNS: Final = {
    "id": True,
    "state": True,
    "receiver": False,
    "about": True,
    "why": False,
    "attempts": True,
    "created (UTC)": True,
    "next or done (UTC)": True,
    "group": False,
}
ATTEMPTS: Final = {
    "at (UTC)": True,
    "took": True,
    "outcome": True,
    "status": True,
    "failure": False,
    "detail": False,
}


def table(rows: Sequence[Row]) -> Rows:
    """Return one line per delivery."""
    grid = Rows(COLUMNS, caption=more(rows))
    for row in rows[:SHOWN]:
        grid.add(_cells(row), style=STYLES.get(str(row.get("state"))))
    return grid


def render_details(document: Row) -> Iterator[RenderableType]:
    """Yield all details of one delivery."""
    row = document["delivery"]
    head = f"{text(row.get('state')).upper()}  delivery {row.get('id')} to {row.get('receiver')}"
    yield Text(printable(head), style=STYLES.get(str(row.get("state")), "bold"))
    yield lines(_facts(row))
    if document.get("attempts"):
        yield Text("ATTEMPTS, oldest first", style="bold")
        yield attempts_table(document["attempts"])
        yield lines([("last answer", document["attempts"][-1].get("reply") or None)])
    if document.get("body") is None:
        yield Text("Its body is no longer stored.")
        return
    yield Text("BODY", style="bold")
    for line in json.dumps(document["body"], indent=2, ensure_ascii=False).splitlines():
        yield Text(printable(line))


def attempts_table(attempts: Sequence[Row]) -> Rows:
    """Return one line per attempt."""
    grid = Rows(ATTEMPTS)
    for attempt in attempts:
        grid.add(
            [
                utc(attempt.get("at")),
                f"{text(attempt.get('took_ms'))} ms",
                *(text(attempt.get(name)) for name in ("outcome", "status", "failure", "detail")),
            ]
        )
    return grid


def _cells(row: Row) -> list[str]:
    return [
        text(row.get("id")),
        text(row.get("state")),
        text(row.get("receiver")),
        _content(row),
        text(row.get("reason")),
        text(row.get("attempts")),
        utc(row.get("created_at")),
        utc(row.get("done_at") or row.get("next_attempt_at")),
        text(row.get("group_key")),
    ]


def _content(row: Row) -> str:
    what, count = "firing" if row.get("is_firing") else "resolved", row.get("alerts")
    return what if count is None else f"{what}, {counted(count, 'alert')}"


def _facts(row: Row) -> list[tuple[str, str | None]]:
    """Return labels and values; an absent value is left out."""
    superseded, replay = row.get("superseded_by"), row.get("replay_of")
    fallback = row.get("fallback_of")
    return [
        ("webhook-id", text(row.get("webhook_id"))),
        ("about", f"{_content(row)}: {text(row.get('reason'))}"),
        ("group", text(row.get("group_key"))),
        ("created", time(row.get("created_at"))),
        ("attempts", text(row.get("attempts"))),
        ("next attempt", time(row.get("next_attempt_at"))),
        ("done", time(row.get("done_at"))),
        ("given up", row.get("dead_reason")),
        ("replaced by", None if superseded is None else f"delivery {superseded}, which is newer"),
        ("replay of", None if replay is None else f"delivery {replay}, by hand"),
        ("instead of", None if fallback is None else f"delivery {fallback}, which was late"),
    ]
