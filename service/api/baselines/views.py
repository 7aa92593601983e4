"""Baseline runs and series as the API shows them."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from rules.baseline.civil import SLOTS_PER_DAY, SLOTS_PER_WEEK
from rules.baseline.policy import POLICIES, Direction, Policy
from rules.baseline.series import Metric
from service.api.baselines import models
from service.storage.baselines.reading import (
    MINUTES_PER_SLOT,
    Band,
    StoredBaseline,
    StoredRun,
    slot_of,
)

WEEKDAYS: Final = (
    "Monday",
    "Tuesday",
    "Wednesday",
    "Thursday",
    "Friday",
    "Saturday",
    "Sunday",
)
# Of a metric that this version does not know: nothing is cut, both sides count.
UNKNOWN: Final = Policy(
    direction=Direction.BOTH, min_deviation=1.0, floor=float("-inf"), open_seconds=60
)


def run_view(run: StoredRun) -> models.BaselineRun:
    """Return a run as the API shows it."""
    stats = dict(run.stats)
    return models.BaselineRun(
        run_id=run.run_id,
        day=run.day,
        time_zone=run.time_zone,
        series=run.series,
        outcomes=stats.pop("outcomes", {}),
        stats=stats,
        loaded_at=run.loaded_at,
        is_current=run.current_since is not None,
        current_since=run.current_since,
    )


def series_view(series: StoredBaseline, run: StoredRun, at: datetime) -> models.Baseline:
    """Return a series as the API shows it, with its usual band at a time."""
    usual = None
    if series.band is not None:
        weekday, slot = slot_of(at, run.time_zone)
        place = weekday * SLOTS_PER_DAY + slot if series.slots == SLOTS_PER_WEEK else slot
        usual = _usual(series, place, series.band)
    return models.Baseline(
        series_id=str(series.series_id),
        metric=series.metric,
        topic=series.topic,
        partition=series.partition,
        group=series.consumer_group,
        outcome=series.outcome,
        reason=series.reason,
        profile=series.profile,
        days=series.days,
        usual=usual,
        threshold=series.threshold,
        threshold_by=series.threshold_by,
        level_correction=series.delta,
        slope_per_day=series.slope,
        level_change=_change(series),
    )


def slots_view(series: StoredBaseline) -> list[models.Usual]:
    """Return what is usual in every slot."""
    return [_usual(series, place, band) for place, band in enumerate(series.bands)]


def _change(series: StoredBaseline) -> models.LevelChange | None:
    if series.changed_at is None:
        return None
    return models.LevelChange(
        at=series.changed_at, before=series.changed_before, after=series.changed_after
    )


def _usual(series: StoredBaseline, place: int, band: Band) -> models.Usual:
    policy = _policy(series.metric)
    slot = place % SLOTS_PER_DAY
    is_weekly = series.slots == SLOTS_PER_WEEK
    below = None if policy.direction is Direction.ABOVE else band.lower
    above = None if policy.direction is Direction.BELOW else band.upper
    return models.Usual(
        weekday=WEEKDAYS[place // SLOTS_PER_DAY] if is_weekly else None,
        begins=_clock(slot),
        ends=_clock(slot + 1),
        expected=_cut(band.mid, policy),
        least=_cut(band.lower, policy),
        most=_cut(band.upper, policy),
        unusual_below=_cut(_edge(series.threshold, band.mid, below), policy),
        unusual_above=_cut(_edge(series.threshold, band.mid, above), policy),
    )


def _policy(metric: str) -> Policy:
    try:
        return POLICIES[Metric(metric)]
    except (KeyError, ValueError):
        return UNKNOWN


def _edge(threshold: float | None, mid: float | None, edge: float | None) -> float | None:
    """Return the threshold's edge: so many usual deviations from what is expected."""
    if threshold is None or mid is None or edge is None:
        return None
    return mid + threshold * (edge - mid)


def _cut(value: float | None, policy: Policy) -> float | None:
    return None if value is None else min(max(value, policy.floor), policy.ceiling)


def _clock(slot: int) -> str:
    hours, minutes = divmod(slot * MINUTES_PER_SLOT, 60)
    return f"{hours:02}:{minutes:02}"
