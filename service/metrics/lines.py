"""Sample lines as bytes: whole columns in a few calls, single values one by one.

Every line begins with its line feed instead of ending with one, so that lines are joined from
shared pieces without a copy per line. A value that is absent or no number has no line.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import compress

from rules.facts.column import Column, Int64s
from rules.names import Metric
from service.metrics.labels import CLOSE, label


def column_lines(metric: Metric, cluster: str, subjects: Sequence[bytes], column: Column) -> bytes:
    """Return one line per known value; `subjects` are the closed labels, one per row."""
    if not column.valid.any():
        return b""
    shown = subjects
    if not column.valid.all():
        shown = list(compress(subjects, column.valid.tolist()))
    head = f"\n{metric.name}{{".encode() + label("cluster", cluster) + b","
    pieces = [head] * (3 * len(shown))
    pieces[1::3] = shown
    pieces[2::3] = _digits(column.values[column.valid])
    return b"".join(pieces)


def line(metric: Metric, labels: Mapping[str, str], value: float) -> bytes:
    """Return the line of one value, or nothing for a value that is no finite number."""
    if not math.isfinite(value):
        return b""
    pairs = b",".join(label(name, text) for name, text in labels.items())
    return f"\n{metric.name}{{".encode() + pairs + CLOSE + repr(value).encode()


def _digits(values: Int64s) -> list[bytes]:
    """Return the decimal digits of each value, which is not empty.

    One repr and one split of the whole list take a third of the time of formatting each value.
    """
    return repr(values.tolist())[1:-1].encode().split(b", ")
