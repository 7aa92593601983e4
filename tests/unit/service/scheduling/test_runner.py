"""What becomes of due times in a running service, with a clock and a database of the test's own."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, TypeVar

import pytest

from rules.errors import StoreError
from service.runtime.clock import wait_until
from service.runtime.events import Event
from service.runtime.threads import in_thread
from service.scheduling.job import Call, CatchUp, Job, JobStats, RunContext, RunOutcome
from service.scheduling.performing import Performer
from service.scheduling.runner import YOUNG, Runner, RunRequestOutcome
from tests.factories import NOON, at
from tests.fake_runs import KeptRuns, MemoryRuns
from tests.unit.service.runtime.recorded_log import RecordedLog
from tests.unit.service.scheduling.given import job

T = TypeVar("T")
AWAY = StoreError("the database is away", retryable=True)
SECONDS = 60.0  # never reached in a test that passes


def attempt(_name: str, function: Callable[[], T], /) -> T | None:
    try:
        return function()
    except ZeroDivisionError:
        return None


@dataclass
class Process:
    """A service as far as its jobs are concerned; its runs are counted."""

    kept: KeptRuns = field(default_factory=KeptRuns)
    now: datetime = NOON
    runs: list[datetime] = field(default_factory=list)
    fails: BaseException | None = None
    holds: threading.Event | None = None  # a run waits for it
    options: dict[str, Any] = field(default_factory=dict)
    leave_seconds: float = SECONDS

    def __post_init__(self) -> None:
        self.reported = RecordedLog()
        self.store = MemoryRuns(self.kept)

    def open(self) -> None:
        self.stop = asyncio.Event()
        self.job: Job = job(**{"work": Call(self._work), **self.options})
        self.runner = Runner(
            [self.job],
            self.store,
            Performer(attempt, self.stop, leave_seconds=self.leave_seconds),
            utc_now=lambda: self.now,
            monotonic=lambda: 0.0,
            log=self.reported.log,
        )

    def _work(self, context: RunContext) -> Mapping[str, int]:
        self.runs.append(context.due_at)
        if self.holds is not None:
            self.holds.wait(SECONDS)
        if self.fails is not None:
            raise self.fails
        return {"removed": len(self.runs)}

    async def at(self, seconds: float) -> None:
        """Observe a time, and let what runs end."""
        self.now = at(seconds)
        await self.runner.keep_rest()
        self.runner.observe()
        await self.idle()

    async def idle(self) -> None:
        await until(lambda: not self.stats.is_running)

    @property
    def stats(self) -> JobStats:
        return self.runner.stats()[0]

    def rows(self) -> list[tuple[float, str]]:
        found = self.kept.rows.values()
        return [((one.due_at - at(0)).total_seconds(), str(one.outcome)) for one in found]


async def until(condition: Callable[[], bool]) -> None:
    met = await in_thread(
        lambda: wait_until(condition, timeout_seconds=SECONDS, poll_seconds=0.002)
    )
    assert met


def run(process: Process, test: Callable[[Process], Awaitable[None]]) -> Process:
    async def body() -> None:
        process.open()
        await test(process)

    asyncio.run(body())
    return process


async def begun(process: Process, seconds: float = 0) -> None:
    process.now = at(seconds)
    assert await process.runner.begin()
    await process.idle()


def test_a_job_runs_at_its_due_times_and_every_run_is_kept() -> None:
    async def test(process: Process) -> None:
        await begun(process)
        for seconds in (30, 600, 610, 1200):
            await process.at(seconds)

    process = run(Process(), test)
    assert process.runs == [at(0), at(600), at(1200)]
    assert process.rows() == [(0, "succeeded"), (600, "succeeded"), (1200, "succeeded")]
    assert process.stats.ends[RunOutcome.SUCCEEDED] == 3
    assert process.stats.last_success == at(1200)
    assert process.stats.late == 0
    assert process.kept.rows[3].stats == {"removed": 3}


def test_a_restart_makes_up_for_what_was_missed_with_one_run() -> None:
    kept = KeptRuns()

    async def before(process: Process) -> None:
        await begun(process)

    async def after(process: Process) -> None:
        await begun(process, 3700)
        await process.at(3900)

    run(Process(kept), before)
    process = run(Process(kept), after)
    assert process.runs == [at(3600)]
    assert process.rows() == [(0, "succeeded"), (3600, "missed"), (3600, "succeeded")]
    assert process.kept.rows[2].stats == {"times": 6}
    assert process.stats.ends[RunOutcome.MISSED] == 6
    assert process.stats.late == 1
    assert process.reported.of(Event.JOB_MISSED)[0]["times"] == 6


def test_a_run_that_was_interrupted_is_repeated_by_the_next_process() -> None:
    kept = KeptRuns()

    async def dies(process: Process) -> None:
        process.holds = threading.Event()
        await process.runner.begin()
        await until(lambda: bool(process.runs))
        process.store.die()
        process.store.fails = AWAY
        process.holds.set()

    run(Process(kept), dies)
    process = run(Process(kept, at(30)), lambda process: begun(process, 30))
    assert process.rows() == [(0, "interrupted"), (30, "succeeded")]


@pytest.mark.parametrize("catch_up", CatchUp)
def test_the_database_away_delays_a_run_and_loses_none(catch_up: CatchUp) -> None:
    async def test(process: Process) -> None:
        await begun(process)
        process.runs.clear()
        process.store.fails = AWAY
        await process.at(600)
        await process.at(630)
        assert process.runs == []
        process.store.fails = None
        await process.at(650)
        assert process.runs == [at(600)]
        process.store.fails = AWAY
        await process.at(1200)
        process.store.fails = None
        await process.at(1290)

    process = run(Process(options={"catch_up": catch_up}), test)
    assert [one["why"] for one in process.reported.of(Event.JOBS_AWAY)] == [str(AWAY)] * 2
    in_vain = catch_up is CatchUp.SKIP
    assert process.runs == ([at(600)] if in_vain else [at(600), at(1200)])
    assert process.stats.ends[RunOutcome.MISSED] == in_vain


def test_an_end_that_could_not_be_kept_is_kept_later() -> None:
    async def test(process: Process) -> None:
        process.holds = threading.Event()
        await process.runner.begin()
        await until(lambda: bool(process.runs))
        process.store.fails = AWAY
        process.holds.set()
        await process.idle()
        assert process.rows() == [(0, "running")]
        process.store.fails = None
        await process.at(30)

    assert run(Process(), test).rows() == [(0, "succeeded")]


def test_what_earlier_processes_left_is_asked_until_the_database_answers() -> None:
    async def test(process: Process) -> None:
        process.store.fails = AWAY
        assert not await process.runner.begin()
        await process.at(600)
        assert process.runs == []
        process.store.fails = None
        await begun(process, 700)

    assert run(Process(), test).runs == [at(700)]


def test_what_a_person_asks_for_before_jobs_begin_is_run_then() -> None:
    async def test(process: Process) -> None:
        assert process.runner.run_now("sweep") is RunRequestOutcome.BEGUN
        assert process.runs == []
        (state,) = process.runner.states()
        assert state.waits_for == YOUNG
        await begun(process, 30)
        (state,) = process.runner.states()
        assert state.waits_for is None

    assert run(Process(options={"catch_up": CatchUp.SKIP}), test).runs == [at(0)]


@pytest.mark.parametrize(
    ("fails", "why"),
    [
        (AWAY, str(AWAY)),
        (
            ZeroDivisionError(),
            "a defect of Tidemark: its log has the traceback under part_failed",
        ),
    ],
    ids=["error", "defect"],
)
def test_a_run_that_fails_is_told_and_the_job_goes_on(fails: BaseException, why: str) -> None:
    async def test(process: Process) -> None:
        await begun(process)
        process.fails = None
        await process.at(600)

    process = run(Process(fails=fails), test)
    assert process.rows() == [(0, "failed"), (600, "succeeded")]
    assert process.kept.rows[1].detail == why
    assert process.reported.of(Event.JOB_ENDED)[0] == {
        "level": "warning",
        "job": "sweep",
        "outcome": "failed",
        "took_seconds": 0.0,
        "stats": {},
        "why": why,
    }


def test_a_job_never_runs_twice_at_once_and_what_it_outlasts_is_missed() -> None:
    async def test(process: Process) -> None:
        process.holds = threading.Event()
        await process.runner.begin()
        await until(lambda: bool(process.runs))
        for seconds in (600, 670, 1210):
            process.now = at(seconds)
            process.runner.observe()
        assert process.runner.run_now("sweep") is RunRequestOutcome.RUNNING
        process.holds.set()
        await process.idle()
        await process.at(1215)

    process = run(Process(), test)
    assert process.runs == [at(0), at(1200)]
    assert process.stats.ends[RunOutcome.MISSED] == 1


def test_a_thread_that_does_not_end_in_time_is_not_joined_by_another() -> None:
    async def test(process: Process) -> None:
        process.holds = threading.Event()
        await process.runner.begin()
        await until(lambda: process.stats.ends[RunOutcome.TIMED_OUT] == 1)
        process.now = at(600)
        process.runner.observe()
        assert process.stats.is_running
        assert len(process.runs) == 1
        process.holds.set()
        await process.idle()
        process.stop.set()

    short = {"timeout": timedelta(seconds=0.01)}
    process = run(Process(options=short, leave_seconds=0.01), test)
    assert process.rows() == [(0, "timed_out")]
    assert process.kept.rows[1].detail == "it did not end within 0:00:00.010000"


def test_a_service_that_stops_lets_a_run_end_and_begins_none() -> None:
    async def test(process: Process) -> None:
        process.holds = threading.Event()
        await process.runner.begin()
        await until(lambda: bool(process.runs))
        process.stop.set()
        closing = asyncio.ensure_future(process.runner.close())
        await asyncio.sleep(0)
        process.holds.set()
        await closing
        process.now = at(600)
        process.runner.observe()
        assert process.runner.run_now("sweep") is RunRequestOutcome.STOPPING

    process = run(Process(), test)
    assert process.rows() == [(0, "interrupted")]
    assert process.runs == [at(0)]


def test_a_person_can_have_a_job_run_now() -> None:
    async def test(process: Process) -> None:
        await begun(process)
        process.now = at(100)
        assert process.runner.run_now("other") is RunRequestOutcome.UNKNOWN
        assert process.runner.run_now("sweep") is RunRequestOutcome.BEGUN
        await process.idle()
        await process.at(600)

    process = run(Process(), test)
    assert process.runs == [at(0), at(100), at(600)]
    assert process.stats.late == 0
    (state,) = process.runner.states()
    assert (state.name, state.trigger, state.next_due) == ("sweep", "every 10 minutes", at(1200))


def test_of_two_processes_one_runs_a_job_and_both_know() -> None:
    kept = KeptRuns()
    one, other = Process(kept), Process(kept)

    async def both() -> None:
        for process in (one, other):
            process.open()
            await begun(process)
        for seconds in (600, 1200):
            await one.at(seconds)
            await other.at(seconds + 1)

    asyncio.run(both())
    assert (one.runs[1:], other.runs) == ([at(600), at(1200)], [])
    assert other.stats.last_success == at(1200)
    assert other.stats.ends[RunOutcome.SUCCEEDED] == 0


def test_a_clock_that_jumps_and_is_set_back_stops_nothing() -> None:
    year = 365 * 24 * 3600.0

    async def test(process: Process) -> None:
        await begun(process)
        for seconds in (year, 700, 1200):
            await process.at(seconds)

    process = run(Process(), test)
    assert process.runs == [at(0), at(year), at(1200)]
