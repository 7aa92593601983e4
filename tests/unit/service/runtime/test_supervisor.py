"""Tasks that die: restarted with back-off, or the end of the service."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from itertools import pairwise

import pytest

from service.runtime.events import Event
from service.runtime.supervisor import LAST_DELAY_SECONDS, STEADY_SECONDS, OnDeath, Supervisor, Task
from tests.instant import now, run_instantly
from tests.unit.service.runtime.recorded_log import RecordedLog


class Kept:
    """A supervisor, its log, and when its task began."""

    def __init__(self) -> None:
        self.reported = RecordedLog()
        self.stop = asyncio.Event()
        self.supervisor = Supervisor(self.reported.log, self.stop, monotonic=now)
        self.begins: list[float] = []

    def task(
        self, *lives: Callable[[], Awaitable[None]], on_death: OnDeath = OnDeath.RESTART
    ) -> Task:
        """Return a task that lives so, life after life; after the last it stops the service."""
        left = list(lives)

        async def run() -> None:
            self.begins.append(now())
            if left:
                await left.pop(0)()
            else:
                self.stop.set()

        return Task(name="rounds", run=run, on_death=on_death)


async def dies() -> None:
    raise ValueError("broken")


async def returns() -> None:
    return


async def lives_long() -> None:
    await asyncio.sleep(STEADY_SECONDS)
    raise ValueError("broken at last")


def kept(*lives: Callable[[], Awaitable[None]], on_death: OnDeath = OnDeath.RESTART) -> Kept:
    """Keep a task until it stops the service."""
    made = Kept()
    run_instantly(lambda: made.supervisor.keep(made.task(*lives, on_death=on_death)))
    return made


def test_a_task_that_dies_is_started_again_ever_later_but_not_later_than_a_minute() -> None:
    made = kept(*[dies] * 9)
    waited = [after - before for before, after in pairwise(made.begins)]
    assert waited == [
        1,
        2,
        4,
        8,
        16,
        32,
        LAST_DELAY_SECONDS,
        LAST_DELAY_SECONDS,
        LAST_DELAY_SECONDS,
    ]
    assert made.supervisor.restarts == {"rounds": 9}
    assert made.supervisor.failed is None


def test_a_task_that_was_steady_is_started_again_soon() -> None:
    made = kept(*[dies] * 5, lives_long, dies)
    *_, steady, first, second = made.begins
    assert first - steady == STEADY_SECONDS + 1
    assert second - first == 2


def test_a_death_is_logged_with_what_follows_and_where_it_happened() -> None:
    made = kept(dies)
    (event,) = made.reported.of(Event.TASK_DIED)
    (error,) = event.pop("exception")
    assert event == {"level": "error", "task": "rounds", "then": "restart"}
    assert (error["exc_type"], error["exc_value"]) == ("ValueError", "broken")
    assert error["frames"][-1]["name"] == "dies"


def test_a_task_that_returns_before_its_time_has_died_too() -> None:
    made = kept(returns)
    assert made.supervisor.restarts == {"rounds": 1}
    assert [event["why"] for event in made.reported.of(Event.TASK_DIED)] == ["it ended"]


def test_a_task_that_returns_because_the_service_stops_has_not_died() -> None:
    made = kept()
    assert made.supervisor.restarts == {"rounds": 0}, "shown as zero, not absent"
    assert made.reported.events == []


@pytest.mark.parametrize("life", [dies, returns])
def test_the_death_of_a_vital_task_stops_the_service(life: Callable[[], Awaitable[None]]) -> None:
    made = kept(life, on_death=OnDeath.STOP)
    assert made.stop.is_set()
    assert made.supervisor.failed == "rounds"
    assert made.supervisor.restarts == {"rounds": 0}
    assert made.begins == [0.0]


def test_stopping_does_not_wait_for_the_next_start() -> None:
    made = Kept()

    async def body() -> float:
        persistence = asyncio.ensure_future(made.supervisor.keep(made.task(*[dies] * 20)))
        await asyncio.sleep(100)
        begins = len(made.begins)
        made.stop.set()
        stopped = now()
        await persistence
        assert len(made.begins) == begins
        return now() - stopped

    assert run_instantly(body) == 0


def test_a_task_that_dies_while_the_service_stops_is_told_and_not_started_again() -> None:
    made = Kept()

    async def dies_at_the_end() -> None:
        made.stop.set()
        raise ValueError("while draining")

    run_instantly(lambda: made.supervisor.keep(made.task(dies_at_the_end)))
    assert len(made.begins) == 1
    assert made.reported.names == [Event.TASK_DIED]


def test_a_task_is_not_begun_when_the_service_has_stopped() -> None:
    made = Kept()
    made.stop.set()
    run_instantly(lambda: made.supervisor.keep(made.task()))
    assert made.begins == []


def test_cancelling_is_no_death() -> None:
    made = Kept()

    async def body() -> None:
        persistence = asyncio.ensure_future(made.supervisor.keep(made.task(lives_long)))
        await asyncio.sleep(1)
        persistence.cancel()
        with pytest.raises(asyncio.CancelledError):
            await persistence

    run_instantly(body)
    assert made.reported.events == []


def test_a_part_that_fails_alone_is_told_and_gives_nothing() -> None:
    made = Kept()

    def fails() -> int:
        raise ZeroDivisionError

    assert made.supervisor.attempt("some_rule", fails) is None
    assert made.supervisor.attempt("some_rule", lambda: 7) == 7
    (event,) = made.reported.of(Event.PART_FAILED)
    assert event["part"] == "some_rule"
    assert event["exception"][0]["exc_type"] == "ZeroDivisionError"
