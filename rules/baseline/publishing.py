"""The baselines of a block, computed from its states: the next day is judged by them."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from rules.baseline.blocks import THRESHOLDS_BY, BaselineBlock, DayBlock, Float32s, ThresholdBy
from rules.baseline.civil import SLOTS_PER_DAY, SLOTS_PER_WEEK, CivilDay
from rules.baseline.clockface import INNER, wrap_day
from rules.baseline.order import at_rank, count_known, medians
from rules.baseline.outcomes import has_band, is_kept, outcomes
from rules.baseline.policy import BaselineSettings
from rules.baseline.profiles import WEEKLY, Candidates, slots_of
from rules.baseline.rings import Records, places
from rules.baseline.scales import Policies, Scales, edges_of, scales
from rules.baseline.scores import Faces
from rules.baseline.state import LEVEL_DAYS, MONTH_DAYS

_HOURS: Final = 28 * 24
_LEAST: Final = THRESHOLDS_BY.index(ThresholdBy.LEAST)
_OWN: Final = THRESHOLDS_BY.index(ThresholdBy.OWN_HISTORY)
_LIMIT: Final = THRESHOLDS_BY.index(ThresholdBy.LIMIT)

LEAST_DAYS: Final = 7

_EARLIER, _LATER = np.triu_indices(MONTH_DAYS, 1)
_APART: Final = (_LATER - _EARLIER).astype(np.float32)


def expected_faces(records: Records, candidates: Candidates, sides: Scales, weekday: int) -> Faces:
    """Return the expected faces of a day from the states: bit for bit the published baselines."""
    mid = candidates.face(records["profile"], weekday) + records["delta"][:, None]
    return Faces(
        mid,
        mid + edges_of(mid, wrap_day(sides.above), sides.relative),
        mid - edges_of(mid, wrap_day(sides.below), sides.relative_below),
    )


def build_baselines(
    records: Records,
    candidates: Candidates,
    *,
    day: DayBlock,
    calendar: CivilDay,
    settings: BaselineSettings,
) -> BaselineBlock:
    """Return the baselines after a day whose states are complete."""
    policies = Policies.of(day.metric, settings)
    outcome, reason = outcomes(records, policies, calendar.number, settings)
    profile = np.where(has_band(outcome, reason), records["profile"], 0).astype(np.uint8)
    mid, upper, lower = _slots(records, candidates, scales(records, policies), profile)
    threshold, threshold_by = thresholds(records, settings)
    return BaselineBlock(
        series_id=day.series_id,
        metric=day.metric,
        outcome=outcome,
        reason=reason,
        profile=profile,
        slots=slots_of(profile),
        mid=mid,
        upper=upper,
        lower=lower,
        threshold=threshold,
        threshold_by=threshold_by,
        delta=records["delta"].copy(),
        slope=slopes(records, calendar.number),
        changed_at_ms=records["changed_at_ms"].copy(),
        changed_before=records["changed_before"].copy(),
        changed_after=records["changed_after"].copy(),
        days=np.count_nonzero(~np.isnan(records["levels"]).all(axis=2), axis=1).astype(np.int32),
        is_kept=is_kept(records, calendar.number),
    )


def _slots(
    records: Records,
    candidates: Candidates,
    sides: Scales,
    profile: NDArray[np.uint8],
) -> list[Float32s]:
    """Return what is expected and the upper and lower edge: (n, 336) each."""
    bands = [np.full((len(records), SLOTS_PER_WEEK), np.nan, np.float32) for _ in range(3)]
    weekly, daily = profile == WEEKLY, (profile > 0) & (profile != WEEKLY)
    face = candidates.face(profile, 0)[daily, INNER]
    for rows, days, expected in (
        (weekly, 7, candidates.week[weekly].reshape(-1, SLOTS_PER_WEEK)),
        (daily, 1, face),
    ):
        width = days * SLOTS_PER_DAY
        mid = expected + records["delta"][rows][:, None]
        above, below = (np.tile(side[rows], days) for side in (sides.above, sides.below))
        bands[0][rows, :width] = mid
        bands[1][rows, :width] = mid + edges_of(mid, above, sides.relative[rows])
        bands[2][rows, :width] = mid - edges_of(mid, below, sides.relative_below[rows])
    return bands


def thresholds(records: Records, settings: BaselineSettings) -> tuple[Float32s, NDArray[np.uint8]]:
    """Return the threshold of each series and which term made it.

    max(k_min, 1.1 * cap), at most 4 k_min. The cap is the 33rd largest hourly maximum of the score in 28
    days; of a series that is known for less time the rank is smaller in proportion.
    """
    ordered = np.sort(records["maxima"].reshape(len(records), _HOURS), axis=-1)
    counts = count_known(ordered)
    above = settings.hours_above * counts // _HOURS
    cap = np.where(counts > above, at_rank(ordered, counts - 1 - above), np.float32(0))
    own = np.fmax(cap, np.float32(0)) * np.float32(settings.cap_margin)
    least = np.float32(settings.k_min)
    limit = np.float32(settings.k_min * settings.cap_limit)
    by = np.where(own > limit, _LIMIT, np.where(own > least, _OWN, _LEAST))
    return np.clip(own, least, limit).astype(np.float32), by.astype(np.uint8)


def slopes(records: Records, last_day: int) -> Float32s:
    """Return the Theil-Sen slope per day: the median over all pairs of 28 days.

    NaN with fewer than a week of daily medians. It bears 29 % of days that are wrong.
    """
    by_day = records["day_median"][:, places(last_day, MONTH_DAYS, LEVEL_DAYS)]
    slope = medians((by_day[:, _LATER] - by_day[:, _EARLIER]) / _APART)
    return np.where(count_known(by_day) >= LEAST_DAYS, slope, np.float32(np.nan))
