"""Jobs of a service in real time, at intervals of fractions of a second."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from datetime import timedelta
from itertools import pairwise
from typing import Final, TypeVar

import pytest

from service.runtime.clock import ClockReading, monotonic, utc_now, wait_until
from service.runtime.threads import in_thread
from service.scheduling.job import Call, CatchUp, Job, RunContext
from service.scheduling.performing import Performer
from service.scheduling.runner import Runner
from service.scheduling.scheduler import Scheduler
from service.scheduling.triggers import Every
from tests.fake_runs import MemoryRuns
from tests.unit.service.runtime.recorded_log import RecordedLog

pytestmark = pytest.mark.integration

T = TypeVar("T")
INTERVAL: Final = timedelta(seconds=0.1)
SECONDS: Final = 180.0


def attempt(_name: str, function: Callable[[], T], /) -> T | None:
    return function()


class Clocks:
    """The machine's, of which the wall clock can be set."""

    def __init__(self) -> None:
        self.ahead = timedelta(0)

    def read(self) -> ClockReading:
        return ClockReading(wall=utc_now() + self.ahead, monotonic_seconds=monotonic())


def test_a_job_runs_at_every_due_time_until_the_service_stops() -> None:
    runs: list[RunContext] = []
    clocks = Clocks()

    def work(context: RunContext) -> Mapping[str, int]:
        runs.append(context)
        return {}

    async def run() -> None:
        stop = asyncio.Event()
        runner = Runner(
            [
                Job(
                    name="often",
                    trigger=Every(interval=INTERVAL),
                    grace=timedelta(minutes=5),
                    timeout=timedelta(minutes=5),
                    catch_up=CatchUp.SKIP,
                    work=Call(work),
                )
            ],
            MemoryRuns(),
            Performer(attempt, stop),
            utc_now=lambda: clocks.read().wall,
            monotonic=monotonic,
            log=RecordedLog().log,
        )
        scheduler = Scheduler(
            runner, stop, clocks=clocks.read, first_after_seconds=0.01, observation_seconds=0.3
        )
        running = asyncio.ensure_future(scheduler.run())
        await reached(lambda: len(runs) >= 5)
        clocks.ahead = timedelta(days=-400)
        count = len(runs)
        await reached(lambda: len(runs) >= count + 5)
        assert runs[-1].now - runs[0].now < timedelta(days=-399)
        stop.set()
        await running
        count = len(runs)
        await asyncio.sleep(3 * INTERVAL.total_seconds())
        assert len(runs) == count

    asyncio.run(run())
    before = [one.due_at for one in runs[:5]]
    assert all(one % INTERVAL == timedelta(0) for one in (due - before[0] for due in before))
    assert all(later > earlier for earlier, later in pairwise(before))


async def reached(condition: Callable[[], bool]) -> None:
    assert await in_thread(lambda: wait_until(condition, timeout_seconds=SECONDS))
