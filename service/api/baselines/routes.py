"""Routes of baselines: the stored runs, the usual band of a series, and rollback to another run."""

from __future__ import annotations

from dataclasses import asdict
from http import HTTPStatus
from typing import Annotated, Final

from fastapi import APIRouter, Path, Query, Request, Response

from service.api.baselines import models
from service.api.baselines.measured import measured_view, read_measured, window_of
from service.api.baselines.models import (
    DetailQuery,
    SeriesQuery,
    run_view,
    series_view,
    slots_view,
)
from service.api.core.changing import Done, apply_change, post_of
from service.api.core.paging import (
    INT64_MAX,
    Key,
    Page,
    Pager,
    Paging,
    decode_cursor,
    decode_row_cursor,
    first_of,
    page_of,
)
from service.api.core.ports import Sources
from service.api.core.problems import conflict, not_found
from service.api.core.queries import NoParameters, PageParameters, PageQuery
from service.api.core.stamps import stamp_of
from service.storage.baselines.current import NoRunError, SameRunError
from service.storage.baselines.reading import SeriesFilter, StoredRun
from service.storage.changes.audit import Action, AuditEvent
from service.storage.changes.changes import Change

NO_SERIES: Final = "the run in force has no such series"
LIST: Final = "baselines"
SERIES: Final = "baseline-series"

SeriesId = Annotated[int, Path(ge=0, le=INT64_MAX)]


def baselines_router(sources: Sources) -> APIRouter:
    """Return the routes of baselines."""
    router = APIRouter(tags=["baselines"])

    @router.get("/baselines", response_model=models.BaselineRunPage)
    async def list_baseline_runs(paging: Paging, query: PageParameters) -> Response:
        """Return the stored baseline runs, the newest day first."""
        return await _runs_page(sources, paging, query)

    @router.get("/baselines/series", response_model=models.SeriesPage)
    async def list_baseline_series(
        paging: Paging, query: Annotated[SeriesQuery, Query()]
    ) -> Response:
        """Return series of the run in force by their ids, with what is usual at a time.

        Filters show what is known to match: a series whose labels are not known matches none.
        """
        return await _series_page(sources, paging, query)

    @router.get("/baselines/series/{series_id}", response_model=models.SeriesDetail)
    async def get_baseline_series(
        series_id: SeriesId, query: Annotated[DetailQuery, Query()]
    ) -> Response:
        """Return a series with what is usual in every half hour, and what was measured between two times.

        Values are those of history. Other answers are 409 where it is turned off, and 503 while its folder
        is away.
        """
        return await _series_detail(sources, series_id, query)

    @post_of(router, "/baselines/rollback", models.RolledBackDetail)
    async def roll_back_baselines(
        body: models.RollbackBody, request: Request, _query: NoParameters
    ) -> Response:
        """Put another stored run in force, by default the one before; the next nightly run replaces it."""
        return await apply_change(request, sources, lambda change: _roll_back(change, body))

    return router


async def _runs_page(sources: Sources, pager: Pager, query: PageQuery) -> Response:
    after = decode_cursor(query.cursor, LIST, str, str)
    every = await sources.in_database(sources.admin.baselines.runs)
    page = page_of(every, _run_key, after=after, limit=query.limit, newest_first=True)

    def answer() -> models.BaselineRunPage:
        runs = Page([run_view(item) for item in page.items], page.last)
        return models.BaselineRunPage(**stamp_of(sources.utc_now()), **pager.page(LIST, runs))

    return await sources.answers.render(answer, pager)


async def _series_page(sources: Sources, pager: Pager, query: SeriesQuery) -> Response:
    now, baselines = sources.utc_now(), sources.admin.baselines
    at = query.at or now
    filters = _filter_of(query, decode_row_cursor(query.cursor, SERIES))
    read = await sources.in_database(lambda: baselines.page(filters, at, query.limit + 1))

    def answer() -> models.SeriesPage:
        if read is None:
            return models.SeriesPage(**stamp_of(now), at=at, run=None, items=[], next=None)
        page = first_of(read.items, query.limit, lambda series: (series.series_id,))
        items = [series_view(series, read.run, at) for series in page.items]
        shown = pager.page(SERIES, Page(items, page.last))
        return models.SeriesPage(**stamp_of(now), at=at, run=run_view(read.run), **shown)

    return await sources.answers.render(answer, pager)


async def _series_detail(sources: Sources, series_id: int, query: DetailQuery) -> Response:
    now, baselines = sources.utc_now(), sources.admin.baselines
    at, window = query.at or now, window_of(query.from_, query.to, now)
    page = await sources.in_database(lambda: baselines.one(series_id, at))
    if page is None or not page.items:
        raise not_found(NO_SERIES)
    series, view = page.items[0], sources.state.view
    scored = None if view is None else view.unusual.of_series(series_id)
    samples = None if window is None else await read_measured(sources, series_id, window, now)

    def answer() -> models.SeriesDetail:
        return models.SeriesDetail(
            **stamp_of(now),
            at=at,
            run=run_view(page.run),
            series=series_view(series, page.run, at),
            scored=None if scored is None else models.Scored(**asdict(scored)),
            slots=slots_view(series),
            measured=measured_view(samples, window, series.metric) if samples and window else None,
        )

    return await sources.answers.render(answer)


def _run_key(run: StoredRun) -> Key:
    return run.day.isoformat(), run.run_id


def _filter_of(query: SeriesQuery, after: int | None) -> SeriesFilter:
    return SeriesFilter(
        metric=None if query.metric is None else query.metric.value,
        topic=query.topic,
        partition=query.partition,
        group=query.group,
        client_id=query.client_id,
        after=after,
    )


def _roll_back(change: Change, body: models.RollbackBody) -> Done:
    try:
        done = change.roll_back(body.to)
    except NoRunError as exc:
        raise (conflict(str(exc)) if body.to is None else not_found(str(exc))) from exc
    except SameRunError as exc:
        raise conflict(str(exc)) from exc
    details = {"left": done.left, "left_day": str(done.left_day), "day": str(done.day)}
    audit_event = AuditEvent(
        action=Action.BASELINE_ROLLBACK, target=done.run_id, why=body.reason, details=details
    )
    model = models.RolledBackDetail(**stamp_of(change.now), **asdict(done))
    return Done(audit_event=audit_event, status=HTTPStatus.OK, model=model)
