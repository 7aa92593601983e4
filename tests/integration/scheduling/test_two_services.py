"""Two services of two clusters on one database: every job of each runs at every due time of its own.

`JOB_DAYS` is how many days pass; where it is set, the baseline run is the real program.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final
from uuid import uuid4

import pytest

from service.app.history import NIGHTLY, history_jobs, nightly_jobs
from service.app.jobs import make_jobs
from service.runtime.clock import monotonic, wait_until
from service.runtime.supervisor import Supervisor
from service.runtime.threads import in_thread
from service.scheduling.job import Command, Job, RunOutcome
from service.scheduling.performing import Performer
from service.scheduling.runner import Runner
from service.settings import read_settings
from service.storage.database.engine import open_database
from service.storage.jobs.jobs import StoredRuns
from service.storage.rounds.store import PostgresStore
from tests.factories import NOON
from tests.integration.storage.conftest import MakeDatabase, embedded, new_database
from tests.unit.service.runtime.recorded_log import RecordedLog

__all__ = ["embedded", "new_database"]
pytestmark = pytest.mark.integration

CLUSTERS: Final = ("east", "west")
JOBS: Final = ("history_folding", "history_retention", "inbox_retention", NIGHTLY, "retention")
DAY: Final = timedelta(days=1)
LONG: Final = int(os.environ.get("JOB_DAYS", "0"))
DAYS: Final = LONG or 2
MISSED: Final = Counter({RunOutcome.MISSED: 10_000})  # due times between two observations
START: Final = NOON.replace(hour=2, minute=30)  # when every job is due
SECONDS: Final = 600.0 if LONG else 180.0  # never reached in a test that passes


class Service:
    """The jobs of one service, by a clock that is moved by hand."""

    def __init__(self, url: str, cluster: str, folder: Path) -> None:
        self.now = NOON
        self._stop = asyncio.Event()
        self._store = PostgresStore(lambda: open_database(url, folder))
        self._store.load(cluster, uuid4())
        self.runs = StoredRuns(lambda: self._store.engine, cluster)
        log = RecordedLog().log
        supervisor = Supervisor(log, self._stop, monotonic=monotonic)
        self.runner = Runner(
            list(self._jobs(url, cluster, folder, supervisor)),
            self.runs,
            Performer(supervisor.attempt, self._stop),
            utc_now=lambda: self.now,
            monotonic=monotonic,
            log=log,
        )

    def _jobs(self, url: str, cluster: str, folder: Path, supervisor: Supervisor) -> Iterator[Job]:
        """Yield the jobs that a service has."""
        config = folder / "tidemark.toml"
        config.write_text(f'[database]\nurl = "{url}"\n', encoding="utf-8")
        flags = {"kafka": {"name": cluster}, "service": {"data_dir": str(folder)}}
        settings = read_settings({}, path=config, flags=flags)
        log = RecordedLog().log
        made = make_jobs(
            self._store,
            cluster=cluster,
            keep_findings=90 * DAY,
            supervisor=supervisor,
            stop=self._stop,
            log=log,
            more=lambda runs: [
                *history_jobs(settings, runs, log),
                *nightly_jobs(settings, config),
            ],
        )
        for job in made.runner.jobs.values():
            is_short = job.name == NIGHTLY and not LONG
            yield replace(job, work=Command((sys.executable, "-c", ""))) if is_short else job

    async def run_until(self, now: datetime) -> None:
        """Let the clock be at a time, and all that is due run to its end."""
        self.now = now
        assert await self.runner.begin()
        self.runner.observe()
        idle = lambda: not any(job.is_running for job in self.runner.stats())  # noqa: E731
        assert await in_thread(lambda: wait_until(idle, timeout_seconds=SECONDS))

    def ran(self) -> dict[str, Counter[RunOutcome]]:
        """Count what this service ran of each job, by outcome."""
        return {job.name: Counter(job.ends) - MISSED for job in self.runner.stats()}

    def stored(self) -> dict[str, Counter[RunOutcome]]:
        """Count what is stored of its runs, by outcome."""
        return {
            name: Counter(run.outcome for run in self.runs.runs(name, 10_000)) - MISSED
            for name in self.runner.jobs
        }

    async def close(self) -> None:
        self._stop.set()
        await self.runner.close()
        self._store.close()


def test_every_job_of_each_cluster_runs(new_database: MakeDatabase, tmp_path: Path) -> None:
    url = new_database().url.render_as_string(hide_password=False)

    async def test() -> None:
        services = []
        for cluster in CLUSTERS:
            (folder := tmp_path / cluster).mkdir()
            services.append(Service(url, cluster, folder))
        for day in range(DAYS + 1):  # when each job is due, the nightly one too
            at = START + day * DAY
            await asyncio.gather(*(service.run_until(at) for service in services))
        ran = [service.ran() for service in services]
        stored = [service.stored() for service in services]
        for service in services:
            await service.close()
        assert set(ran[0]) == set(JOBS)
        well = {name: Counter({RunOutcome.SUCCEEDED: DAYS + 1}) for name in JOBS}
        well["inbox_retention"][RunOutcome.SUCCEEDED] = DAYS  # it makes up for nothing at a start
        assert ran == stored == [well, well]

    asyncio.run(test())
