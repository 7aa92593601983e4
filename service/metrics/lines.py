"""Sample lines as bytes: whole columns in a few calls, single values one by one.

Every line begins with a line feed instead of ending with one, so that lines are joined from
shared pieces without a copy per line. A value that is absent or no number has no line.

A line is put together from a head (`name{cluster="default",`), the labels of its subject
(`topic="orders",partition="0"} `) and its value. Subjects' labels are shared by all metrics of the
subject, so that a table keeps one piece per partition or commit, not one per series.
Source: prometheus.io/docs/instrumenting/exposition_formats.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import accumulate, compress
from typing import Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from rules.facts.column import Column, Int64s
from rules.names import Metric

CLOSE: Final = b"} "

_Text = TypeVar("_Text", bound=str)
Float64s = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Histogram:
    """The value of a histogram."""

    counts: Sequence[int]  # per bucket, not cumulative, by their bounds; the last one has no bound
    total: float


Values = Iterable[tuple[Mapping[str, str], float | Histogram]]  # labels of a value's own, value
Samples = dict[Metric, bytes]


def label(name: str, value: str) -> bytes:
    """Return `name="value"`, the value escaped.

    A lone surrogate, which is no valid Unicode, would make the whole page unreadable, so that it
    becomes a question mark.
    """
    escaped = value.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")
    return f'{name}="{escaped}"'.encode(errors="replace")


def shared_label(name: str, value: str) -> bytes:
    """Return `name="value",`, with which every line of a metric begins."""
    return label(name, value) + b","


def closed(pieces: Iterable[bytes]) -> list[bytes]:
    """Close each piece of labels, so that a value may follow."""
    return [piece + CLOSE for piece in pieces]


def column_lines(
    metric: Metric, shared: bytes, subjects: Sequence[bytes], column: Column, steps: int = 1
) -> bytes:
    """Return one line per known value; `subjects` are the closed labels, one per row.

    `shared` is the label with which every line begins, closed by a comma; empty for none. The column has `steps`
    per unit of the metric: 1,000 if it holds milliseconds and the metric seconds.
    """
    if not column.valid.any():
        return b""
    shown = subjects
    if not column.valid.all():
        shown = list(compress(subjects, column.valid.tolist()))
    head = f"\n{metric.name}{{".encode() + shared
    pieces = [head] * (3 * len(shown))
    pieces[1::3] = shown
    numbers = column.values[column.valid]
    pieces[2::3] = _digits(numbers if steps == 1 else numbers / steps)
    return b"".join(pieces)


def single(value: float | datetime | None) -> Values:
    """Return a value without labels of its own; none where it is absent."""
    if value is None:
        return []
    return [({}, value.timestamp() if isinstance(value, datetime) else value)]


def by_label(name: str, values: Mapping[_Text, float]) -> Values:
    """Return one value for each value of a label."""
    return [({name: text}, value) for text, value in values.items()]


def samples_of_values(values: Mapping[Metric, Values], cluster: str | None) -> Samples:
    """Return the lines of each metric; without a cluster the values have only their own labels."""
    shared = {} if cluster is None else {"cluster": cluster}
    return {
        metric: b"".join(_lines(metric, {**shared, **own}, value) for own, value in entries)
        for metric, entries in values.items()
    }


def _lines(metric: Metric, labels: Mapping[str, str], value: float | Histogram) -> bytes:
    pairs = b",".join(label(name, text) for name, text in labels.items())
    if isinstance(value, Histogram):
        return _histogram_lines(metric, pairs, value)
    return _line(metric.name, pairs, value) if math.isfinite(value) else b""


def _line(name: str, pairs: bytes, value: float) -> bytes:
    return f"\n{name}{{".encode() + pairs + CLOSE + repr(value).encode()


def _histogram_lines(metric: Metric, pairs: bytes, histogram: Histogram) -> bytes:
    """Return the lines of one histogram.

    Bounds are written as floats in every format ("1.0", never "1"), as OpenMetrics requires and
    Prometheus 3 keeps them: one series, however it is scraped.
    """
    bounds = (*map(repr, metric.buckets), "+Inf")
    lines = [
        _line(f"{metric.name}_bucket", pairs + f',le="{bound}"'.encode(), count)
        for bound, count in zip(bounds, accumulate(histogram.counts), strict=True)
    ]
    lines.append(_line(f"{metric.name}_sum", pairs, histogram.total))
    lines.append(_line(f"{metric.name}_count", pairs, sum(histogram.counts)))
    return b"".join(lines)


def _digits(values: Int64s | Float64s) -> list[bytes]:
    """Return the decimal digits of each value, which is not empty.

    One repr and one split of the whole list take a third of the time of formatting each value.
    """
    return repr(values.tolist())[1:-1].encode().split(b", ")
