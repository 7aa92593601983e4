"""The baselines of a block, computed from its states: the next day is judged by them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from rules.baseline.blocks import THRESHOLDS_BY, BaselineBlock, DayBlock, Float32s, ThresholdBy
from rules.baseline.civil import SLOTS_PER_DAY, SLOTS_PER_WEEK, CivilDay
from rules.baseline.clockface import INNER, wrap_day
from rules.baseline.correction import Correction
from rules.baseline.order import at_rank, count_known, medians
from rules.baseline.outcomes import has_band, is_kept, outcomes
from rules.baseline.policy import BaselineSettings
from rules.baseline.profiles import WEEKLY, Candidates, slots_of
from rules.baseline.rings import Records, places
from rules.baseline.scales import Policies, Scales, edges_of, scales
from rules.baseline.scores import Faces
from rules.baseline.state import DAY_QUARTERS, LEVEL_DAYS, MONTH_DAYS

_HOURS: Final = MONTH_DAYS * 24
_DRIFTS: Final = MONTH_DAYS * DAY_QUARTERS
_LEAST: Final = THRESHOLDS_BY.index(ThresholdBy.LEAST)
_OWN: Final = THRESHOLDS_BY.index(ThresholdBy.OWN_HISTORY)
_LIMIT: Final = THRESHOLDS_BY.index(ThresholdBy.LIMIT)

LEAST_DAYS: Final = 7

_EARLIER, _LATER = np.triu_indices(MONTH_DAYS, 1)
_APART: Final = (_LATER - _EARLIER).astype(np.float32)


def expected_faces(
    records: Records, candidates: Candidates, sides: Scales, policies: Policies, weekday: int
) -> Faces:
    """Return the expected faces of a day from the states: bit for bit the published baselines."""
    profile = records["profile"]
    correction = Correction.of(records, candidates, profile, policies.is_proportional)
    mid = correction.apply(candidates.face(profile, weekday), records["delta"], days=0)
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
    mid, upper, lower = _slots(records, candidates, policies, profile)
    limits = thresholds(records, policies, settings)
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
        threshold=limits.above,
        threshold_below=limits.below,
        drift_threshold=limits.drift,
        fall_share=limits.fall_share,
        threshold_by=limits.by,
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
    policies: Policies,
    profile: NDArray[np.uint8],
) -> list[Float32s]:
    """Return what is expected and the upper and lower edge: (n, 336) each."""
    bands = [np.full((len(records), SLOTS_PER_WEEK), np.nan, np.float32) for _ in range(3)]
    weekly, daily = profile == WEEKLY, (profile > 0) & (profile != WEEKLY)
    face = candidates.face(profile, 0)[daily, INNER]
    sides = scales(records, policies)
    correction = Correction.of(records, candidates, profile, policies.is_proportional)
    for rows, days, expected in (
        (weekly, 7, candidates.week[weekly].reshape(-1, SLOTS_PER_WEEK)),
        (daily, 1, face),
    ):
        width = days * SLOTS_PER_DAY
        mid = correction.take(rows).apply(expected, records["delta"][rows], days)
        above, below = (np.tile(side[rows], days) for side in (sides.above, sides.below))
        bands[0][rows, :width] = mid
        bands[1][rows, :width] = mid + edges_of(mid, above, sides.relative[rows])
        bands[2][rows, :width] = mid - edges_of(mid, below, sides.relative_below[rows])
    return bands


@dataclass(frozen=True, slots=True, eq=False)
class Thresholds:
    """Beyond what a series is reported: (n,) each, in usual deviations."""

    above: Float32s
    below: Float32s
    drift: Float32s
    fall_share: Float32s  # of what is expected; 0: a fall is not always reported
    by: NDArray[np.uint8]  # which term made the greater one: places in `THRESHOLDS_BY`


def thresholds(records: Records, policies: Policies, settings: BaselineSettings) -> Thresholds:
    """Return the thresholds of each series.

    Each is max(k_min, 1.1 * cap), at most 4 k_min. A cap is the greatest value but so many as the policy
    allows of the hourly maxima of 28 days (or of maxima of quarters of a day, for slow changes); of a
    series that is known for less time the rank is smaller in proportion.
    """
    caps = [
        _cap(records["maxima"], policies.hours_above, _HOURS),
        _cap(records["maxima_below"], policies.hours_above, _HOURS),
        _cap(records["drifts"], np.full(len(records), settings.drifts_above), _DRIFTS),
    ]
    least, limit = np.float32(settings.k_min), np.float32(settings.k_min * settings.cap_limit)
    own = [cap * np.float32(settings.cap_margin) for cap in caps]
    above, below, drift = (np.clip(side, least, limit).astype(np.float32) for side in own)
    days = np.count_nonzero(~np.isnan(records["drifts"]).all(axis=2), axis=1)
    drift = np.where(days < LEAST_DAYS, np.maximum(drift, above), drift)
    sides = np.fmax(own[0] * policies.above, own[1] * policies.below)
    by = np.where(sides > limit, _LIMIT, np.where(sides > least, _OWN, _LEAST))
    falls = records["falls"].sum(axis=1, dtype=np.int64)
    hours = count_known(records["maxima"].astype(np.float32).reshape(len(records), _HOURS))
    often = falls > np.maximum(1, policies.hours_above * hours // _HOURS)
    fall_share = np.where(often, np.float32(0), policies.fall_share)
    return Thresholds(above, below, drift, fall_share, by.astype(np.uint8))


def _cap(maxima: NDArray[np.float16], allowed: NDArray[np.int64], size: int) -> Float32s:
    ordered = np.sort(maxima.astype(np.float32).reshape(len(maxima), size), axis=-1)
    counts = count_known(ordered)
    beyond = allowed * counts // size
    cap = np.where(counts > beyond, at_rank(ordered, counts - 1 - beyond), np.float32(0))
    return np.fmax(cap, np.float32(0))


def slopes(records: Records, last_day: int) -> Float32s:
    """Return the Theil-Sen slope per day: the median over all pairs of 28 days.

    NaN with fewer than a week of daily medians. It bears 29 % of days that are wrong.
    """
    by_day = records["day_median"][:, places(last_day, MONTH_DAYS, LEVEL_DAYS)]
    slope = medians((by_day[:, _LATER] - by_day[:, _EARLIER]) / _APART)
    return np.where(count_known(by_day) >= LEAST_DAYS, slope, np.float32(np.nan))
