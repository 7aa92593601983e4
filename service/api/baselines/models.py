"""Baseline runs and series as the API shows them: what is usual of a series, and when."""

from __future__ import annotations

from datetime import date, datetime
from typing import Annotated, Any, Final

from pydantic import Field

from rules.baseline.blocks import Outcome, Profile, Reason, ThresholdBy
from rules.baseline.civil import SLOTS_PER_DAY, SLOTS_PER_WEEK
from rules.baseline.live_series import UnknownReason
from rules.baseline.policy import Direction, policy_of
from rules.baseline.series import Metric
from rules.record_errors.series import REST
from service.api.baselines.measured import Measured
from service.api.core.bodies import Body, Timestamp, Why
from service.api.core.models import NextCursor, Paged, Stamped
from service.api.core.queries import NoQuery, PageQuery, PartitionNumber, Pattern
from service.history.reading import MOST_DAYS, MOST_SAMPLES
from service.storage.baselines.reading import (
    MINUTES_PER_SLOT,
    Band,
    StoredBaseline,
    StoredRun,
    slot_of,
)
from service.views.model import Model

SeriesName = Annotated[
    str, Field(description="A number of up to 19 digits, as text: JSON numbers may lose digits")
]


class BaselineRun(Model):
    """A loaded baseline run."""

    run_id: str
    day: Annotated[date, Field(description="The last civil day that it has learnt from")]
    time_zone: Annotated[str, Field(examples=["Europe/Berlin"])]
    series: int
    outcomes: Annotated[dict[str, int], Field(examples=[{"banded": 298}])]
    """Series per outcome"""
    stats: dict[str, Any]
    loaded_at: datetime
    is_current: Annotated[bool, Field(description="Whether its baselines are in force")]
    current_since: datetime | None


class BaselineRunPage(Paged[BaselineRun]):
    """Runs, the newest day first."""


class Usual(Model):
    """What is usual in one half hour of the wall clock, in the metric's unit."""

    weekday: Annotated[str | None, Field(description="null: every day", examples=["Monday"])]
    begins: Annotated[str, Field(examples=["14:00"])]
    ends: Annotated[str, Field(examples=["14:30"])]
    expected: float | None
    least: Annotated[float | None, Field(description="The lower edge of what is usual")]
    most: Annotated[float | None, Field(description="The upper edge of what is usual")]
    unusual_below: float | None
    """The threshold's edge; null: the metric is not judged on that side"""
    unusual_above: float | None


class LevelChange(Model):
    """A new level that a series has taken on."""

    at: datetime
    before: float | None
    after: float | None


class Baseline(Model):
    """The baseline of one series in one run."""

    series_id: SeriesName
    metric: Annotated[str, Field(examples=["read_committed_lag_seconds"])]
    topic: str | None
    partition: int | None
    group: str | None
    client_id: Annotated[
        str | None,
        Field(description=f"{REST}: clients of the topic that have no series of their own"),
    ]
    outcome: Annotated[str, Field(examples=[member.value for member in Outcome])]
    reason: Annotated[str, Field(examples=[member.value for member in Reason])]
    profile: Annotated[str, Field(examples=[member.value for member in Profile])]
    days: Annotated[int, Field(description="Days with data among the last 35")]
    usual: Usual | None
    """At the requested time; null: there is no band"""
    threshold: float | None
    """In usual deviations: beyond it a value above what is expected is unusual"""
    threshold_below: float | None
    """The same of a value below it; null: as above"""
    drift_threshold: float | None
    """The same of a slow change, which lasts for half an hour; null: as above"""
    fall_share: float | None
    """Less than this share of what is expected is always unusual; 0: the series often falls so far"""
    threshold_by: Annotated[str, Field(examples=[member.value for member in ThresholdBy])]
    level_correction: float | None
    slope_per_day: float | None
    level_change: LevelChange | None


class Scored(Model):
    """A series as the service scored it last."""

    at: Annotated[datetime, Field(description="When the step of a polling interval began")]
    value: Annotated[float | None, Field(description="null: not measured")]
    usual_deviations: Annotated[float | None, Field(examples=[7.6])]
    """How far from what was expected then; null: not known"""
    unknown_reason: Annotated[str | None, Field(examples=[r.value for r in UnknownReason][1:])]
    """null: it is known"""
    unusual_since: Annotated[datetime | None, Field(description="null: it is not unusual")]


class SeriesPage(Stamped):
    """Series of the run in force, by their ids."""

    at: Annotated[datetime, Field(description="For which time `usual` holds")]
    run: Annotated[BaselineRun | None, Field(description="null: no run was published yet")]
    items: list[Baseline]
    next: NextCursor


class SeriesDetail(Stamped):
    """A series with all slots: 48 of a day, or 336 of a week, Monday 00:00 first."""

    at: datetime
    run: BaselineRun
    series: Baseline
    scored: Scored | None
    """null: nothing was scored by the run since the start, or history is turned off"""
    slots: list[Usual]
    measured: Measured | None
    """null: neither `from` nor `to` is given"""


class RollbackBody(Body):
    """Which run to go back to."""

    to: Annotated[str | None, Field(min_length=1, max_length=200)] = None
    """null: the run before"""
    reason: Why


class RolledBackDetail(Stamped):
    """Which run is in force now."""

    run_id: str
    day: date
    left: Annotated[str, Field(description="The run that was in force before")]
    left_day: date


At = Annotated[
    Timestamp | None,
    Field(description="For which time, by default now", examples=["2026-01-31T03:00:00Z"]),
]


class SeriesQuery(PageQuery):
    """Which series."""

    metric: Metric | None = None
    topic: Pattern | None = None
    partition: PartitionNumber | None = None
    group: Pattern | None = None
    client_id: Pattern | None = None
    at: At = None


class DetailQuery(NoQuery):
    """For which time what is usual, and from when to when what was measured."""

    at: At = None
    from_: Annotated[
        Timestamp | None,
        Field(
            alias="from",
            description="Adds what was measured from then on; an hour before `to`",
            examples=["2026-01-31T02:00:00Z"],
        ),
    ] = None
    to: Annotated[
        Timestamp | None,
        Field(
            description=f"Adds what was measured before; now. At most {MOST_DAYS} days after `from`"
            f" and {MOST_SAMPLES:,} values",
            examples=["2026-01-31T03:00:00Z"],
        ),
    ] = None


WEEKDAYS: Final = (
    "Monday",
    "Tuesday",
    "Wednesday",
    "Thursday",
    "Friday",
    "Saturday",
    "Sunday",
)


def run_view(run: StoredRun) -> BaselineRun:
    """Return a run as the API shows it."""
    stats = dict(run.stats)
    return BaselineRun(
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


def series_view(series: StoredBaseline, run: StoredRun, at: datetime) -> Baseline:
    """Return a series as the API shows it, with its usual band at a time."""
    usual = None
    if series.band is not None:
        weekday, slot = slot_of(at, run.time_zone)
        place = weekday * SLOTS_PER_DAY + slot if series.slots == SLOTS_PER_WEEK else slot
        usual = _usual(series, place, series.band)
    return Baseline(
        series_id=str(series.series_id),
        metric=series.metric,
        topic=series.topic,
        partition=series.partition,
        group=series.consumer_group,
        client_id=series.client_id,
        outcome=series.outcome,
        reason=series.reason,
        profile=series.profile,
        days=series.days,
        usual=usual,
        threshold=series.threshold,
        threshold_below=series.threshold_below,
        drift_threshold=series.drift_threshold,
        fall_share=series.fall_share,
        threshold_by=series.threshold_by,
        level_correction=series.delta,
        slope_per_day=series.slope,
        level_change=_change(series),
    )


def slots_view(series: StoredBaseline) -> list[Usual]:
    """Return what is usual in every slot."""
    return [_usual(series, place, band) for place, band in enumerate(series.bands)]


def _change(series: StoredBaseline) -> LevelChange | None:
    if series.changed_at is None:
        return None
    return LevelChange(
        at=series.changed_at, before=series.changed_before, after=series.changed_after
    )


def _usual(series: StoredBaseline, place: int, band: Band) -> Usual:
    policy = policy_of(series.metric)
    slot = place % SLOTS_PER_DAY
    is_weekly = series.slots == SLOTS_PER_WEEK
    below = None if policy.direction is Direction.ABOVE else band.lower
    above = None if policy.direction is Direction.BELOW else band.upper
    return Usual(
        weekday=WEEKDAYS[place // SLOTS_PER_DAY] if is_weekly else None,
        begins=_clock(slot),
        ends=_clock(slot + 1),
        expected=policy.cut(band.mid),
        least=policy.cut(band.lower),
        most=policy.cut(band.upper),
        unusual_below=policy.cut(_unusual_below(series, band.mid, below)),
        unusual_above=policy.cut(_edge(series.threshold, band.mid, above)),
    )


def _unusual_below(series: StoredBaseline, mid: float | None, lower: float | None) -> float | None:
    """Return below what a value is unusual: the threshold's edge, or the share that always is."""
    threshold = series.threshold if series.threshold_below is None else series.threshold_below
    edge = _edge(threshold, mid, lower)
    if edge is None or mid is None or lower is None or not series.fall_share:
        return edge
    return max(edge, min(lower, series.fall_share * mid))


def _edge(threshold: float | None, mid: float | None, edge: float | None) -> float | None:
    """Return the threshold's edge: so many usual deviations from what is expected."""
    if threshold is None or mid is None or edge is None:
        return None
    return mid + threshold * (edge - mid)


def _clock(slot: int) -> str:
    hours, minutes = divmod(slot * MINUTES_PER_SLOT, 60)
    return f"{hours:02}:{minutes:02}"
