"""What the queries of a dashboard answered, as it is passed from the recording to the drawing in a JSON file.

The two run in environments of their own: this file and all that draws needs no package of the product.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

FOLDER: Final = Path(__file__).parents[2] / "build/pictures"
Cell = str | float | bool | None
Point = tuple[float, float]  # seconds since 1970-01-01 UTC, and the value, which may be NaN


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """One series of Prometheus; a single point if the query was an instant one."""

    labels: Mapping[str, str]
    points: tuple[Point, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """What PostgreSQL returned; times are milliseconds since 1970-01-01 UTC."""

    columns: tuple[str, ...]
    times: tuple[str, ...]  # the columns that hold times
    rows: tuple[tuple[Cell, ...], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The answer to one query: series or rows."""

    series: tuple[Series, ...] = ()
    rows: Rows | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """An annotation: what all graphs show."""

    color: str  # Grafana's name of it
    step: float  # seconds: points that are no further apart belong together
    series: tuple[Series, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Answers:
    """All answers of one dashboard over a time range, in seconds since 1970-01-01 UTC."""

    start: float
    end: float
    chosen: Mapping[str, str]  # the values of the dashboard's variables, as they are shown
    panels: Mapping[str, Mapping[str, Answer]]  # by number of the panel, then by refId
    marks: tuple[Mark, ...]  # of the annotations that are shown at first


def path_of(uid: str) -> Path:
    """Return where a dashboard's answers are."""
    return FOLDER / f"{uid}.json"


def encode(answers: Answers) -> str:
    """Return a dashboard's answers as JSON."""
    return json.dumps(dataclasses.asdict(answers))


def decode(text: str) -> Answers:
    """Return a dashboard's answers from their JSON."""
    document = json.loads(text)
    return Answers(
        start=document["start"],
        end=document["end"],
        chosen=document["chosen"],
        panels={
            number: {ref: _answer(answer) for ref, answer in queries.items()}
            for number, queries in document["panels"].items()
        },
        marks=tuple(
            Mark(color=mark["color"], step=mark["step"], series=_series(mark["series"]))
            for mark in document["marks"]
        ),
    )


def _answer(value: Mapping[str, Any]) -> Answer:
    rows = value["rows"]
    return Answer(
        series=_series(value["series"]),
        rows=None
        if rows is None
        else Rows(
            columns=tuple(rows["columns"]),
            times=tuple(rows["times"]),
            rows=tuple(map(tuple, rows["rows"])),
        ),
    )


def _series(values: list[Mapping[str, Any]]) -> tuple[Series, ...]:
    return tuple(
        Series(labels=value["labels"], points=tuple((t, v) for t, v in value["points"]))
        for value in values
    )
