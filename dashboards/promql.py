"""Composes PromQL from the metrics of `rules.names`: no metric is written as text, and no label that it lacks.

An expression knows which labels its result has, so that an aggregation by a label that is not there
fails where it is written.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from rules.names import Metric, MetricType

TARGET_LABELS: Final = frozenset({"job", "instance"})  # of Prometheus, on every series
RATE: Final = "$__rate_interval"  # at least four scrapes, whatever the zoom
RANGE: Final = "$__range"  # all that is shown
MINUTE: Final = "1m"


@dataclass(frozen=True, slots=True)
class Expression:
    """A PromQL expression and the labels of its result."""

    text: str
    labels: frozenset[str]


@dataclass(frozen=True, slots=True)
class Matcher:
    """A condition on a label."""

    label: str
    operator: str  # =, !=, =~ or !~
    value: str

    def __str__(self) -> str:
        """Return the matcher as PromQL writes it."""
        return f'{self.label}{self.operator}"{self.value}"'


def equals(label: str, value: str) -> Matcher:
    """Match series whose label has a value."""
    return Matcher(label, "=", value)


def differs(label: str, value: str) -> Matcher:
    """Match series whose label has another value."""
    return Matcher(label, "!=", value)


def any_of(label: str, *values: str) -> Matcher:
    """Match series whose label has one of some values."""
    return Matcher(label, "=~", "|".join(values))


@dataclass(frozen=True, slots=True)
class Scope:
    """Selects series by the variables of a dashboard: each one that the metric has as a label."""

    variables: tuple[str, ...]
    operator: str = "=~"  # of a variable that may have several values; = where it has one

    def value(self, metric: Metric, *matchers: Matcher) -> Expression:
        """Return a gauge.

        Raises:
            ValueError: the metric is a counter or a histogram, or lacks a label.
        """
        if metric.type is not MetricType.GAUGE:
            raise ValueError(f"{metric.name} is a {metric.type}: use rate or increase")
        return self._series(metric, metric.name, matchers)

    def age(self, metric: Metric, *matchers: Matcher) -> Expression:
        """Return how many seconds ago the time was that a gauge holds."""
        timestamp = self.value(metric, *matchers)
        return Expression(f"time() - {timestamp.text}", timestamp.labels)

    def rate(self, metric: Metric, *matchers: Matcher) -> Expression:
        """Return the increase of a counter per second.

        Raises:
            ValueError: the metric is no counter, or lacks a label.
        """
        return self._over("rate", self._counter(metric, matchers), RATE)

    def increase(self, metric: Metric, *matchers: Matcher, over: str = RANGE) -> Expression:
        """Return the increase of a counter over a time; errors are those of `rate`."""
        return self._over("increase", self._counter(metric, matchers), over)

    def bucket_rate(self, metric: Metric, *matchers: Matcher, over: str = RATE) -> Expression:
        """Return the increase per second of every bucket of a histogram.

        Raises:
            ValueError: the metric is no histogram, or lacks a label.
        """
        if metric.type is not MetricType.HISTOGRAM:
            raise ValueError(f"{metric.name} is a {metric.type}, and no histogram")
        buckets = self._series(metric, metric.series[0], matchers)
        return self._over("rate", Expression(buckets.text, buckets.labels | {"le"}), over)

    def speed(self, metric: Metric, *matchers: Matcher) -> Expression:
        """Return how fast a gauge of offsets advances, per second; negative where it goes back.

        `rate` would take a truncated log for a counter that began again, and add all of its offsets.
        """
        return self._over("deriv", self.value(metric, *matchers), RATE)

    def changes(self, metric: Metric, *matchers: Matcher, over: str = RANGE) -> Expression:
        """Return how often a gauge changed within a time."""
        return self._over("changes", self.value(metric, *matchers), over)

    def _counter(self, metric: Metric, matchers: tuple[Matcher, ...]) -> Expression:
        if metric.type is not MetricType.COUNTER:
            raise ValueError(f"{metric.name} is a {metric.type}, and no counter")
        return self._series(metric, metric.name, matchers)

    def _series(self, metric: Metric, name: str, matchers: tuple[Matcher, ...]) -> Expression:
        labels = frozenset(metric.labels)
        of_variables = [
            Matcher(variable, self.operator, f"${variable}")
            for variable in self.variables
            if variable in labels | TARGET_LABELS
        ]
        all_matchers = [*of_variables, *matchers]
        lacking = {matcher.label for matcher in all_matchers} - labels - TARGET_LABELS
        if lacking:
            raise ValueError(f"{metric.name} has no label {', '.join(sorted(lacking))}")
        return Expression(f"{name}{{{', '.join(map(str, all_matchers))}}}", labels)

    def _over(self, function: str, series: Expression, over: str) -> Expression:
        return Expression(f"{function}({series.text}[{over}])", series.labels)


def total(expression: Expression, *by: str) -> Expression:
    """Return the sum per combination of labels."""
    return _aggregate("sum", expression, by)


def largest(expression: Expression, *by: str) -> Expression:
    """Return the maximum per combination of labels."""
    return _aggregate("max", expression, by)


def smallest(expression: Expression, *by: str) -> Expression:
    """Return the minimum per combination of labels."""
    return _aggregate("min", expression, by)


def count(expression: Expression, *by: str) -> Expression:
    """Return the number of series per combination of labels."""
    return _aggregate("count", expression, by)


def top(number: int, expression: Expression) -> Expression:
    """Return the series with the largest values, at every point in time."""
    return Expression(f"topk({number}, {expression.text})", expression.labels)


def among(expression: Expression, selected: Expression) -> Expression:
    """Return the series whose labels the selected ones have too; both have the same labels."""
    return _binary(expression, "and", selected)


def quantile(share: float, buckets: Expression, *by: str) -> Expression:
    """Return a quantile of a histogram, from the rates of its buckets."""
    summed = total(buckets, "le", *by)
    return Expression(f"histogram_quantile({share}, {summed.text})", frozenset(by))


def ratio(part: Expression, whole: Expression) -> Expression:
    """Return a part divided by the whole; both have the same labels."""
    return _binary(part, "/", whole)


def plus(first: Expression, second: Expression) -> Expression:
    """Return the sum of two expressions with the same labels."""
    return _binary(first, "+", second)


def minus(first: Expression, second: Expression) -> Expression:
    """Return the difference of two expressions with the same labels."""
    return _binary(first, "-", second)


def is_below(first: Expression, second: Expression) -> Expression:
    """Return 1 where the first is less than the second, 0 where not; both have the same labels."""
    return _binary(first, "< bool", second)


def is_equal(expression: Expression, number: int) -> Expression:
    """Return 1 where the value is a number, 0 where not."""
    return Expression(f"({expression.text} == bool {number})", expression.labels)


def where_above(expression: Expression, number: float) -> Expression:
    """Return only the series whose value is above a number."""
    return Expression(f"{expression.text} > {number:g}", expression.labels)


def or_zero(expression: Expression, reporting: Expression) -> Expression:
    """Return 0 where there are no series although the service reports, and nothing where it does not."""
    if reporting.labels != expression.labels:
        raise ValueError(f"{reporting.text} has other labels than {expression.text}")
    return Expression(f"{expression.text} or 0 * {reporting.text}", expression.labels)


def _aggregate(function: str, expression: Expression, by: tuple[str, ...]) -> Expression:
    lacking = set(by) - expression.labels - TARGET_LABELS
    if lacking:
        raise ValueError(f"{expression.text} has no label {', '.join(sorted(lacking))}")
    grouping = f" by ({', '.join(by)}) " if by else ""
    return Expression(f"{function}{grouping}({expression.text})", frozenset(by))


def _binary(first: Expression, operator: str, second: Expression) -> Expression:
    if first.labels != second.labels:
        raise ValueError(f"{first.text} and {second.text} differ in their labels")
    return Expression(f"({first.text} {operator} {second.text})", first.labels)
