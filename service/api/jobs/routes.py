"""Routes of jobs, the scheduled work beside rounds: their runs, and a run on request."""

from __future__ import annotations

from datetime import datetime
from http import HTTPStatus
from typing import Annotated, Any, Final

from fastapi import APIRouter, Path, Request, Response
from pydantic import Field

from service.api.core.admin_services import JobView
from service.api.core.changing import Done, apply_change, post_of
from service.api.core.models import NextCursor, Paged, Stamped
from service.api.core.paging import Paging, decode_cursor, decode_row_cursor, first_of, page_of
from service.api.core.ports import Sources
from service.api.core.problems import conflict, existing
from service.api.core.queries import NoParameters, PageParameters
from service.api.core.stamps import stamp_of
from service.storage.changes.audit import Action, AuditEvent
from service.storage.changes.changes import Change
from service.views.model import Model

NO_JOB: Final = "there is no such job; /api/v1/jobs lists them"
LIST: Final = "jobs"
RUNS: Final = "runs"

JobName = Annotated[str, Path(max_length=200)]


class JobRun(Model):
    """One run of a job."""

    id: int
    due_at: datetime
    started_at: datetime | None
    ended_at: Annotated[datetime | None, Field(description="null: it is running")]
    outcome: Annotated[
        str,
        Field(examples=["running", "succeeded", "failed", "timed_out", "interrupted", "missed"]),
    ]
    detail: str
    stats: dict[str, Any]


class Job(Model):
    """A job and its last run."""

    name: str
    trigger: Annotated[str, Field(description="When it is due", examples=["every hour"])]
    next_due_at: datetime | None
    is_running: bool
    waits_for: str | None
    """What keeps a run from beginning now; null: nothing"""
    last_run: JobRun | None


class JobPage(Paged[Job]):
    """Jobs by name."""


class JobDetail(Stamped):
    """A job with its runs, newest first."""

    job: Job
    items: list[JobRun]
    next: NextCursor


class JobRunRequest(Stamped):
    """A request to run a job now."""

    name: str
    requested_at: datetime
    waits_for: str | None
    """What the run waits for; null: it begins at once"""


def jobs_router(sources: Sources) -> APIRouter:
    """Return the routes of jobs."""
    router = APIRouter(tags=["jobs"])
    jobs = sources.admin.jobs

    async def job_of(name: str) -> JobView:
        every = await sources.in_database(jobs.every)
        return existing(next((view for view in every if view.name == name), None), NO_JOB)

    @router.get("/jobs", response_model=JobPage)
    async def list_jobs(paging: Paging, query: PageParameters) -> Response:
        """Return jobs by name, each with its last run."""
        after = decode_cursor(query.cursor, LIST, str)
        every = await sources.in_database(jobs.every)
        page = page_of(every, lambda view: (view.name,), after=after, limit=query.limit)
        return await sources.answers.render(
            lambda: JobPage(**stamp_of(sources.utc_now()), **paging.page(LIST, page)), paging
        )

    @router.get("/jobs/{name}", response_model=JobDetail)
    async def get_job(name: JobName, paging: Paging, query: PageParameters) -> Response:
        """Return a job with its runs, newest first."""
        before = decode_row_cursor(query.cursor, RUNS)
        job = Job.model_validate(await job_of(name))
        rows = await sources.in_database(lambda: jobs.runs(name, before, query.limit + 1))
        page = first_of(rows, query.limit, lambda run: (run.id,))

        def answer() -> JobDetail:
            return JobDetail(**stamp_of(sources.utc_now()), job=job, **paging.page(RUNS, page))

        return await sources.answers.render(answer, paging)

    @post_of(router, "/jobs/{name}/run", JobRunRequest, HTTPStatus.ACCEPTED)
    async def run_job(name: JobName, request: Request, _query: NoParameters) -> Response:
        """Run a job now, beside its due times; /jobs/{name} shows its outcome."""
        job = await job_of(name)
        return await apply_change(
            request, sources, lambda change: _request_run(change, sources, job)
        )

    return router


def _request_run(change: Change, sources: Sources, job: JobView) -> Done:
    if job.is_running:
        raise conflict("the job is running already")
    model = JobRunRequest(
        **stamp_of(change.now), name=job.name, requested_at=change.now, waits_for=job.waits_for
    )
    return Done(
        audit_event=AuditEvent(action=Action.JOB_RUN, target=job.name),
        status=HTTPStatus.ACCEPTED,
        model=model,
        after=lambda: sources.admin.jobs.run_now(job.name),
    )
