"""Asks Prometheus and PostgreSQL what a dashboard asks them, over a time range."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, Final

from sqlalchemy import Engine

from dashboards.files import DashboardFile
from tests.integration.serve.scraping import Prometheus
from tests.pictures.answers import Answer, Answers, Cell, Mark, Rows, Series
from tests.unit.dashboards.given_dashboards import variables_of, with_sql_values, with_values

SCRAPE_SECONDS: Final = 2
POINTS: Final = 700  # of a graph, about one per pixel
ALL: Final = "All"


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """The time range that is shown, in seconds since 1970-01-01 UTC."""

    start: float
    end: float

    @property
    def step(self) -> int:
        """Return the seconds between two points: no less than a scrape."""
        return max(SCRAPE_SECONDS, math.ceil((self.end - self.start) / POINTS))

    @property
    def ranges(self) -> Mapping[str, str]:
        """Return what Grafana puts in the place of its variables of time."""
        rate = max(self.step + SCRAPE_SECONDS, 4 * SCRAPE_SECONDS)
        return {
            "$__rate_interval": f"{rate}s",
            "$__range": f"{math.ceil(self.end - self.start)}s",
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Sources:
    """Where answers come from: Prometheus, and PostgreSQL as the role of dashboards."""

    prometheus: Prometheus
    postgres: Engine


def record(
    dashboard: DashboardFile, sources: Sources, window: Window, chosen: Mapping[str, str]
) -> Answers:
    """Return the answers to all queries of a dashboard; `chosen` has what a variable of one value is set to."""
    document = dashboard.document
    lists = {
        name: variable
        for name, variable in variables_of(document).items()
        if variable["type"] == "query"
    }
    single = {name: chosen[name] for name, variable in lists.items() if not variable["multi"]}
    queries = _Queries(sources, window, single)
    return Answers(
        start=window.start,
        end=window.end,
        chosen={variable["label"]: single.get(name, ALL) for name, variable in lists.items()},
        panels={
            str(panel["id"]): {
                target["refId"]: queries.target(target) for target in panel["targets"]
            }
            for panel in document["panels"]
            if panel["type"] != "row"
        },
        marks=tuple(queries.marks(document)),
    )


class _Queries:
    def __init__(self, sources: Sources, window: Window, chosen: Mapping[str, str]) -> None:
        self._sources, self._window, self._chosen = sources, window, chosen

    def target(self, target: Mapping[str, Any]) -> Answer:
        if "rawSql" in target:
            return Answer(rows=self._rows(target["rawSql"]))
        if target.get("instant"):
            return Answer(series=self._instant(target["expr"]))
        return Answer(series=self._range(target["expr"], self._window.step))

    def marks(self, document: Mapping[str, Any]) -> Iterator[Mark]:
        for annotation in document["annotations"]["list"]:
            if annotation["enable"]:
                step = int(annotation["step"].removesuffix("s"))
                yield Mark(
                    color=annotation["iconColor"],
                    step=step,
                    series=self._range(annotation["expr"], step),
                )

    def _expression(self, expression: str) -> str:
        return with_values(expression, self._chosen, self._window.ranges)

    def _instant(self, expression: str) -> tuple[Series, ...]:
        result = self._sources.prometheus.ask(
            "/api/v1/query", query=self._expression(expression), time=str(self._window.end)
        )["result"]
        return tuple(
            Series(labels=_labels(series["metric"]), points=(_point(series["value"]),))
            for series in result
        )

    def _range(self, expression: str, step: int) -> tuple[Series, ...]:
        """Ask for a range; like Grafana's, its points are at multiples of the step."""
        result = self._sources.prometheus.ask(
            "/api/v1/query_range",
            query=self._expression(expression),
            start=str(math.ceil(self._window.start / step) * step),
            end=str(math.floor(self._window.end / step) * step),
            step=str(step),
        )["result"]
        return tuple(
            Series(labels=_labels(series["metric"]), points=tuple(map(_point, series["values"])))
            for series in result
        )

    def _rows(self, sql: str) -> Rows:
        start, end = (
            datetime.fromtimestamp(at, UTC) for at in (self._window.start, self._window.end)
        )
        expanded = with_sql_values(sql, start, end, self._chosen)
        with self._sources.postgres.connect() as connection:
            answer = connection.exec_driver_sql(expanded.replace("%", "%%"))
            columns, rows = tuple(answer.keys()), [tuple(row) for row in answer]
        times = {
            name
            for row in rows
            for name, cell in zip(columns, row, strict=True)
            if isinstance(cell, datetime)
        }
        return Rows(
            columns=columns,
            times=tuple(sorted(times)),
            rows=tuple(tuple(map(cell_of, row)) for row in rows),
        )


def _labels(metric: Mapping[str, str]) -> Mapping[str, str]:
    return {name: value for name, value in metric.items() if name != "__name__"}


def _point(pair: tuple[float, str]) -> tuple[float, float]:
    return float(pair[0]), float(pair[1])


def cell_of(value: object) -> Cell:
    """Return a value of PostgreSQL as Grafana gets it; what is none of these is text."""
    if isinstance(value, datetime):
        return value.timestamp() * 1000
    if isinstance(value, Decimal):
        return float(value)
    if value is None or isinstance(value, str | int | float | bool):
        return value
    return str(value)
