"""Loads the judges of the day from the baseline run in force, so that no round waits for the database.

The next day is loaded half an hour ahead, and yesterday's judge stays for some minutes after midnight. A
failed load changes nothing: what was loaded holds to the end of its day.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from datetime import date, datetime, timedelta
from typing import Final, Protocol
from zoneinfo import ZoneInfo

from rules.baseline.blocks import BaselineBlock
from rules.baseline.civil import civil_day
from rules.baseline.learnt_series import LearntColumns, LearntSeries, SeriesLabels
from rules.baseline.live_series import DayJudge
from rules.baseline.policy import BaselineSettings
from rules.errors import StoreError
from service.runtime.allocator import give_back
from service.runtime.clock import set_within
from service.runtime.events import Event
from service.runtime.log import Log
from service.runtime.threads import in_thread
from service.storage.baselines.judging import RunInForce

REFRESH_SECONDS: Final = 30.0
AHEAD: Final = timedelta(minutes=30)  # before midnight, when the next day is loaded
BEHIND: Final = timedelta(minutes=10)  # after midnight, until yesterday's last step is judged
_FAILURES_LOGGED: Final = 2  # in a row: the database may still be starting at the first


class JudgingSource(Protocol):
    """The run in force; every call may raise StoreError."""

    def run_in_force(self) -> RunInForce | None:
        """Return the run; None: none was published."""

    def read(
        self, run: RunInForce, weekday: int, take: Callable[[BaselineBlock], None], /
    ) -> SeriesLabels:
        """Give `take` the series of a run in parts, by their ids; return the labels of all."""


class DayJudges:
    """The judges of one cluster; `at` may be called by any thread."""

    def __init__(  # noqa: PLR0913 - each by its name
        self,
        source: JudgingSource,
        cluster: str,
        *,
        interval_seconds: float,
        utc_now: Callable[[], datetime],
        stop: asyncio.Event,
        log: Log,
    ) -> None:
        self._source = source
        self._cluster = cluster
        self._interval_ms = round(interval_seconds * 1000)
        self._utc_now = utc_now
        self._stop = stop
        self._log = log
        self._run: RunInForce | None = None  # of the judges
        self._judges: Mapping[date, DayJudge] = {}
        self._failures = 0  # in a row
        self.has_run: bool | None = None  # None: not known yet

    def at(self, at_ms: int) -> DayJudge | None:
        """Return the judge of the civil day in which a time lies (ms since 1970-01-01 UTC); None: not loaded."""
        for judge in self._judges.values():
            calendar = judge.judge.calendar
            if calendar.start_ms <= at_ms < calendar.end_ms:
                return judge
        return None

    async def run(self) -> None:
        """Load what is needed until the service stops."""
        while not self._stop.is_set():
            await in_thread(self.refresh, name="day_judges")
            await set_within(self._stop, REFRESH_SECONDS)

    def refresh(self) -> None:
        """Load what is needed now; blocks. A failure is logged, and tried again by the next call."""
        try:
            run = self._source.run_in_force()
            judges = {} if run is None else self._load_days(run)
        except StoreError as exc:
            self._failures += 1
            if self._failures == _FAILURES_LOGGED:
                self._log.warning(Event.BASELINES_NOT_LOADED, error=str(exc))
            return
        self._failures, self._run, self._judges = 0, run, judges
        self.has_run = bool(judges)

    def _load_days(self, run: RunInForce) -> Mapping[date, DayJudge]:
        """Return the judges of the days around now; those of the same run that are there are kept."""
        local = self._utc_now().astimezone(ZoneInfo(run.time_zone))
        days = dict.fromkeys(when.date() for when in (local, local - BEHIND, local + AHEAD))
        current = self._judges if run == self._run else {}
        learnt = next((judge.learnt for judge in current.values()), None)
        judges: dict[date, DayJudge] = {}
        for day in days:
            judge = current.get(day) or self._load(run, day, learnt)
            if judge is not None:
                judges[day], learnt = judge, judge.learnt
        return judges

    def _load(self, run: RunInForce, day: date, learnt: LearntSeries | None) -> DayJudge | None:
        calendar = civil_day(day, run.time_zone)
        parts: list[DayJudge] = []
        columns: list[LearntColumns] = []

        def take(block: BaselineBlock) -> None:
            parts.append(DayJudge.of(block, calendar, self._interval_ms, BaselineSettings()))
            columns.append(LearntColumns.of(block))

        labels = self._source.read(run, calendar.weekday, take)
        if not parts:
            return None
        if learnt is None:
            learnt = LearntSeries.join(self._cluster, run.time_zone, columns, labels)
        judge = DayJudge.join(parts, learnt)
        parts.clear()
        give_back()
        return judge
