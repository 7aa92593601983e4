"""Routes of jobs, the scheduled work beside rounds: their runs, and a run on request."""

from __future__ import annotations

from http import HTTPStatus
from typing import Annotated, Final

from fastapi import APIRouter, Path, Query, Request, Response

from service.api.core.admin_services import JobView, RunView
from service.api.core.changing import KEY_HEADER, Done, apply_change, stamp_of
from service.api.core.paging import decode_cursor, page_of
from service.api.core.ports import Sources
from service.api.core.problems import conflict, not_found
from service.api.core.queries import NoQuery, PageQuery
from service.api.core.stamps import link_next_page
from service.api.jobs import models
from service.storage.changes.audit import Action, AuditEvent
from service.storage.changes.changes import Change

NO_JOB: Final = "there is no such job; /api/v1/jobs lists them"
LIST: Final = "jobs"
RUNS: Final = "runs"

JobName = Annotated[str, Path(max_length=200)]


def jobs_router(sources: Sources) -> APIRouter:
    """Return the routes of jobs."""
    router = APIRouter(tags=["jobs"])
    jobs = sources.admin.jobs

    @router.get("/jobs")
    async def list_jobs(
        request: Request, response: Response, query: Annotated[PageQuery, Query()]
    ) -> models.JobPage:
        """Return jobs by name, each with its last run."""
        after = decode_cursor(query.cursor, LIST, str)
        every = await sources.in_database(jobs.every)
        page = page_of(every, lambda view: (view.name,), after=after, limit=query.limit)
        following = link_next_page(request, response, LIST, page.last)
        items = [_job(item) for item in page.items]
        return models.JobPage(**stamp_of(sources.utc_now()), items=items, next=following)

    @router.get("/jobs/{name}")
    async def get_job(
        name: JobName, request: Request, response: Response, query: Annotated[PageQuery, Query()]
    ) -> models.JobDetail:
        """Return a job with its runs, newest first."""
        key = decode_cursor(query.cursor, RUNS, int)
        before = None if key is None else key[0]
        every = await sources.in_database(jobs.every)
        job = next((view for view in every if view.name == name), None)
        if job is None:
            raise not_found(NO_JOB)
        runs = await sources.in_database(lambda: jobs.runs(name, before, query.limit + 1))
        shown = runs[: query.limit]
        last = (shown[-1].id,) if len(runs) > query.limit else None
        following = link_next_page(request, response, RUNS, last)
        return models.JobDetail(
            **stamp_of(sources.utc_now()),
            job=_job(job),
            items=[_run(run) for run in shown],
            next=following,
        )

    @router.post(
        "/jobs/{name}/run",
        status_code=HTTPStatus.ACCEPTED,
        response_model=models.JobRunRequest,
        openapi_extra=dict(KEY_HEADER),
    )
    async def run_job(
        name: JobName, request: Request, _query: Annotated[NoQuery, Query()]
    ) -> Response:
        """Run a job now, beside its due times; /jobs/{name} shows its outcome."""
        every = await sources.in_database(jobs.every)
        job = next((view for view in every if view.name == name), None)
        if job is None:
            raise not_found(NO_JOB)
        return await apply_change(
            request, sources, lambda change: _request_run(change, sources, job)
        )

    return router


def _request_run(change: Change, sources: Sources, job: JobView) -> Done:
    if job.is_running:
        raise conflict("the job is running already")
    model = models.JobRunRequest(
        **stamp_of(change.now), name=job.name, requested_at=change.now, waits_for=job.waits_for
    )
    return Done(
        audit_event=AuditEvent(action=Action.JOB_RUN, target=job.name),
        status=HTTPStatus.ACCEPTED,
        model=model,
        after=lambda: sources.admin.jobs.run_now(job.name),
    )


def _job(view: JobView) -> models.Job:
    return models.Job(
        name=view.name,
        trigger=view.trigger,
        next_due_at=view.next_due_at,
        is_running=view.is_running,
        waits_for=view.waits_for,
        last_run=None if view.last_run is None else _run(view.last_run),
    )


def _run(view: RunView) -> models.JobRun:
    fields = {name: getattr(view, name) for name in models.JobRun.model_fields}
    return models.JobRun(**fields | {"stats": dict(view.stats)})
