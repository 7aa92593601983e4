"""What a panel shows of its answers: the names of series, one number per series, the rows of a table."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.pictures.answers import Answer, Cell, Point, Rows, Series
from tests.pictures.display import Options

Panel = Mapping[str, Any]  # as it is in the file of a dashboard


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A series with its name and the options of its field."""

    name: str
    points: tuple[Point, ...]
    options: Options
    labels: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A column of a table."""

    source: str
    title: str
    options: Options
    is_time: bool
    cells: tuple[Cell, ...]


def lines_of(panel: Panel, answers: Mapping[str, Answer]) -> list[Line]:
    """Return the series of a panel in the order of its queries."""
    lines = []
    for target in panel["targets"]:
        answer = answers[target["refId"]]
        named = (
            [(legend(target.get("legendFormat", ""), s.labels), s) for s in answer.series]
            if answer.rows is None
            else list(_series_of_rows(answer.rows))
        )
        lines += [
            Line(name=name, points=s.points, labels=s.labels, options=options_of(panel, name))
            for name, s in named
        ]
    return lines


def _series_of_rows(rows: Rows) -> Iterator[tuple[str, Series]]:
    at = rows.columns.index("time")
    for place, name in enumerate(rows.columns):
        if place != at:
            points = tuple(
                (float(row[at] or 0) / 1000, _number(row[place]))
                for row in rows.rows
                if row[place] is not None
            )
            if points:
                yield name, Series(labels={}, points=points)


def _number(cell: Cell) -> float:
    if cell is None or isinstance(cell, str):
        raise TypeError(f"{cell} is no number")
    return float(cell)


def legend(form: str, labels: Mapping[str, str]) -> str:
    """Return the name of a series: the form with its labels filled in, or else the labels themselves."""
    if form:
        return re.sub(r"\{\{\s*(\w+)\s*\}\}", lambda match: labels.get(match[1], match[0]), form)
    inner = ", ".join(f'{name}="{value}"' for name, value in sorted(labels.items()))
    return f"{{{inner}}}" if inner else "Value"


def options_of(panel: Panel, name: str) -> Options:
    """Return the options of a field: the panel's, and over them those of the field's name."""
    options = dict(panel["fieldConfig"]["defaults"])
    for override in panel["fieldConfig"].get("overrides", ()):
        if override["matcher"]["options"] == name:
            options |= {pair["id"]: pair.get("value") for pair in override["properties"]}
    return options


def values_of(panel: Panel, answers: Mapping[str, Answer]) -> list[tuple[str, Cell]]:
    """Return a stat's values with their names: the last of each series, or of each column of numbers."""
    values: list[tuple[str, Cell]] = []
    for target in panel["targets"]:
        answer = answers[target["refId"]]
        if answer.rows is None:
            form = target.get("legendFormat", "")
            values += [(legend(form, s.labels), last_of(s.points)) for s in answer.series]
        elif answer.rows.rows:
            values += list(zip(answer.rows.columns, answer.rows.rows[-1], strict=True))
    return values


def last_of(points: Sequence[Point]) -> float | None:
    """Return the last value that is a number (lastNotNull, and NaN is none); None without one."""
    return next((value for _, value in reversed(points) if value == value), None)  # noqa: PLR0124


def columns_of(panel: Panel, answers: Mapping[str, Answer]) -> list[Column]:
    """Return the columns of a table: merged, in order, named, and sorted."""
    rows = next((a.rows for a in answers.values() if a.rows is not None), None)
    columns, times, cells = (
        (rows.columns, rows.times, rows.rows) if rows is not None else _merge(panel, answers)
    )
    table = [
        _column(panel, name, [row[place] for row in cells], is_time=name in times)
        for place, name in enumerate(columns)
    ]
    return _sorted(panel, table)


def _merge(
    panel: Panel, answers: Mapping[str, Answer]
) -> tuple[Sequence[str], Sequence[str], Sequence[Sequence[Cell]]]:
    """Merge series with the same labels into a row, and put the columns in the order of `organize`."""
    is_single = len(panel["targets"]) == 1
    rows: dict[tuple[tuple[str, str], ...], dict[str, Cell]] = {}
    for ref, answer in answers.items():
        name = "Value" if is_single else f"Value #{ref}"
        for series in answer.series:
            key = tuple(sorted(series.labels.items()))
            row = rows.setdefault(key, dict(series.labels))
            row[name] = series.points[-1][1]
    (organize,) = (t for t in panel["transformations"] if t["id"] == "organize")
    order = organize["options"]["indexByName"]
    columns = sorted(
        {name for row in rows.values() for name in row}, key=lambda n: order.get(n, 99)
    )
    return columns, (), [[row.get(name) for name in columns] for row in rows.values()]


def _column(panel: Panel, name: str, cells: Sequence[Cell], *, is_time: bool) -> Column:
    options = options_of(panel, name)
    return Column(
        source=name,
        title=options.get("displayName", name),
        options=options,
        is_time=is_time,
        cells=tuple(cells),
    )


def _sorted(panel: Panel, columns: list[Column]) -> list[Column]:
    """Sort the rows by a column, the largest first; what is not known comes last."""
    titles = [by["displayName"] for by in panel["options"].get("sortBy", ())]
    by = next((column for column in columns if column.title in titles), None)
    if by is None:
        return columns
    places = sorted(range(len(by.cells)), key=lambda place: _order(by.cells[place]), reverse=True)
    return [
        Column(
            source=column.source,
            title=column.title,
            options=column.options,
            is_time=column.is_time,
            cells=tuple(column.cells[place] for place in places),
        )
        for column in columns
    ]


def _order(cell: Cell) -> tuple[bool, float]:
    return (True, float(cell)) if isinstance(cell, int | float) else (False, 0.0)
