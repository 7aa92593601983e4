"""When old transitions are removed, and what is told of it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import datetime, timedelta

import pytest

from rules.errors import StoreError
from service.events import Event
from service.retention import EVERY_SECONDS, FIRST_AFTER_SECONDS, Retention
from tests.factories import at
from tests.instant import now, run_instantly
from tests.unit.service.told import Told

AWAY = StoreError("the database has not answered yet", retryable=True)


class Timed(Retention):
    """Notes when it would remove something."""

    times: list[float]

    async def remove_once(self) -> None:
        self.times.append(now())


def retention(told: Told, remove: Callable[[datetime], int], kind: type[Retention]) -> Retention:
    return kind(
        remove, what="transitions", keep=timedelta(days=30), utc_now=lambda: at(60), log=told.log
    )


def test_it_begins_a_minute_after_the_start_and_goes_on_every_six_hours() -> None:
    timed = retention(Told(), lambda _: 0, Timed)
    assert isinstance(timed, Timed)
    timed.times = []

    async def a_day() -> None:
        async with asyncio.timeout(24 * 3600.0):
            await timed.run()

    with pytest.raises(TimeoutError):
        run_instantly(a_day)
    assert timed.times == [FIRST_AFTER_SECONDS + n * EVERY_SECONDS for n in range(4)]


def test_what_is_older_than_the_limit_is_removed_and_counted() -> None:
    told, asked = Told(), list[datetime]()

    def remove(before: datetime) -> int:
        asked.append(before)
        return 7

    asyncio.run(retention(told, remove, Retention).remove_once())
    assert asked == [at(60) - timedelta(days=30)]
    assert told.of(Event.RETENTION) == [
        {"level": "info", "what": "transitions", "removed": 7, "before": asked[0].isoformat()}
    ]


def test_a_database_that_is_away_is_told_and_asked_again_next_time() -> None:
    told = Told()

    def remove(_: datetime) -> int:
        raise AWAY

    asyncio.run(retention(told, remove, Retention).remove_once())
    assert told.of(Event.RETENTION) == [
        {"level": "warning", "what": "transitions", "removed": None, "why": str(AWAY)}
    ]


def test_a_defect_of_ours_is_left_to_the_supervisor() -> None:
    def remove(_: datetime) -> int:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        asyncio.run(retention(Told(), remove, Retention).remove_once())
