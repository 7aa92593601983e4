"""The judges of the day: loaded in the background, ahead of midnight, and kept while the database is away."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from rules.baseline.blocks import BaselineBlock
from rules.baseline.learnt_series import SeriesLabels
from rules.baseline.series import Metric, Series
from rules.errors import StoreError
from service.rounds.day_judges import DayJudges
from service.runtime.events import Event
from service.storage.baselines.judging import RunInForce
from tests.unit.rules.baseline.flat_bands import flat_bands, in_order, labels_of
from tests.unit.service.runtime.recorded_log import RecordedLog

SERIES = in_order(
    [
        Series(cluster="default", metric=Metric.PRODUCE_RATE, topic=topic, partition=0)
        for topic in ("orders", "audit")
    ]
)
AWAY = StoreError("the database has not answered yet", retryable=True)
RUN = RunInForce(number=1, time_zone="Europe/Berlin", series=2)


class Published:
    """A published run, read in parts of one series."""

    def __init__(self) -> None:
        self.run: RunInForce | None = RUN
        self.error: StoreError | None = None
        self.weekdays: list[int] = []

    def run_in_force(self) -> RunInForce | None:
        if self.error is not None:
            raise self.error
        return self.run

    def read(
        self, run: RunInForce, weekday: int, take: Callable[[BaselineBlock], None]
    ) -> SeriesLabels:
        assert run is self.run
        self.weekdays.append(weekday)
        for each in SERIES:
            take(flat_bands([each]))
        return labels_of(SERIES)


class Clock:
    """A clock that is set, and judges by it."""

    def __init__(self, local: str) -> None:
        self.now = datetime.fromisoformat(local).astimezone(UTC)
        self.source, self.log = Published(), RecordedLog()
        self.judges = DayJudges(
            self.source,
            "default",
            interval_seconds=60,
            utc_now=lambda: self.now,
            stop=asyncio.Event(),
            log=self.log.log,
        )

    def refresh(self, local: str | None = None) -> None:
        if local is not None:
            self.now = datetime.fromisoformat(local).astimezone(UTC)
        self.judges.refresh()

    def has(self, local: str) -> bool:
        at = datetime.fromisoformat(local)
        return self.judges.at(round(at.timestamp() * 1000)) is not None


def test_the_next_day_is_loaded_ahead_and_yesterday_stays_for_some_minutes() -> None:
    clock = Clock("2026-03-03T12:00:00+01:00")
    assert clock.judges.has_run is None
    clock.refresh()
    assert clock.source.weekdays == [1], "a Tuesday"
    assert (clock.has("2026-03-03T00:00:00+01:00"), clock.has("2026-03-04T00:00:00+01:00")) == (
        True,
        False,
    )
    today = clock.judges.at(round(clock.now.timestamp() * 1000))
    clock.refresh("2026-03-03T23:31:00+01:00")
    clock.refresh("2026-03-03T23:59:00+01:00")
    assert clock.source.weekdays == [1, 2], "each day is read once"
    assert clock.has("2026-03-04T00:00:00+01:00")
    clock.refresh("2026-03-04T00:05:00+01:00")
    assert clock.judges.at(round((clock.now - timedelta(hours=1)).timestamp() * 1000)) is today
    clock.refresh("2026-03-04T00:11:00+01:00")
    assert not clock.has("2026-03-03T23:59:00+01:00")
    assert clock.source.weekdays == [1, 2]


def test_another_run_in_force_is_loaded_and_named() -> None:
    clock = Clock("2026-03-03T12:00:00+01:00")
    clock.refresh()
    before = clock.judges.at(round(clock.now.timestamp() * 1000))
    clock.source.run = replace(RUN, number=2)
    clock.refresh()
    judge = clock.judges.at(round(clock.now.timestamp() * 1000))
    assert judge is not None
    assert judge is not before
    assert judge.learnt is not None
    assert [judge.learnt.series(row) for row in range(2)] == SERIES
    assert judge.learnt.of_metric(Metric.PRODUCE_RATE).names == ("audit", "orders")


def test_a_database_that_is_away_takes_nothing_back_and_is_logged_once() -> None:
    clock = Clock("2026-03-03T12:00:00+01:00")
    clock.refresh()
    clock.source.error = AWAY
    for _ in range(4):
        clock.refresh()
    assert clock.has("2026-03-03T12:00:00+01:00")
    assert clock.judges.has_run
    assert clock.log.names == [Event.BASELINES_NOT_LOADED]


def test_no_published_run_is_known_as_none() -> None:
    clock = Clock("2026-03-03T12:00:00+01:00")
    clock.source.run = None
    clock.refresh()
    assert clock.judges.has_run is False
    assert not clock.has("2026-03-03T12:00:00+01:00")
