"""What retention removes, by which clock, and what it tells."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

import pytest

from rules.errors import StoreError
from service.jobs.retention import KEPT, WITH_HISTORY, Retention
from service.runtime.events import Event
from service.scheduling.job import RunContext, Stats
from service.storage.jobs.retention import STATEMENTS, Kind
from tests.factories import NOON
from tests.unit.service.runtime.recorded_log import RecordedLog

DAY = timedelta(days=1)
AWAY = StoreError("the database has not answered yet", retryable=True)


@dataclass
class Rows:
    """Runs of jobs, and what was asked to be removed."""

    runs: list[datetime] = field(default_factory=list)
    fails: StoreError | None = None
    limits: Mapping[Kind, datetime] | None = None

    def ran_before(self, timestamp: datetime) -> datetime | None:
        if self.fails is not None:
            raise self.fails
        return max((one for one in self.runs if one <= timestamp), default=None)

    def remove(
        self, limits: Mapping[Kind, datetime], now: datetime, is_over: Callable[[], bool]
    ) -> Stats:
        del now
        assert not is_over()
        self.limits = limits
        return {"transitions": 7, "bodies": 0}


def run(rows: Rows, now: datetime, told: RecordedLog | None = None) -> Stats:
    context = RunContext(due_at=now, now=now, is_over=lambda: False)
    return Retention(rows, 40 * DAY, (told or RecordedLog()).log).run(context)


def test_every_kind_has_its_limit() -> None:
    rows = Rows(runs=[NOON - 2 * DAY, NOON])
    assert run(rows, NOON) == {"transitions": 7}
    assert rows.limits is not None
    assert rows.limits.keys() == set(Kind) == STATEMENTS.keys()
    assert {rows.limits[kind] for kind in WITH_HISTORY} == {NOON - 40 * DAY}
    assert all(rows.limits[kind] == NOON - keep for kind, keep in KEPT.items())


@pytest.mark.parametrize(
    ("days", "trusted"),
    [
        ([], False),  # a young database
        ([0], False),
        ([0.9, 0.1], False),
        ([1.1, 0.1], True),
        ([7.9], True),  # started once a week
        ([8.1], False),
        ([9000, 8999], False),  # the machine's clock was set 24 years ahead
        ([9000, 0.5, 0.1], False),  # and it has run since
        ([9000, 1.1, 0.1], True),  # for a day: it is the others that were wrong
        ([-9000, 1.1, 0.1], True),  # it was ahead, and is not any more
    ],
)
def test_a_clock_is_trusted_that_ran_a_day_ago(days: list[float], *, trusted: bool) -> None:
    rows = Rows(runs=[NOON - ago * DAY for ago in days])
    stats = run(rows, NOON)
    assert (rows.limits is not None) is trusted
    assert ("skipped" in stats) is not trusted


def test_a_clock_that_ran_ahead_is_told() -> None:
    told = RecordedLog()
    run(Rows(runs=[NOON - 9000 * DAY]), NOON, told)
    assert told.of(Event.RETENTION_SKIPPED) == [
        {
            "level": "warning",
            "why": "the clock is 9000 days ahead of the last job before today",
            "now": NOON.isoformat(),
        }
    ]


def test_a_young_database_is_no_error() -> None:
    told = RecordedLog()
    run(Rows(), NOON, told)
    assert told.events == []


def test_a_database_that_is_away_fails_the_run() -> None:
    with pytest.raises(StoreError):
        run(Rows(fails=AWAY), NOON)
