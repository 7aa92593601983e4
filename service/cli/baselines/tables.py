"""Baseline runs, and the usual values of series, for a person."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from rich.console import RenderableType
from rich.text import Text

from service.cli.baselines import words
from service.cli.server.listing import Row, more, text, time, utc
from service.cli.terminal.columns import Rows, lines
from service.cli.terminal.printable import printable
from service.cli.terminal.showing import SHOWN

# Column -> whether its cells are short and never folded.
RUNS: Final = {
    "day": True,
    "in force": True,
    "series": True,
    "outcomes": False,
    "zone": True,
    "loaded (UTC)": True,
    "run": True,
}
SERIES: Final = {
    "metric": True,
    "topic": False,
    "partition": True,
    "group": False,
    "usual": False,
    "unusual": False,
    "outcome": True,
    "series": True,
}
AROUND: Final = ("before", "after")
SLOTS: Final = {"time": True, "expected": True, "usual": True, "unusual": True}


def runs_table(rows: Sequence[Row]) -> Rows:
    """Return one line per run, the newest first."""
    grid = Rows(RUNS)
    for row in rows:
        is_current = bool(row.get("is_current"))
        cells = (text(row.get("day")), "yes" if is_current else "", words.number(row.get("series")))
        grid.add(
            [
                *cells,
                outcomes(row),
                text(row.get("time_zone")),
                utc(row.get("loaded_at")),
                text(row.get("run_id")),
            ],
            style="bold" if is_current else None,
        )
    return grid


def series_table(rows: Sequence[Row]) -> Rows:
    """Return one line per series."""
    grid = Rows(SERIES, caption=more(rows))
    for row in rows[:SHOWN]:
        usual, metric = row.get("usual") or {}, row.get("metric")
        labels = [text(row.get(name)) for name in ("metric", "topic", "partition", "group")]
        usual_text = words.usual_range(usual, metric) if usual else words.sentence(row)
        limits = text(words.beyond(usual, metric))
        grid.add(
            [*labels, usual_text, limits, text(row.get("outcome")), text(row.get("series_id"))]
        )
    return grid


def run_line(run: Row, at: object) -> Text:
    """Return the line that names the run in force, and the time for which values are shown."""
    line = f"run of {text(run.get('day'))} in {text(run.get('time_zone'))}, usual at {time(at)}"
    return Text(printable(line), style="dim")


def render_details(documents: Sequence[Row]) -> Iterator[RenderableType]:
    """Yield all details of series; if it is one series, also every half hour of the day."""
    for document in documents:
        series = document["series"]
        yield Text(printable(title(series)), style="bold")
        yield Text(f"  {words.sentence(series)}")
        yield lines(_facts(series, document["run"], document.get("at")))
    if len(documents) == 1 and documents[0].get("slots"):
        yield _slots(documents[0])


def title(series: Row) -> str:
    """Return the labels of a series in a line."""
    labels = ((name, series.get(name)) for name in ("group", "topic", "partition"))
    subject = ", ".join(f"{name} {value}" for name, value in labels if value is not None)
    return f"{text(series.get('metric'))}  {subject or 'whole cluster'}"


def outcomes(run: Row) -> str:
    """Return the number of series by outcome, the most frequent first."""
    counts: dict[str, Any] = run.get("outcomes") or {}
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return ", ".join(f"{count:,} {name}" for name, count in ordered) or "-"


def _facts(series: Row, run: Row, at: object) -> list[tuple[str, str | None]]:
    usual, metric = series.get("usual") or {}, series.get("metric")
    expected = words.amount(usual.get("expected"), metric) if usual else None
    reason = str(series.get("reason"))
    return [
        ("expected", expected),
        ("unusual", words.beyond(usual, metric)),
        ("threshold", words.threshold(series) if usual else None),
        ("trend", words.trend(series)),
        ("new level", _change(series)),
        ("profile", text(series.get("profile")) if usual else None),
        ("seen", words.learnt_from(series.get("days"))),
        ("note", words.BESIDE.get(reason)),
        ("outcome", f"{text(series.get('outcome'))} ({reason})"),
        ("at", f"{time(at)}, wall clock of {text(run.get('time_zone'))}"),
        ("run", f"{text(run.get('run_id'))} of {text(run.get('day'))}"),
        ("series", text(series.get("series_id"))),
    ]


def _change(series: Row) -> str | None:
    change = series.get("level_change")
    if not change:
        return None
    before, after = (words.amount(change.get(name), series.get("metric")) for name in AROUND)
    return f"from {before} to {after} since {time(change.get('at'))}"


def _slots(document: Row) -> Rows:
    """Return the half hours of the requested day."""
    series = document["series"]
    weekday = (series.get("usual") or {}).get("weekday")
    rows = [slot for slot in document["slots"] if slot.get("weekday") == weekday]
    grid = Rows(SLOTS, caption=weekday and "other days: --at, or -o json")
    for row in rows:
        metric = series.get("metric")
        cells = (words.amount(row.get("expected"), metric), words.usual_range(row, metric))
        style = "bold" if row == series.get("usual") else None
        grid.add([words.slot(row), *cells, text(words.beyond(row, metric))], style=style)
    return grid
