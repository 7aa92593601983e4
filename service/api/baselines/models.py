"""Answers about baselines: nightly runs, and the usual band of a series."""

from __future__ import annotations

from datetime import date, datetime
from typing import Annotated, Any

from pydantic import Field

from rules.baseline.blocks import Outcome, Profile, Reason, ThresholdBy
from rules.baseline.series import Metric
from service.api.core.bodies import Body, Timestamp, Why
from service.api.core.models import Model, NextCursor, Stamped
from service.api.core.queries import NoQuery, PageQuery, PartitionNumber, Pattern

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


class BaselineRunPage(Stamped):
    """Runs, the newest day first."""

    items: list[BaselineRun]
    next: NextCursor


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
    outcome: Annotated[str, Field(examples=[member.value for member in Outcome])]
    reason: Annotated[str, Field(examples=[member.value for member in Reason])]
    profile: Annotated[str, Field(examples=[member.value for member in Profile])]
    days: Annotated[int, Field(description="Days with data among the last 35")]
    usual: Usual | None
    """At the requested time; null: there is no band"""
    threshold: float | None
    """In usual deviations: beyond it a value is unusual"""
    threshold_by: Annotated[str, Field(examples=[member.value for member in ThresholdBy])]
    level_correction: float | None
    slope_per_day: float | None
    level_change: LevelChange | None


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
    slots: list[Usual]


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
    at: At = None


class AtQuery(NoQuery):
    """For which time."""

    at: At = None
