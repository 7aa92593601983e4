"""What is usual now of chosen series, as the page of metrics shows it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from service.metrics.lines import Values

BOUNDS: Final = ("least", "expected", "most")


@dataclass(frozen=True, slots=True, kw_only=True)
class BaselineBand:
    """The usual band of one series; numbers are in its metric's unit, None where unknown."""

    metric: str  # its name in history
    topic: str | None
    partition: int | None
    group: str | None
    least: float | None
    expected: float | None
    most: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class BaselineBands:
    """The bands of the chosen series that are shown."""

    shown: tuple[BaselineBand, ...] = ()
    left_out: int = 0  # chosen series with a band, beyond the limit

    @property
    def dropped_series(self) -> int:
        """Return how many series of the page are left out."""
        return self.left_out * len(BOUNDS)


def band_values(bands: BaselineBands) -> Values:
    """Return one value for each bound that is known."""
    return [
        ({**labels, "bound": bound}, value)
        for band in bands.shown
        for labels in [dict(_labels(band))]
        for bound, value in zip(BOUNDS, (band.least, band.expected, band.most), strict=True)
        if value is not None
    ]


def _labels(band: BaselineBand) -> Iterator[tuple[str, str]]:
    yield "metric", band.metric
    if band.group is not None:
        yield "group", band.group
    if band.topic is not None:
        yield "topic", band.topic
    if band.partition is not None:
        yield "partition", str(band.partition)
