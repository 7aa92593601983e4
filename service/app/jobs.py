"""Builds the jobs of the service, their runner and their API."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from service.api.core.admin_services import JobView
from service.jobs.retention import OldRows, Retention, RunsBefore
from service.observe.log_inbox import remove_read
from service.runtime.clock import ClockReading, monotonic, utc_now
from service.runtime.log import Log
from service.runtime.supervisor import Supervisor, Task
from service.scheduling.job import Call, CatchUp, Job, JobState, RunContext, Stats
from service.scheduling.performing import Performer
from service.scheduling.runner import Runner
from service.scheduling.scheduler import Scheduler
from service.scheduling.triggers import Every
from service.storage.jobs.jobs import StoredRun, StoredRuns
from service.storage.jobs.retention import Kind, last_run_before, remove
from service.storage.rounds.inbox import StoredInbox
from service.storage.rounds.store import PostgresStore

MINUTE: Final = timedelta(minutes=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class JobParts:
    """What the service needs of its jobs."""

    runner: Runner
    task: Task
    admin: JobAdmin


def make_jobs(  # noqa: PLR0913 - each by its name
    store: PostgresStore,
    *,
    cluster: str,
    keep_findings: timedelta,
    supervisor: Supervisor,
    stop: asyncio.Event,
    log: Log,
    more: Callable[[RunsBefore], Sequence[Job]] = lambda _: (),
) -> JobParts:
    """Build the jobs of a cluster, by its configured name; nothing runs yet.

    `keep_findings`: how long closed findings are kept.

    `more` makes the jobs of other parts, and is given the store of earlier runs.
    """
    runs, rows = StoredRuns(lambda: store.engine, cluster), _OldRows(store, cluster)
    runner = Runner(
        [
            _retention(rows, keep_findings, log),
            _inbox_retention(StoredInbox(lambda: store.engine, cluster)),
            *more(rows),
        ],
        runs,
        Performer(supervisor.attempt, stop),
        utc_now=utc_now,
        monotonic=monotonic,
        log=log,
    )
    scheduler = Scheduler(
        runner, stop, clocks=lambda: ClockReading(wall=utc_now(), monotonic_seconds=monotonic())
    )
    admin = JobAdmin(runner, runs)

    async def run() -> None:
        admin.loop = asyncio.get_running_loop()
        await scheduler.run()

    return JobParts(runner=runner, task=Task(name="jobs", run=run), admin=admin)


def _retention(rows: OldRows, keep_findings: timedelta, log: Log) -> Job:
    retention = Retention(rows, keep_findings, log)
    return Job(
        name="retention",
        what="removes findings, alerts, deliveries and runs that are old enough",
        trigger=Every(interval=60 * MINUTE),
        grace=30 * MINUTE,
        timeout=15 * MINUTE,
        catch_up=CatchUp.ONCE,
        work=Call(retention.run),
    )


def _inbox_retention(inbox: StoredInbox) -> Job:
    def work(context: RunContext) -> Stats:
        return {"removed": remove_read(inbox, context.now)}

    return Job(
        name="inbox_retention",
        what="removes log lines that rounds have read",
        trigger=Every(interval=10 * MINUTE),
        grace=5 * MINUTE,
        timeout=5 * MINUTE,
        catch_up=CatchUp.SKIP,
        work=Call(work),
    )


class _OldRows:
    """Old rows of one cluster, in the database that the store is connected to."""

    def __init__(self, store: PostgresStore, cluster: str) -> None:
        self._store = store
        self._cluster = cluster

    def ran_before(self, timestamp: datetime) -> datetime | None:
        return last_run_before(self._store.engine, self._cluster, timestamp)

    def remove(
        self, limits: Mapping[Kind, datetime], now: datetime, is_over: Callable[[], bool]
    ) -> Stats:
        return remove(self._store.engine, self._cluster, limits, now, is_over)


class JobAdmin:
    """The jobs as the HTTP API shows them; its calls come from threads."""

    def __init__(self, runner: Runner, runs: StoredRuns) -> None:
        self._runner = runner
        self._runs = runs
        self.loop: asyncio.AbstractEventLoop | None = None  # set when the jobs begin

    def every(self) -> Sequence[JobView]:
        """Return all jobs, by name.

        Raises:
            StoreError: the database is away.
        """
        return [
            self._view(state)
            for state in sorted(self._runner.states(), key=lambda state: state.name)
        ]

    def runs(self, name: str, before: int | None, limit: int) -> Sequence[StoredRun]:
        """Return runs of a job, newest first, those that come after a row.

        Raises:
            StoreError: the database is away.
        """
        return self._runs.runs(name, limit, before)

    def run_now(self, name: str) -> None:
        """Request a run beside the due times; its outcome is in the run's own record."""
        if self.loop is None:
            self._runner.run_now(name)
        elif not self.loop.is_closed():
            self.loop.call_soon_threadsafe(self._runner.run_now, name)

    def _view(self, state: JobState) -> JobView:
        last = self._runs.runs(state.name, 1)
        return JobView(
            name=state.name,
            trigger=state.trigger,
            next_due_at=state.next_due,
            is_running=state.stats.is_running,
            last_run=last[0] if last else None,
            waits_for=state.waits_for,
        )
