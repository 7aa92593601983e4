"""Samples that must not be learnt from: an alert was open, so they are not what is usual."""

from __future__ import annotations

from typing import Final

import numpy as np

from rules.baseline.blocks import DayBlock, Float32s
from rules.baseline.rings import Records

LASTING_MS: Final = 24 * 3_600_000  # what lasts longer is the level that things are at

_LONGEST: Final = 2_000_000_000  # ms that a state can hold


def drop_masked(values: Float32s, day: DayBlock) -> Float32s:
    """Return the samples with gaps where they are masked."""
    if day.masked is None:
        return values
    return np.where(day.masked, np.float32(np.nan), values)


def select_for_delta(records: Records, values: Float32s, day: DayBlock) -> Float32s:
    """Return the samples that correct the level: masked ones too once the mask is 24 h old.

    Notes in the states how old a mask is at midnight.
    """
    masked = np.zeros(values.shape, np.bool_) if day.masked is None else day.masked
    touched = np.flatnonzero(masked.any(axis=1))
    carried = records["masked_ms"][touched].astype(np.int64)
    records["masked_ms"] = 0
    if not len(touched):
        return values
    inside = masked[touched]
    place = np.arange(values.shape[1])
    clear = np.maximum.accumulate(np.where(inside, -1, place), axis=1)
    age = (place - clear) * day.step_ms + np.where(clear < 0, carried[:, None], 0)
    records["masked_ms"][touched] = np.where(inside[:, -1], np.minimum(age[:, -1], _LONGEST), 0)
    usable = values.copy()
    usable[touched] = np.where(inside & (age <= LASTING_MS), np.float32(np.nan), values[touched])
    return usable
