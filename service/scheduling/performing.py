"""Performs one run: within its timeout, and no longer than the service runs."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final, TypeAlias

from rules.errors import TidemarkError
from service.runtime.threads import in_thread
from service.scheduling.command import GUARD_SECONDS, RunningCommand
from service.scheduling.job import Call, Command, Ended, Job, RunContext, RunOutcome, Stats

LEAVE_SECONDS: Final = 2.0  # for a function after the signal to end: the service waits for it


# Calls a function; a defect of ours in it is logged, and the result is None.
Attempt: TypeAlias = Callable[[str, Callable[[], Ended]], Ended | None]


@dataclass(frozen=True, slots=True)
class Performed:
    """How a run ended, and the thread that goes on if it could not be ended."""

    ended: Ended
    left: asyncio.Future[Ended] | None = None  # a thread that did not end in time


class Performer:
    """Performs runs until the service stops."""

    def __init__(
        self, attempt: Attempt, stop: asyncio.Event, *, leave_seconds: float = LEAVE_SECONDS
    ) -> None:
        self._attempt = attempt
        self._stop = stop
        self._leave_seconds = leave_seconds

    async def perform(self, job: Job, due_at: datetime, now: datetime) -> Performed:
        """Run a job once."""
        match job.work:
            case Call(function):
                return await self._call(job, function, due_at, now)
            case Command():
                return await self._run_command(job, job.work)

    async def _call(
        self, job: Job, function: Callable[[RunContext], Stats], due_at: datetime, now: datetime
    ) -> Performed:
        is_late = asyncio.Event()
        context = RunContext(
            due_at=due_at, now=now, is_over=lambda: is_late.is_set() or self._stop.is_set()
        )

        def run() -> Ended:
            try:
                return Ended(outcome=RunOutcome.SUCCEEDED, stats=dict(function(context)))
            except TidemarkError as exc:
                return Ended(outcome=RunOutcome.FAILED, detail=str(exc))

        name = f"job_{job.name}"
        called = asyncio.ensure_future(in_thread(lambda: self._attempt(name, run), name=name))
        doing = asyncio.ensure_future(_result_of(called))
        if await self._done_in_time(doing, job):
            return Performed(doing.result())
        is_late.set()
        ended = self._end_of_cut_short(job)
        await asyncio.wait((doing,), timeout=self._leave_seconds)
        if doing.done():
            return Performed(replace(ended, stats=doing.result().stats))
        return Performed(ended, left=doing)

    async def _run_command(self, job: Job, command: Command) -> Performed:
        try:
            running = await RunningCommand.start(command)
        except OSError as exc:  # no process can be started any more, say
            reason = f"it cannot be started: {exc.strerror}"
            return Performed(Ended(outcome=RunOutcome.FAILED, detail=reason))
        doing = asyncio.ensure_future(running.ended())
        try:
            if await self._done_in_time(doing, job):
                return Performed(doing.result())
            running.end()
            await asyncio.wait((doing,), timeout=GUARD_SECONDS)
            if not doing.done():
                running.kill_guard()
                await asyncio.wait((doing,), timeout=GUARD_SECONDS)
        finally:
            running.end()
            doing.cancel()
        return Performed(self._end_of_cut_short(job))

    def _end_of_cut_short(self, job: Job) -> Ended:
        if self._stop.is_set():
            return Ended(outcome=RunOutcome.INTERRUPTED, detail="the service stopped")
        reason = f"it did not end within {job.timeout}"
        return Ended(outcome=RunOutcome.TIMED_OUT, detail=reason)

    async def _done_in_time(self, doing: asyncio.Future[Ended], job: Job) -> bool:
        """Wait for the end of a run, its timeout, or the end of the service; return whether it ended."""
        stopping = asyncio.ensure_future(self._stop.wait())
        try:
            await asyncio.wait(
                (doing, stopping),
                timeout=job.timeout.total_seconds(),
                return_when=asyncio.FIRST_COMPLETED,
            )
        finally:
            stopping.cancel()
        return doing.done()


async def _result_of(called: asyncio.Future[Ended | None]) -> Ended:
    ended = await called
    if ended is None:
        reason = "a defect of Tidemark: its log has the traceback under part_failed"
        return Ended(outcome=RunOutcome.FAILED, detail=reason)
    return ended
