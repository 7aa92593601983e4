"""What was measured of a series between two times, beside what is usual then, for a person."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import click

from rules.baseline.wording import half_hour
from service.cli.baselines import words
from service.terminal.formats import is_limited
from service.terminal.parameters import Timestamp
from service.terminal.parts import SHOWN, Line, Part, Row, Table, not_seen, short, time_column
from service.terminal.plot import Point
from service.terminal.plotted import plotted
from service.terminal.words import ABSENT, time, timestamp_of

FROM: Final = click.option(
    "--from", "begin", type=Timestamp(), metavar="TIME",
    help="Show what was measured from then on; an hour before --to.",
)  # fmt: skip
TO: Final = click.option(
    "--to", "end", type=Timestamp(), metavar="TIME", help="Show what was measured before; now."
)

PLOT: Final = click.option("--plot", is_flag=True, help="Draw a chart of the values and the band.")
MARKS: Final = "• measured   ░ usual   ? not measured"


def render_measured(document: Row, *, plot: bool = False) -> Iterator[Part]:
    """Yield the measured values of a series, and which files could not be read; nothing if not requested."""
    measured = document.get("measured")
    if not measured:
        return
    values = measured["values"]
    if plot and any(row.get("value") is not None for row in values):
        yield from plotted(_points(document, values), measured.get("unit"), MARKS)
    elif values:
        yield _table(document, values)
    else:
        times = f"from {time(measured.get('from'))} to {time(measured.get('to'))}"
        yield Line(f"nothing was measured {times}")
    yield from not_seen(f"{row['file']}: {row['reason']}" for row in measured["unreadable"])


def _table(document: Row, values: list[Row]) -> Table[Row]:
    series, zone = document["series"], str(document["run"].get("time_zone"))
    metric = series.get("metric")
    hidden = max(len(values) - SHOWN, 0) if is_limited() else 0
    slots = _slots_of(document)

    def usual(row: Row) -> str:
        slot = _slot(slots, row, zone)
        return words.usual_range(slot, metric) if slot else ABSENT

    return Table(
        columns=(
            time_column("time", "at"),
            short("measured", lambda row: words.amount(row.get("value"), metric)),
            short("usual", usual),
        ),
        rows=values[hidden:],  # the latest
        style=lambda row: "bold" if _is_unusual(row, _slot(slots, row, zone)) else None,
        caption=f"{hidden:,} earlier (-o wide)" if hidden else None,
    )


def _points(document: Row, values: list[Row]) -> Iterator[Point]:
    """Yield values with what is usual in their half hours."""
    slots, zone = _slots_of(document), str(document["run"].get("time_zone"))
    for row in values:
        at, slot = timestamp_of(row.get("at")), _slot(slots, row, zone) or {}
        if at is not None:
            yield Point(at, row.get("value"), slot.get("least"), slot.get("most"))


def _slots_of(document: Row) -> dict[tuple[str | None, str | None], Row]:
    return {(slot.get("weekday"), slot.get("begins")): slot for slot in document["slots"]}


def _slot(slots: dict[tuple[str | None, str | None], Row], row: Row, zone: str) -> Row | None:
    """Return what is usual in the half hour of a value, None if there is no band."""
    at = timestamp_of(row.get("at"))
    if at is None:
        return None
    weekday, begins, _ = half_hour(at, zone)
    return slots.get((weekday, begins)) or slots.get((None, begins))


def _is_unusual(row: Row, slot: Row | None) -> bool:
    """Return whether a value is beyond the threshold of its half hour."""
    value = row.get("value")
    if value is None or slot is None:
        return False
    below, above = slot.get("unusual_below"), slot.get("unusual_above")
    return (below is not None and value < below) or (above is not None and value > above)
