"""Dashboards for a Prometheus that has the recording rules: graphs read recorded series where there are some.

A graph asks for hundreds of points of each of 10,000s of partitions. A number or a table asks for one point of
each, which is fast; so they go on reading what was scraped last.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Final

from dashboards.panels import Board, Graph, Panel, Query, Section, Series
from dashboards.prometheus.recording import RECORDING, WINDOW, RecordedAggregation
from dashboards.promql import (
    RATE,
    TARGET_LABELS,
    Aggregation,
    Expression,
    Selection,
    aggregate,
    select,
)


def _series() -> Mapping[tuple[str, str], list[RecordedAggregation]]:
    """Return recorded series by operator and expression, the coarsest first."""
    series: dict[tuple[str, str], list[RecordedAggregation]] = {}
    for rule in reversed(RECORDING.rules):
        if isinstance(rule, RecordedAggregation):
            series.setdefault((rule.operator, rule.of), []).append(rule)
    return series


SERIES: Final = _series()


def with_recorded(board: Board) -> Board:
    """Return a dashboard whose graphs read recorded series."""
    return replace(board, sections=tuple(map(_section, board.sections)))


def from_recorded(expression: Expression) -> Expression:
    """Return an expression that has recorded series in the place of aggregations, where there are some."""
    if isinstance(expression, Selection):
        return expression
    if isinstance(expression, Aggregation) and (recorded := _recorded(expression)):
        return aggregate(expression.operator, recorded, expression.by)
    parts = (part if isinstance(part, str) else from_recorded(part) for part in expression.parts)
    return Expression(tuple(parts), expression.labels)


def _recorded(aggregation: Aggregation) -> Selection | None:
    """Return the recorded series that an aggregation may read, with the same matchers."""
    matchers = {selection.matchers for selection in _selections(aggregation.of)}
    if len(matchers) != 1:
        return None
    (own,) = matchers
    needed = {*aggregation.by, *(matcher.label for matcher in own)} - TARGET_LABELS
    for rule in SERIES.get((aggregation.operator, _definition(aggregation.of)), ()):
        if needed <= rule.labels:
            return select(rule.record, rule.labels, own)
    return None


def _selections(expression: Expression) -> Iterator[Selection]:
    if isinstance(expression, Selection):
        yield expression
    for part in expression.parts:
        if isinstance(part, Expression):
            yield from _selections(part)


def _definition(expression: Expression) -> str:
    """Return the text of an expression of all series, over the window of recording rules."""
    if isinstance(expression, Selection):
        return expression.name
    parts = (
        part.replace(RATE, WINDOW) if isinstance(part, str) else _definition(part)
        for part in expression.parts
    )
    return "".join(parts)


def _section(section: Section) -> Section:
    return replace(section, panels=tuple(map(_panel, section.panels)))


def _panel(panel: Panel) -> Panel:
    if not isinstance(panel, Graph):
        return panel
    return replace(panel, queries=tuple(map(_query, panel.queries)))


def _query(query: Query) -> Query:
    if not isinstance(query, Series):
        return query
    return replace(query, expression=from_recorded(query.expression))
