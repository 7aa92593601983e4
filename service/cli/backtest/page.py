"""A backtest as one HTML page that needs nothing beside it: no script, no font, no picture from elsewhere."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import date, datetime, timedelta
from html import escape
from typing import Final
from zoneinfo import ZoneInfo

from collectors.naming import counted
from service.cli.backtest.showing import (
    band,
    closed,
    heading,
    labels_of,
    lists,
    settings_of,
    summary,
    without_data,
)
from service.cli.baselines.words import number
from service.terminal.parts import Row
from service.terminal.words import printable, utc

MOST_ROWS: Final = 2000  # of a list: a browser draws them at once
BAR_WIDTH: Final = 12  # pixels
CHART_HEIGHT: Final = 80
STYLE: Final = """
body { font: 15px/1.5 system-ui, sans-serif; margin: 2em auto; max-width: 75em; padding: 0 1em; color: #222 }
table { border-collapse: collapse; width: 100% } th, td { text-align: left; padding: .3em .8em .3em 0; vertical-align: top }
th { border-bottom: 2px solid #999 } td { border-bottom: 1px solid #ddd } .number { text-align: right }
.note { color: #666 } .sides { display: flex; gap: 3em; flex-wrap: wrap } rect { fill: #36c } svg { max-width: 100% }
@media (prefers-color-scheme: dark) { body { background: #181818; color: #ddd } td { border-color: #444 } rect { fill: #69f } }
"""


def page(document: Row) -> str:
    """Return the page."""
    title = _text(heading(document))
    sides = "".join(_side(result, document) for result in document["results"])
    damaged = "".join(f"<p class=note>{_text(line)}</p>" for line in without_data(document))
    sections = "".join(_section(name, openings) for name, openings in lists(document))
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{title}</title>'
        f"<style>{STYLE}</style></head>\n<body><h1>{title}</h1>\n"
        f"<div class=sides>{sides}</div>{damaged}\n{sections}</body></html>"
    )


def _side(result: Row, document: Row) -> str:
    lines = "".join(f"<li>{_text(line)}</li>" for line in summary(result))
    pairs = "".join(
        f"<tr><th>{_text(name)}</th><td>{_text(value)}</td></tr>"
        for name, value in labels_of(result)
    )
    labels = f"<table>{pairs}</table>" if pairs else ""
    chart = _chart(document, result["openings"])
    return (
        f"<section><h2>{_text(settings_of(result))}</h2><ul>{lines}</ul>{labels}{chart}</section>"
    )


def _chart(document: Row, openings: Sequence[Row]) -> str:
    """Return the openings of each day as bars."""
    first = date.fromisoformat(document["from"])
    days = [first + timedelta(days=number) for number in range(document["days"])]
    zone = ZoneInfo(document["time_zone"])
    times = (datetime.fromisoformat(opening["opened_at"]) for opening in openings)
    counts = Counter(time.astimezone(zone).date().isoformat() for time in times)
    most = max([1, *counts.values()])
    bars = "".join(
        _bar(place, day, counts[day.isoformat()], most) for place, day in enumerate(days)
    )
    return (
        f'<svg width="{BAR_WIDTH * len(days)}" height="{CHART_HEIGHT}" role="img" '
        f'aria-label="openings by day"><title>openings by day</title>{bars}</svg>'
    )


def _bar(place: int, day: date, count: int, most: int) -> str:
    height = CHART_HEIGHT * count // most
    return (
        f'<rect x="{place * BAR_WIDTH}" y="{CHART_HEIGHT - height}" width="{BAR_WIDTH - 2}" '
        f'height="{height}"><title>{day}: {counted(count, "opening")}</title></rect>'
    )


def _section(title: str, openings: Sequence[Row]) -> str:
    headings = ("opened (UTC)", "closed (UTC)", "series", "score", "value", "usual", "why")
    head = "".join(f"<th>{name}</th>" for name in headings)
    rows = "".join(f"<tr>{''.join(_cells(opening))}</tr>\n" for opening in openings[:MOST_ROWS])
    hidden = len(openings) - MOST_ROWS
    more = f"<p class=note>{hidden} more (-o json)</p>" if hidden > 0 else ""
    table = f"<table><thead><tr>{head}</tr></thead><tbody>\n{rows}</tbody></table>" if rows else ""
    count = _text(counted(len(openings), "opening"))
    return f"<section><h2>{_text(title)}: {count}</h2>{table}{more}</section>"


def _cells(opening: Row) -> Iterator[str]:
    values: Iterable[object] = (
        utc(opening["opened_at"]),
        closed(opening),
        opening["series"],
        number(opening["score"]),
        number(opening["value"]),
        band(opening),
        opening["explanation"],
    )
    yield from (f"<td>{_text(value)}</td>" for value in values)


def _text(value: object) -> str:
    return escape(printable(str(value)))
