"""Runs jobs when they are due, makes up for missed runs, and records every run.

All of it happens on the event loop; runs and the database have threads of their own. If a run was held up
(the database is away, an earlier run goes on, the machine slept), the next check decides about it.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, Final, TypeVar

from rules.errors import StoreError
from service.runtime.events import Event
from service.runtime.log import Log
from service.runtime.threads import in_thread
from service.scheduling.deciding import Decision, at_start, decide
from service.scheduling.job import (
    CatchUp,
    Ended,
    Job,
    JobState,
    JobStats,
    Known,
    Rejected,
    RunOutcome,
    RunStore,
    Turn,
)
from service.scheduling.performing import Performer
from service.scheduling.triggers import Passed

T = TypeVar("T")
LATE: Final = timedelta(seconds=60)
YOUNG: Final = "the service, to have run for a minute: jobs begin then"
AWAY: Final = "the database, which is away"
MOST_UNKEPT: Final = 100  # ends that wait for the database


class RunRequestOutcome(StrEnum):
    """The result of an operator's request to run a job now."""

    BEGUN = "begun"
    RUNNING = "running"  # already
    UNKNOWN = "unknown"  # there is no such job
    STOPPING = "stopping"  # the service ends


class Runner:
    """The jobs of one process."""

    def __init__(  # noqa: PLR0913 - each by its name
        self,
        jobs: Sequence[Job],
        store: RunStore,
        performer: Performer,
        *,
        utc_now: Callable[[], datetime],
        monotonic: Callable[[], float],
        log: Log,
    ) -> None:
        self.jobs = {job.name: job for job in jobs}
        self._store = store
        self._performer = performer
        self._utc_now = utc_now
        self._monotonic = monotonic
        self._log = log
        self._is_begun = False  # what earlier processes left is known
        self._settled: dict[str, datetime] = {}  # up to where is decided
        self._running: dict[str, asyncio.Future[None]] = {}
        self._owed: dict[str, datetime] = {}  # due times whose runs could not be begun
        self._unkept: deque[Callable[[], None]] = deque()
        self._persistence = asyncio.Lock()
        self._closing = asyncio.Event()
        self._is_away = False  # the database, and that is logged
        self._stats = {name: JobStats(name=name) for name in self.jobs}

    def stats(self) -> tuple[JobStats, ...]:
        """Return the stats of all jobs."""
        return tuple(
            replace(job_stats, is_running=name in self._running)
            for name, job_stats in self._stats.items()
        )

    def states(self) -> tuple[JobState, ...]:
        """Return the state of all jobs."""
        now = self._utc_now()
        return tuple(
            JobState(
                name=job.name,
                trigger=str(job.trigger),
                next_due=job.trigger.after(now),
                waits_for=self._waits_for(),
                stats=stats,
            )
            for job, stats in zip(self.jobs.values(), self.stats(), strict=True)
        )

    def _waits_for(self) -> str | None:
        if self._is_away:
            return AWAY
        return None if self._is_begun else YOUNG

    async def begin(self) -> bool:
        """Load the earlier runs, and make up for missed ones; False while they cannot be read."""
        if self._is_begun:
            return True
        now = self._utc_now()
        histories = await self._call_store(lambda: self._store.known(tuple(self.jobs), now))
        if histories is None:
            return False
        for job in self.jobs.values():
            left = histories.get(job.name, Known())
            self._change(job.name, last_success=left.last_success)
            self._take(job, at_start(job, left, now), now)
        self._is_begun = True
        self.observe()
        return True

    def observe(self) -> None:
        """Run every job that is due."""
        for name in self.jobs:
            self.consider(name)

    def consider(self, name: str) -> None:
        """Run a job if it is due, or was due and could not be begun."""
        if not self._is_begun or self._closing.is_set():
            return
        job, now = self.jobs[name], self._utc_now()
        is_running = name in self._running
        self._take(job, decide(job, self._settled[name], now, is_running=is_running), now)
        if name in self._owed and name not in self._running:
            self._pay(job, self._owed.pop(name), now)

    def run_now(self, name: str) -> RunRequestOutcome:
        """Run a job at an operator's request, regardless of when it is due; call it on the event loop.

        Before jobs begin it may be called from any thread: the job is run as soon as they do.
        """
        if name not in self.jobs:
            return RunRequestOutcome.UNKNOWN
        if self._closing.is_set():
            return RunRequestOutcome.STOPPING
        if not self._is_begun:
            self._owed[name] = self._utc_now()
            return RunRequestOutcome.BEGUN
        if name in self._running:
            return RunRequestOutcome.RUNNING
        self._start(self.jobs[name], self._utc_now())
        return RunRequestOutcome.BEGUN

    async def close(self) -> None:
        """Begin no more runs, and wait for those under way, which have been signalled to end."""
        self._closing.set()
        if self._running:
            await asyncio.wait(tuple(self._running.values()))
        await self.keep_rest()

    async def keep_rest(self) -> None:
        """Store the records that could not be stored yet, in order."""
        async with self._persistence:
            while self._unkept:
                if await self._call_store(_done(self._unkept[0])) is None:
                    return
                self._unkept.popleft()

    def _take(self, job: Job, decision: Decision, now: datetime) -> None:
        self._settled[job.name] = decision.settled_to
        if decision.missed is not None:
            self._note_missed(job, decision.missed, now)
        if decision.run is not None:
            self._owed.pop(job.name, None)  # this run makes up for it
            self._start(job, decision.run)

    def _pay(self, job: Job, due_at: datetime, now: datetime) -> None:
        """Run a job that could not be begun when it was due, if it is not too late."""
        if job.catch_up is CatchUp.SKIP and now - due_at > job.grace:
            self._note_missed(job, Passed(last=due_at, times=1), now)
        else:
            self._start(job, due_at)

    def _note_missed(self, job: Job, missed: Passed, now: datetime) -> None:
        self._count(job.name, RunOutcome.MISSED, missed.times)
        last = missed.last.isoformat()
        self._log.warning(Event.JOB_MISSED, job=job.name, last_due=last, times=missed.times)
        self._keep(lambda: self._store.missed(job.name, missed.last, now, missed.times))

    def _start(self, job: Job, due_at: datetime) -> None:
        running = asyncio.ensure_future(self._run(job, due_at))
        self._running[job.name] = running
        running.add_done_callback(lambda ended: self._over(job, ended))

    def _over(self, job: Job, ended: asyncio.Future[None]) -> None:
        self._running.pop(job.name, None)
        died = None if ended.cancelled() else ended.exception()
        if died is not None:  # a defect of ours; the job is due again
            self._count(job.name, RunOutcome.FAILED, 1)
            self._log.error(Event.JOB_ENDED, job=job.name, outcome="failed", exc_info=died)

    async def _run(self, job: Job, due_at: datetime) -> None:
        """Run a job; one that cannot be begun is owed until the database is back."""
        await self.keep_rest()
        now = self._utc_now()
        turn = await self._call_store(lambda: self._store.begin(job.name, due_at, now))
        if turn is None:
            self._owed[job.name] = due_at
        elif isinstance(turn, Rejected):
            await self._learn_of(job, now)
        else:
            try:
                await self._perform(job, turn, due_at, now)
            finally:
                await in_thread(turn.release, name="jobs")

    async def _learn_of(self, job: Job, now: datetime) -> None:
        """Load the last success of a job that another process runs."""
        histories = await self._call_store(lambda: self._store.known((job.name,), now))
        if histories is not None:
            self._change(job.name, last_success=histories[job.name].last_success)

    async def _perform(self, job: Job, turn: Turn, due_at: datetime, now: datetime) -> None:
        if now - due_at > LATE:
            self._change(job.name, late=self._stats[job.name].late + 1)
        began = self._monotonic()
        performed = await self._performer.perform(job, due_at, now)
        self._note_end(job, performed.ended, self._monotonic() - began)
        ended_at = self._utc_now()
        self._keep(lambda: turn.end(performed.ended, ended_at))
        await self.keep_rest()
        if performed.left is not None:
            await self._await_leftover(performed.left)

    async def _await_leftover(self, left: asyncio.Future[Ended]) -> None:
        """Wait for a thread that goes on after its timeout: until it ends the job cannot be run again."""
        closing = asyncio.ensure_future(self._closing.wait())
        await asyncio.wait((left, closing), return_when=asyncio.FIRST_COMPLETED)
        closing.cancel()

    def _note_end(self, job: Job, ended: Ended, took: float) -> None:
        self._count(job.name, ended.outcome, 1)
        self._change(job.name, took_seconds=took)
        if ended.outcome is RunOutcome.SUCCEEDED:
            self._change(job.name, last_success=self._utc_now())
        fields = {"job": job.name, "outcome": str(ended.outcome), "took_seconds": round(took, 3)}
        if ended.detail:
            fields["why"] = ended.detail
        self._log_method(ended)(Event.JOB_ENDED, stats=dict(ended.stats), **fields)

    def _log_method(self, ended: Ended) -> Callable[..., object]:
        """Return the method of the log: a run that had nothing to do is logged at the lowest level."""
        if ended.outcome not in (RunOutcome.SUCCEEDED, RunOutcome.INTERRUPTED):
            return self._log.warning
        return self._log.info if any(ended.stats.values()) else self._log.debug

    def _count(self, name: str, outcome: RunOutcome, times: int) -> None:
        ends = self._stats[name].ends
        self._change(name, ends={**ends, outcome: ends[outcome] + times})

    def _change(self, name: str, **changes: Any) -> None:
        self._stats[name] = replace(self._stats[name], **changes)

    def _keep(self, persistence: Callable[[], None]) -> None:
        if len(self._unkept) == MOST_UNKEPT:
            self._unkept.popleft()  # its row, if it has one, is taken for interrupted by a restart
        self._unkept.append(persistence)

    async def _call_store(self, call: Callable[[], T]) -> T | None:
        """Call the database; None while it is away, which is logged once."""
        try:
            answer = await in_thread(call, name="jobs")
        except StoreError as exc:
            if not self._is_away:
                self._log.warning(Event.JOBS_AWAY, why=str(exc))
            self._is_away = True
            return None
        self._is_away = False
        return answer


def _done(call: Callable[[], None]) -> Callable[[], bool]:
    def called() -> bool:
        call()
        return True

    return called
