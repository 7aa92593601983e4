"""The jobs of the service on a real database, from their first run to the answer of the API."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from typing import Final
from uuid import uuid4

import pytest
from sqlalchemy import text

from service.app.jobs import JobParts, make_jobs
from service.runtime.clock import monotonic, utc_now, wait_until
from service.runtime.supervisor import Supervisor
from service.runtime.threads import in_thread
from service.storage.database.engine import open_database
from service.storage.rounds.store import PostgresStore
from tests.folders import new_folder
from tests.unit.service.runtime.recorded_log import RecordedLog

pytestmark = pytest.mark.integration

SECONDS: Final = 180.0
DAY: Final = timedelta(days=1)
ONE_RUN: Final = """INSERT INTO job_run (cluster, job_name, due_at, started_at, outcome, detail, stats)
    VALUES ('default', 'retention', :at, :at, :outcome, '', '{}')"""


@pytest.fixture(scope="module")
def store() -> Iterator[PostgresStore]:
    folder = new_folder()
    made = PostgresStore(lambda: open_database(None, folder))
    made.load("default", uuid4())
    yield made
    made.close()
    shutil.rmtree(folder)


def made_of(store: PostgresStore, stop: asyncio.Event) -> JobParts:
    log = RecordedLog().log
    return make_jobs(
        store,
        cluster="default",
        keep_findings=90 * DAY,
        supervisor=Supervisor(log, stop, monotonic=monotonic),
        stop=stop,
        log=log,
    )


async def reached(condition: Callable[[], bool]) -> None:
    assert await in_thread(lambda: wait_until(condition, timeout_seconds=SECONDS))


def outcomes(jobs: JobParts) -> dict[str, list[str]]:
    return {
        one.name: [run.outcome for run in jobs.admin.runs(one.name, None, 10)]
        for one in jobs.admin.every()
    }


def note(store: PostgresStore, at: datetime, outcome: str) -> None:
    with store.engine.begin() as connection:
        connection.execute(text(ONE_RUN), {"at": at, "outcome": outcome})


def test_jobs_run_are_kept_and_shown(store: PostgresStore) -> None:
    async def test() -> None:
        stop = asyncio.Event()
        jobs = made_of(store, stop)
        jobs.admin.run_now("inbox_retention")  # before they begin
        assert await jobs.runner.begin()
        await reached(lambda: not any(one.is_running for one in jobs.runner.stats()))
        assert outcomes(jobs) == {"inbox_retention": ["succeeded"], "retention": ["succeeded"]}
        assert "skipped" in jobs.admin.runs("retention", None, 1)[0].stats, "it is too young"
        jobs.admin.loop = asyncio.get_running_loop()
        await in_thread(lambda: jobs.admin.run_now("inbox_retention"))
        await reached(lambda: len(jobs.admin.runs("inbox_retention", None, 10)) == 2)
        await reached(lambda: not any(one.is_running for one in jobs.runner.stats()))
        (newest, oldest) = jobs.admin.runs("inbox_retention", None, 10)
        assert jobs.admin.runs("inbox_retention", newest.id, 10) == [oldest]
        stop.set()
        await jobs.runner.close()

    asyncio.run(test())


def test_a_restart_finds_what_was_interrupted_and_removes_what_is_old(
    store: PostgresStore,
) -> None:
    now = utc_now()
    note(store, now - 1.5 * DAY, "succeeded")
    note(store, now - 100 * DAY, "succeeded")
    note(store, now + timedelta(minutes=1), "running")

    async def test() -> None:
        stop = asyncio.Event()
        jobs = made_of(store, stop)
        jobs.admin.run_now("retention")
        await jobs.runner.begin()
        await reached(lambda: not any(one.is_running for one in jobs.runner.stats()))
        run, interrupted, *_ = jobs.admin.runs("retention", None, 10)
        assert interrupted.outcome == "interrupted"
        assert (run.outcome, run.stats) == ("succeeded", {"job_runs": 1})
        stop.set()
        await jobs.runner.close()

    asyncio.run(test())
