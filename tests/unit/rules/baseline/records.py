"""States that are filled by hand."""

from __future__ import annotations

import numpy as np

from rules.baseline.rings import Records
from rules.baseline.state import StateBlock

TODAY = 740_000  # number of a day


def empty(series: int = 1) -> Records:
    """Return states of series that have been known for a hundred days and remember nothing."""
    records = StateBlock.new(series).records
    records["first_day"], records["last_day"], records["seen_day"] = TODAY - 100, TODAY, TODAY
    return records


def place(back: int, length: int) -> int:
    """Return where a ring keeps the day that lies so many days back."""
    return (TODAY - back) % length


def random(series: int, name: str, gaps: float = 0.1) -> Records:
    """Return states in which one ring is filled, with gaps."""
    records = empty(series)
    draw = np.random.default_rng(5)
    ring = draw.gamma(2, 2, records[name].shape).astype(np.float32)
    ring[draw.random(ring.shape) < gaps] = np.nan
    records[name] = ring
    return records
