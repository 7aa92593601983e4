"""What panels have to show: claims about the answers of a real Prometheus to the queries of dashboards.

A claim names a query as `every_expression` does, the series of its answer, and the bounds of the value that
a fault makes true there. The claims are in busy_panels.py and tests/faults/panels.py.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from math import inf
from typing import Any, Final, Generic, TypeVar

from rules.names import CLUSTER_LABELS
from service.runtime.clock import wait_until
from tests.integration.serve.scraping import Prometheus
from tests.unit.dashboards.given_dashboards import every_expression, with_ranges

T = TypeVar("T")
T_contra = TypeVar("T_contra", contravariant=True)
Series = dict[str, Any]  # labels, and the number under `value`
Before = Mapping[str, list[Series]]  # by query
Bounds = tuple[float, float]  # inclusive
EXPRESSIONS: Final = dict(every_expression())
SHOWN_SECONDS: Final = 60.0  # a round, a scrape, and a busy machine
JUST_ABOVE_ZERO: Final = (1e-9, inf)
CLUSTER: Final = dict.fromkeys(CLUSTER_LABELS, "default")


def exactly(number: float) -> Bounds:
    return number, number


def at_least(number: float) -> Bounds:
    return number, inf


def labelled(**labels: str) -> Callable[[object], Mapping[str, str]]:
    return lambda _: labels


def number(bounds: Bounds) -> Callable[[object], Bounds]:
    return lambda _: bounds


IS_ONE: Final = number(exactly(1))
IS_THERE: Final = number(at_least(1))
IS_ABOVE_ZERO: Final = number(JUST_ABOVE_ZERO)


def nothing(_: object) -> Mapping[str, str]:
    return {}


@dataclass(frozen=True, slots=True)
class Claim(Generic[T_contra]):
    """What one query of a panel or an annotation has to answer while something is true."""

    query: str  # as `every_expression` names it
    bounds: Callable[[T_contra], Bounds]  # of the sum of the series that have these labels
    labels: Callable[[T_contra], Mapping[str, str]] = nothing
    # Values of the dashboard's variables; of the others, all are chosen.
    chosen: Callable[[T_contra], Mapping[str, str]] = nothing
    # Whether the value has risen by so much at least since before: others than this truth count too.
    grows: bool = False


def with_choice(expression: str, chosen: Mapping[str, str]) -> str:
    """Return an expression with values chosen in a dashboard's variables, and all of the others."""

    def matcher(variable: re.Match[str]) -> str:
        operator, name = variable.groups()
        return f'{operator}"{chosen[name] if operator == "=" else chosen.get(name, ".+")}"'

    return re.sub(r'(=~?)"\$(\w+)"', matcher, with_ranges(expression))


def answers_before(server: Prometheus, claims: Iterable[Claim[T]]) -> Before:
    """Return what is answered now where a claim is about a rise."""
    return {
        claim.query: server.query(with_choice(EXPRESSIONS[claim.query], {}))
        for claim in claims
        if claim.grows
    }


def assert_shown(
    server: Prometheus, claims: Iterable[Claim[T]], truth: T, before: Before | None = None
) -> None:
    """Wait until each query answers what the truth makes true; fail where one does not."""
    for claim in claims:
        expression = with_choice(EXPRESSIONS[claim.query], claim.chosen(truth))
        labels, (low, high) = claim.labels(truth), claim.bounds(truth)
        if claim.grows:
            assert before is not None, claim.query
            low, high = low + sum(_values(before[claim.query], labels)), inf

        def is_shown() -> bool:
            values = _values(server.query(expression), labels)  # noqa: B023 - called in this turn
            return bool(values) and low <= sum(values) <= high  # noqa: B023

        is_in_time = wait_until(is_shown, timeout_seconds=SHOWN_SECONDS, poll_seconds=0.2)
        assert is_in_time, (claim.query, labels, (low, high), server.query(expression), truth)


def _values(answer: Iterable[Series], labels: Mapping[str, str]) -> list[float]:
    """Return the values of the series that have these labels."""
    return [series["value"] for series in answer if labels.items() <= series.items()]
