"""What is usual now of chosen series, and what was measured, as the page of metrics shows it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from math import isfinite
from typing import Final

import numpy as np

from rules.baseline.unusual_values import UnusualValues
from service.metrics.lines import Values

BOUNDS: Final = ("least", "expected", "most")


@dataclass(frozen=True, slots=True, kw_only=True)
class BaselineBand:
    """The usual band of one series; numbers are in its metric's unit, None where unknown."""

    series_id: int
    metric: str  # its name in history
    topic: str | None
    partition: int | None
    group: str | None
    client_id: str | None
    least: float | None
    expected: float | None
    most: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class BaselineBands:
    """The bands of the chosen series that are shown."""

    shown: tuple[BaselineBand, ...] = ()
    left_out: int = 0  # chosen series with a band, beyond the limit
    # Of those that are shown, if they were scored lately; NaN: not known.
    values: Sequence[float] = ()
    scores: Sequence[float] = ()  # in usual deviations

    @property
    def dropped_series(self) -> int:
        """Return how many series of the page are left out."""
        return self.left_out * len(BOUNDS)

    def scored(self, unusual: UnusualValues, now: datetime) -> BaselineBands:
        """Return them with what was measured last, and its scores."""
        if not self.shown:
            return self
        ids = np.array([band.series_id for band in self.shown], np.int64)
        values, scores = unusual.values_of(ids, now)
        return replace(self, values=values.tolist(), scores=scores.tolist())


def band_values(bands: BaselineBands) -> Values:
    """Return one value for each bound that is known."""
    return [
        ({**labels, "bound": bound}, value)
        for band in bands.shown
        for labels in [dict(_labels(band))]
        for bound, value in zip(BOUNDS, (band.least, band.expected, band.most), strict=True)
        if value is not None
    ]


def scored_values(bands: BaselineBands, numbers: Sequence[float]) -> Values:
    """Return one number for each of the bands; those that are not known are left out."""
    return [
        (dict(_labels(band)), number)
        for band, number in zip(bands.shown, numbers, strict=False)
        if isfinite(number)
    ]


def _labels(band: BaselineBand) -> Iterator[tuple[str, str]]:
    yield "metric", band.metric
    if band.group is not None:
        yield "group", band.group
    if band.topic is not None:
        yield "topic", band.topic
    if band.partition is not None:
        yield "partition", str(band.partition)
    if band.client_id is not None:
        yield "client", band.client_id
