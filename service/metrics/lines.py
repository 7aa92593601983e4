"""Sample lines as bytes: whole columns in a few calls, single values one by one.

Every line begins with a line feed instead of ending with one, so that lines are joined from
shared pieces without a copy per line. A value that is absent or no number has no line.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import accumulate, compress

import numpy as np
from numpy.typing import NDArray

from rules.facts.column import Column, Int64s
from rules.names import Metric
from service.metrics.labels import CLOSE, label

Float64s = NDArray[np.float64]


def column_lines(
    metric: Metric, cluster: str, subjects: Sequence[bytes], column: Column, steps: int = 1
) -> bytes:
    """Return one line per known value; `subjects` are the closed labels, one per row.

    The column has `steps` per unit of the metric: 1,000 if it holds milliseconds and the metric seconds.
    """
    if not column.valid.any():
        return b""
    shown = subjects
    if not column.valid.all():
        shown = list(compress(subjects, column.valid.tolist()))
    head = f"\n{metric.name}{{".encode() + label("cluster", cluster) + b","
    pieces = [head] * (3 * len(shown))
    pieces[1::3] = shown
    numbers = column.values[column.valid]
    pieces[2::3] = _digits(numbers if steps == 1 else numbers / steps)
    return b"".join(pieces)


def line(metric: Metric, labels: Mapping[str, str], value: float) -> bytes:
    """Return the line of one value, or nothing for a value that is no finite number."""
    if not math.isfinite(value):
        return b""
    pairs = b",".join(label(name, text) for name, text in labels.items())
    return f"\n{metric.name}{{".encode() + pairs + CLOSE + repr(value).encode()


def histogram_lines(
    metric: Metric, labels: Mapping[str, str], counts: Sequence[int], total: float
) -> bytes:
    """Return the lines of one histogram; `counts` are per bucket, not cumulative, by their bounds.

    The last bucket has no bound. Bounds are written as floats in every format ("1.0", never "1"),
    as OpenMetrics requires and Prometheus 3 keeps them: one series, however it is scraped.
    """
    pairs = b",".join(label(name, text) for name, text in labels.items())
    bounds = (*map(repr, metric.buckets), "+Inf")
    lines = [
        f"\n{metric.name}_bucket{{".encode() + pairs + f',le="{bound}"}} {count}'.encode()
        for bound, count in zip(bounds, accumulate(counts), strict=True)
    ]
    for part, value in (("sum", total), ("count", sum(counts))):
        lines.append(f"\n{metric.name}_{part}{{".encode() + pairs + CLOSE + repr(value).encode())
    return b"".join(lines)


def _digits(values: Int64s | Float64s) -> list[bytes]:
    """Return the decimal digits of each value, which is not empty.

    One repr and one split of the whole list take a third of the time of formatting each value.
    """
    return repr(values.tolist())[1:-1].encode().split(b", ")
