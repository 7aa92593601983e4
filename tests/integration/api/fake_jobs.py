"""Jobs in memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from service.api.core.admin_services import JobView
from service.scheduling.job import RunOutcome
from service.storage.jobs.jobs import StoredRun
from tests.factories import NOON, at


def run(row: int) -> StoredRun:
    return StoredRun(
        id=row,
        job_name="retention",
        due_at=at(row),
        started_at=at(row),
        ended_at=at(row + 1),
        outcome=RunOutcome.SUCCEEDED,
        detail="",
        stats={"removed": row},
    )


@dataclass
class FakeJobs:
    """Two jobs, one of which runs; the other has run three times."""

    queries: list[str] = field(default_factory=list)
    waits_for: str | None = None

    def every(self) -> Sequence[JobView]:
        idle = JobView(
            name="retention",
            trigger="every hour",
            next_due_at=NOON,
            is_running=False,
            last_run=run(3),
            waits_for=self.waits_for,
        )
        return [idle, replace(idle, name="busy", is_running=True, last_run=None)]

    def runs(self, name: str, before: int | None, limit: int) -> Sequence[StoredRun]:
        every = [run(row) for row in (3, 2, 1)] if name == "retention" else []
        return [one for one in every if before is None or one.id < before][:limit]

    def run_now(self, name: str) -> None:
        self.queries.append(name)
