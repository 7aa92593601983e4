"""What a day would have opened at most, hour by hour: the caps of thresholds are made of it.

A series opens when every sample of its policy's time is beyond the threshold. So the greatest value of
an hour is that of the least score of such a time: a spike that is over sooner opens nothing, and raises
no threshold either.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from rules.baseline.blocks import Float32s
from rules.baseline.civil import CivilDay
from rules.baseline.clockface import hourly_maxima
from rules.baseline.rings import Records
from rules.baseline.scales import Policies
from rules.baseline.scores import Scores
from rules.baseline.state import DAY_QUARTERS, GREATEST_MAXIMUM
from rules.baseline.windows import running

_NAN: Final = np.float32(np.nan)


@dataclass(frozen=True, slots=True, eq=False)
class JudgedDay:
    """The scores of a day and what was expected on it."""

    scores: Scores
    mid: Float32s
    calendar: CivilDay
    step_ms: int


def keep_maxima(records: Records, day: JudgedDay, policies: Policies, novelty_from: float) -> None:
    """Remember the greatest sustained scores of each hour, and the hours in which a series had fallen.

    Where no sample of a series is above `novelty_from` its scores are kept as they are: no threshold is
    made of them.
    """
    place = day.calendar.number % records["maxima"].shape[1]
    is_below = day.scores.residual < 0
    waits = np.maximum(1, policies.open_seconds * 1000 // day.step_ms)
    for name, is_other in (("maxima", is_below), ("maxima_below", ~is_below)):
        one_side = np.where(is_other, np.minimum(day.scores.score, 0), day.scores.score)
        records[name][:, place] = _hourly(one_side, waits, day, novelty_from)
    drifting = np.maximum(1, policies.drift_seconds * 1000 // day.step_ms)
    hours = _hourly(day.scores.seasonal, drifting, day, novelty_from)
    parts = hours.reshape(len(hours), DAY_QUARTERS, hours.shape[1] // DAY_QUARTERS)
    records["drifts"][:, place] = np.fmax.reduce(parts, axis=2)
    records["falls"][:, place] = _falls(day, policies, waits)


def _hourly(
    score: Float32s, width: NDArray[np.int64], day: JudgedDay, least: float
) -> NDArray[np.float32]:
    """Return the greatest score of each hour that was held for so many samples."""
    held = score
    rows = np.flatnonzero((score > np.float32(least)).any(axis=1))
    if len(rows):
        held = score.copy()
        held[rows] = sustained(score[rows], width[rows])
    return np.minimum(hourly_maxima(held, day.calendar), np.float32(GREATEST_MAXIMUM))


def sustained(score: Float32s, width: NDArray[np.int64]) -> Float32s:
    """Return the least known score of the last `width` samples; NaN where now is not known.

    Before the first `width` samples nothing has been held for so long.
    """
    held = running(np.fmin, score, width)
    held[np.isnan(score)] = _NAN
    too_early = np.arange(score.shape[1])[None, :] < width[:, None] - 1
    return np.where(too_early & (held > 0), np.float32(0), held)


def _falls(day: JudgedDay, policies: Policies, width: NDArray[np.int64]) -> NDArray[np.uint8]:
    """Return in how many hours of the day a series was below its share of the expected for long."""
    hours = np.zeros(len(day.mid), np.uint8)
    rows = np.flatnonzero(policies.fall_share > 0)
    if not len(rows):
        return hours
    share = policies.fall_share[rows][:, None]
    residual = day.scores.residual[rows]
    has_fallen = (-residual > (1 - share) * day.mid[rows]) & (day.mid[rows] > 0)
    fallen = np.where(np.isnan(residual), _NAN, has_fallen.astype(np.float32))
    held = sustained(fallen, width[rows])
    hours[rows] = np.count_nonzero(hourly_maxima(held, day.calendar) > 0, axis=1)
    return hours
