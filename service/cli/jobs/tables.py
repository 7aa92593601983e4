"""Jobs and their runs for a person."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from rich.console import RenderableType
from rich.text import Text

from service.cli.server.listing import Row, more, text, time, timestamp_of, utc
from service.cli.terminal.columns import Rows, lines
from service.cli.terminal.printable import printable
from service.cli.terminal.showing import SHOWN
from service.cli.terminal.values import in_words
from service.cli.terminal.words import duration

FAILED: Final = ("failed", "timed_out", "interrupted", "missed")
# Column -> whether its cells are short and never folded.
JOBS: Final = {
    "job": True,
    "when": False,
    "next (UTC)": True,
    "last due (UTC)": True,
    "outcome": True,
    "took": True,
    "detail": False,
}
RUNS: Final = {
    "due (UTC)": True,
    "began (UTC)": True,
    "outcome": True,
    "took": True,
    "detail": False,
    "stats": False,
}


def table(rows: Sequence[Row]) -> Rows:
    """Return one line per job."""
    grid = Rows(JOBS)
    for row in rows:
        run = row.get("last_run") or {}
        names, nexts = (
            (text(row.get("name")), text(row.get("trigger"))),
            utc(row.get("next_due_at")),
        )
        cells = (utc(run.get("due_at")), _outcome(row, run), _took(run), text(run.get("detail")))
        grid.add([*names, nexts, *cells], style=_style(run))
    return grid


def render_details(document: Row, runs: Sequence[Row]) -> Iterator[RenderableType]:
    """Yield a job with its runs."""
    job = document["job"]
    yield Text(printable(f"{job.get('name')}  {text(job.get('trigger'))}"), style="bold")
    now = "it runs now" if job.get("is_running") else None
    waits_for = job.get("waits_for")
    waits = None if waits_for is None else printable(waits_for)
    due = time(job.get("next_due_at")) or "not due again"
    yield lines([("next", due), ("now", now), ("waits for", waits)])
    if not runs:
        yield Text("It has not run yet.")
        return
    grid = Rows(RUNS, caption=more(runs))
    for run in runs[:SHOWN]:
        stats = in_words(run.get("stats"))
        times = (utc(run.get("due_at")), utc(run.get("started_at")))
        cells = (text(run.get("outcome")), _took(run), text(run.get("detail")), text(stats))
        grid.add([*times, *cells], style=_style(run))
    yield grid


def _outcome(row: Row, run: Row) -> str:
    return "running" if row.get("is_running") else text(run.get("outcome"))


def _took(run: Row) -> str:
    began, ended = timestamp_of(run.get("started_at")), timestamp_of(run.get("ended_at"))
    return duration(None if began is None or ended is None else ended - began)


def _style(run: Row) -> str | None:
    return "bold red" if run.get("outcome") in FAILED else None
