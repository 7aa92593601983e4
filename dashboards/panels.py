"""What a dashboard consists of, as values: `house.py` gives it the form that Grafana reads.

A panel has a number, which links to it use: it is lasting, and a panel that is removed leaves its number unused.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from dashboards.promql import Expression


class Color(StrEnum):
    """Colors by what they mean; the names are Grafana's, which has none for grey."""

    GOOD = "green"
    NEUTRAL = "text"
    ATTENTION = "orange"
    BAD = "red"
    UNKNOWN = "#6e7687"


@dataclass(frozen=True, slots=True)
class Step:
    """From which value on a color applies."""

    value: float
    color: Color


GOOD_AT_ZERO: Final = (Step(0, Color.GOOD), Step(1, Color.BAD))
ATTENTION_ABOVE_ZERO: Final = (Step(0, Color.GOOD), Step(1, Color.ATTENTION))
BAD_AT_ZERO: Final = (Step(0, Color.BAD), Step(1, Color.GOOD))


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """A link from a value, a row or a series."""

    title: str
    url: str


@dataclass(frozen=True, slots=True)
class Series:
    """What Prometheus answers over the time that is shown."""

    expression: Expression
    legend: str = ""


@dataclass(frozen=True, slots=True)
class Latest:
    """What Prometheus answers for the end of the time that is shown."""

    expression: Expression
    legend: str = ""


@dataclass(frozen=True, slots=True)
class SqlRows:
    """What PostgreSQL answers, as a table."""

    sql: str


@dataclass(frozen=True, slots=True)
class SqlSeries:
    """What PostgreSQL answers as series: the column `time`, and a column for each."""

    sql: str


Query = Series | Latest | SqlRows | SqlSeries


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """What all panels have. Width is in 24ths of the page, height in rows of 30 pixels."""

    number: int
    title: str
    description: str
    unit: str  # as Grafana names it: grafana_foundation_sdk.models.units
    queries: tuple[Query, ...]
    width: int = 12
    height: int = 8
    steps: tuple[Step, ...] = ()
    links: tuple[Link, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Stat(Panel):
    """One number, or one per series."""

    width: int = 4
    height: int = 4
    words: Mapping[str, tuple[str, Color]] = field(default_factory=dict)  # value -> text


@dataclass(frozen=True, slots=True, kw_only=True)
class Graph(Panel):
    """Series over time."""

    is_stacked: bool = False
    band: tuple[str, str] | None = None  # two series with what lies between them filled


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A column of a table."""

    source: str  # a label, Value #A for the first query and so on, or a column of SQL
    title: str
    unit: str = ""
    steps: tuple[Step, ...] = ()
    words: Mapping[str, tuple[str, Color]] = field(default_factory=dict)
    links: tuple[Link, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Table(Panel):
    """Rows; the answers of several Prometheus queries are merged by their labels."""

    columns: tuple[Column, ...]
    unit: str = "short"  # of the columns that have none
    width: int = 24
    height: int = 9
    sorted_by: str = ""  # the title of a column, the largest first


@dataclass(frozen=True, slots=True, kw_only=True)
class Heatmap(Panel):
    """The buckets of a histogram over time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StateTimeline(Panel):
    """States over time, a line per series."""

    words: Mapping[str, tuple[str, Color]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """Panels under a heading."""

    title: str
    panels: tuple[Panel, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Annotation:
    """Events that all graphs of a dashboard show."""

    name: str
    expression: Expression
    text: str  # with {{label}}
    color: Color
    is_shown: bool = True  # at first


@dataclass(frozen=True, slots=True, kw_only=True)
class Board:
    """One dashboard: the question that it answers, from the symptom to the cause."""

    uid: str  # lasting: links use it
    title: str
    question: str
    variables: tuple[str, ...]  # names of `variables.py`
    sections: tuple[Section, ...]
    annotations: tuple[Annotation, ...] = ()
    hours: int = 6  # that are shown at first
