"""Composes PromQL from the metrics of `rules.names`: no metric is written as text, and no label that it lacks.

An expression knows which labels its result has, so that an aggregation by a label that is not there
fails where it is written. It knows what it is composed of, too: `recorded.py` puts recorded series in the
place of aggregations.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final

from rules.names import Metric, MetricType

TARGET_LABELS: Final = frozenset({"job", "instance"})  # of Prometheus, on every series
RATE: Final = "$__rate_interval"  # at least four scrapes, whatever the zoom
RANGE: Final = "$__range"  # all that is shown
MINUTE: Final = "1m"


@dataclass(frozen=True, slots=True)
class Expression:
    """A PromQL expression and the labels of its result."""

    parts: tuple[str | Expression, ...]  # what its text consists of
    labels: frozenset[str]

    @property
    def text(self) -> str:
        """Return the expression as Prometheus reads it."""
        return _text(self.parts)

    @property
    def bare_text(self) -> str:
        """Return it without the parentheses around it, for a place that has its own."""
        is_wrapped = (self.parts[0], self.parts[-1]) == ("(", ")")
        return _text(self.parts[1:-1]) if is_wrapped else self.text


def _text(parts: Iterable[str | Expression]) -> str:
    return "".join(part if isinstance(part, str) else part.text for part in parts)


@dataclass(frozen=True, slots=True)
class Matcher:
    """A condition on a label."""

    label: str
    operator: str  # =, !=, =~ or !~
    value: str

    def __str__(self) -> str:
        """Return the matcher as PromQL writes it."""
        return f'{self.label}{self.operator}"{self.value}"'


@dataclass(frozen=True, slots=True)
class Selection(Expression):
    """The series of one name that match."""

    name: str
    matchers: tuple[Matcher, ...]


@dataclass(frozen=True, slots=True)
class Aggregation(Expression):
    """One series per combination of labels, of many."""

    operator: str
    of: Expression
    by: tuple[str, ...]


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
        return Expression(("time() - ", timestamp), timestamp.labels)

    def rate(self, metric: Metric, *matchers: Matcher, over: str = RATE) -> Expression:
        """Return the increase of a counter per second.

        Raises:
            ValueError: the metric is no counter, or lacks a label.
        """
        return self._over("rate", self._counter(metric, matchers), over)

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
        return self._over("rate", replace(buckets, labels=buckets.labels | {"le"}), over)

    def speed(self, metric: Metric, *matchers: Matcher, over: str = RATE) -> Expression:
        """Return how fast a gauge of offsets advances, per second; negative where it goes back.

        `rate` would take a truncated log for a counter that began again, and add all of its offsets.
        """
        return self._over("deriv", self.value(metric, *matchers), over)

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
        return select(name, labels, tuple(all_matchers))

    def _over(self, function: str, series: Expression, over: str) -> Expression:
        return Expression((f"{function}(", series, f"[{over}])"), series.labels)


def select(name: str, labels: frozenset[str], matchers: tuple[Matcher, ...]) -> Selection:
    """Return the series of a name that match; without matchers, all of them."""
    text = f"{name}{{{', '.join(map(str, matchers))}}}" if matchers else name
    return Selection((text,), labels, name, matchers)


def aggregate(operator: str, expression: Expression, by: tuple[str, ...]) -> Aggregation:
    """Return one series per combination of labels.

    Raises:
        ValueError: the expression lacks a label.
    """
    lacking = set(by) - expression.labels - TARGET_LABELS
    if lacking:
        raise ValueError(f"{expression.text} has no label {', '.join(sorted(lacking))}")
    grouping = f" by ({', '.join(by)}) " if by else ""
    parts = (f"{operator}{grouping}(", expression, ")")
    return Aggregation(parts, frozenset(by), operator, expression, by)


def total(expression: Expression, *by: str) -> Expression:
    """Return the sum per combination of labels."""
    return aggregate("sum", expression, by)


def largest(expression: Expression, *by: str) -> Expression:
    """Return the maximum per combination of labels."""
    return aggregate("max", expression, by)


def smallest(expression: Expression, *by: str) -> Expression:
    """Return the minimum per combination of labels."""
    return aggregate("min", expression, by)


def count(expression: Expression, *by: str) -> Expression:
    """Return the number of series per combination of labels."""
    return aggregate("count", expression, by)


def top(number: int, expression: Expression) -> Expression:
    """Return the series with the largest values, at every point in time."""
    return Expression((f"topk({number}, ", expression, ")"), expression.labels)


def among(expression: Expression, selected: Expression) -> Expression:
    """Return the series whose labels the selected ones have too; both have the same labels."""
    return _binary(expression, "and", selected)


def quantile(share: float, buckets: Expression, *by: str) -> Expression:
    """Return a quantile of a histogram, from the rates of its buckets."""
    summed = total(buckets, "le", *by)
    return Expression((f"histogram_quantile({share}, ", summed, ")"), frozenset(by))


def ratio(part: Expression, whole: Expression) -> Expression:
    """Return a part divided by the whole; both have the same labels."""
    return _binary(part, "/", whole)


def plus(first: Expression, second: Expression) -> Expression:
    """Return the sum of two expressions with the same labels."""
    return _binary(first, "+", second)


def minus(first: Expression, second: Expression) -> Expression:
    """Return the difference of two expressions with the same labels."""
    return _binary(first, "-", second)


def is_equal(expression: Expression, number: int) -> Expression:
    """Return 1 where the value is a number, 0 where not."""
    return Expression(("(", expression, f" == bool {number})"), expression.labels)


def times(first: Expression, second: Expression) -> Expression:
    """Return the product of two expressions with the same labels."""
    return _binary(first, "*", second)


def where_equal(expression: Expression, number: int) -> Expression:
    """Return only the series whose value is a number."""
    return Expression((expression, f" == {number}"), expression.labels)


def where_below(first: Expression, second: Expression) -> Expression:
    """Return only the series of the first that are less than the second; both have the same labels."""
    return _binary(first, "<", second)


def where_above(expression: Expression, number: float) -> Expression:
    """Return only the series whose value is above a number."""
    return Expression((expression, f" > {number:g}"), expression.labels)


def or_zero(expression: Expression, reporting: Expression) -> Expression:
    """Return 0 where there are no series although the service reports, and nothing where it does not."""
    if reporting.labels != expression.labels:
        raise ValueError(f"{reporting.text} has other labels than {expression.text}")
    return Expression((expression, " or 0 * ", reporting), expression.labels)


def _binary(first: Expression, operator: str, second: Expression) -> Expression:
    if first.labels != second.labels:
        raise ValueError(f"{first.text} and {second.text} differ in their labels")
    return Expression(("(", first, f" {operator} ", second, ")"), first.labels)
