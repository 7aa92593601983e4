"""Silences for a person: what is held back, until when, by whom and why."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from rich.console import RenderableType
from rich.text import Text

from service.cli.server.listing import Row, more, text, time, utc
from service.cli.terminal.columns import Rows, lines
from service.cli.terminal.printable import printable
from service.cli.terminal.showing import SHOWN

# Column -> whether its cells are short and never folded.
COLUMNS: Final = {
    "state": True,
    "matchers": False,
    "from (UTC)": True,
    "until (UTC)": True,
    "by": False,
    "comment": False,
    "id": True,
}


def table(rows: Sequence[Row]) -> Rows:
    """Return one line per silence."""
    grid = Rows(COLUMNS, caption=more(rows))
    for row in rows[:SHOWN]:
        times = (utc(row.get(name)) for name in ("starts_at", "ends_at"))
        words = (text(row.get(name)) for name in ("created_by", "comment", "id"))
        grid.add([text(row.get("state")), text(row.get("matchers")), *times, *words])
    return grid


def render_details(row: Row) -> Iterator[RenderableType]:
    """Yield all details of one silence."""
    yield Text(printable(f"{text(row.get('state')).upper()}  {row.get('matchers')}"), style="bold")
    yield lines(
        [
            ("from", time(row.get("starts_at"))),
            ("until", time(row.get("ends_at"))),
            ("by", text(row.get("created_by"))),
            ("comment", text(row.get("comment"))),
            ("created", time(row.get("created_at"))),
            ("changed", time(row.get("updated_at"))),
            ("version", text(row.get("version"))),
            ("id", text(row.get("id"))),
        ]
    )
