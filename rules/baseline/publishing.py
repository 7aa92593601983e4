"""The baselines of a block, computed from its states: the next day is judged by them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rules.baseline.blocks import BaselineBlock, DayBlock, Float32s
from rules.baseline.civil import SLOTS_PER_DAY, SLOTS_PER_WEEK, CivilDay
from rules.baseline.clockface import INNER, wrap_day
from rules.baseline.outcomes import has_band, is_kept, outcomes
from rules.baseline.profiles import WEEKLY, Candidates, slots_of
from rules.baseline.rings import Records
from rules.baseline.scales import Policies, Scales, edges_of, scales
from rules.baseline.scores import Faces
from rules.baseline.settings import BaselineSettings
from rules.baseline.thresholds import thresholds
from rules.baseline.trends import slopes


def expected_faces(records: Records, candidates: Candidates, sides: Scales, weekday: int) -> Faces:
    """Return the expected faces of a day from the states: bit for bit the published baselines."""
    mid = candidates.face(records["profile"], weekday) + records["delta"][:, None]
    return Faces(
        mid,
        mid + edges_of(mid, wrap_day(sides.above), sides.relative),
        mid - edges_of(mid, wrap_day(sides.below), sides.relative_below),
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Slots:
    mid: Float32s  # (n, 336)
    upper: Float32s
    lower: Float32s


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
    slots = _slots(records, candidates, scales(records, policies), profile)
    threshold, threshold_by = thresholds(records, settings)
    return BaselineBlock(
        series_id=day.series_id,
        metric=day.metric,
        outcome=outcome,
        reason=reason,
        profile=profile,
        slots=slots_of(profile),
        mid=slots.mid,
        upper=slots.upper,
        lower=slots.lower,
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
) -> _Slots:
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
    return _Slots(*bands)
