"""Expressions of PromQL that several rules are made of."""

from __future__ import annotations

import re
import textwrap
from typing import Final

from rules.names import Metric

TARGET_LABELS: Final = ("job", "instance")  # which Prometheus adds to every sample of a target
_LABEL_OF_MATCHER: Final = re.compile(r"\w+")


def select(metric: Metric, *matchers: str) -> str:
    """Return the selector of a metric's series, such as `name{rule="partition_offline"}`.

    Raises:
        ValueError: the metric has no such label.
    """
    for matcher in matchers:
        label = _LABEL_OF_MATCHER.match(matcher)
        if label is None or label[0] not in (*metric.labels, *TARGET_LABELS):
            raise ValueError(f"{metric.name} has no label for the matcher {matcher}")
    return f"{metric.name}{{{', '.join(matchers)}}}" if matchers else metric.name


def aggregate(operator: str, labels: str, expr: str) -> str:
    """Return an aggregation that drops labels; an expression of several lines is indented."""
    inner = f"\n{textwrap.indent(expr, '  ')}\n" if "\n" in expr else expr
    return f"{operator} without ({labels}) ({inner})"
