"""The HTTP application: its middleware, its routes, and its error handlers."""

from __future__ import annotations

from functools import cache
from typing import Any, Final

from fastapi import APIRouter, Depends, FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.exceptions import ExceptionMiddleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from rules.errors import StoreError
from service.api.alerts.routes import alerts_router
from service.api.application_errors.routes import application_errors_router
from service.api.audit.routes import audit_router
from service.api.baselines.routes import baselines_router
from service.api.change_events.routes import change_events_router
from service.api.clusters.clusters import clusters_router
from service.api.clusters.groups import groups_router
from service.api.clusters.partitions import partitions_router
from service.api.core.access import Access
from service.api.core.edge import BodyLimit, Busy, DrainBody, PauseRejections, Stamp
from service.api.core.ports import Log, Sources
from service.api.core.prefix import PREFIX
from service.api.core.problems import OverloadError, ProblemError, on_problem
from service.api.core.queries import no_repeats
from service.api.core.rights import Tokens
from service.api.deliveries.routes import deliveries_router, receivers_router
from service.api.document import PROBLEM, openapi_document
from service.api.findings.open_list import OpenList
from service.api.findings.routes import findings_router
from service.api.findings.rules import rules_router
from service.api.ingest.routes import ingest_router
from service.api.jobs.routes import jobs_router
from service.api.losses.routes import losses_router
from service.api.past.routes import past_router
from service.api.posture.routes import posture_router
from service.api.record_errors.routes import record_errors_router
from service.api.sequences.routes import sequences_router
from service.api.silences.routes import silences_router
from service.api.status.health import health_routes
from service.api.status.metrics import metrics_routes
from service.api.status.status import status_router
from service.api.transactions.costs import costs_router
from service.api.transactions.fencing import fencing_router
from service.api.transactions.routes import transactions_router
from service.runtime.events import Event

EXPECTED: Final = (ProblemError, StoreError, RequestValidationError, HTTPException)


def create_app(
    sources: Sources, *, tokens: Tokens, trusts_local: bool, max_concurrent_requests: int, log: Log
) -> FastAPI:
    """Build the application; `trusts_local`: only this machine can connect, and needs no token."""
    app = FastAPI(
        title="Tidemark",
        openapi_url=None,  # served by a route of ours
        docs_url=None,  # its page loads scripts from elsewhere
        redoc_url=None,
        generate_unique_id_function=lambda route: route.name,
        redirect_slashes=False,  # a group's name may end with a slash
        exception_handlers={**dict.fromkeys(EXPECTED, on_problem), OverloadError: _pass_on},
        telemetry={"tracing": False, "metrics": False, "logs": False, "auto_configure": False},
        middleware=[
            Middleware(Stamp),
            Middleware(DrainBody),
            Middleware(ExceptionMiddleware, handlers=_last_resort(log)),
            Middleware(PauseRejections),
            # Access first: clients without a right must not take the places of others.
            Middleware(Access, tokens=tokens, trusts_local=trusts_local),
            Middleware(Busy, limit=max_concurrent_requests),
            Middleware(BodyLimit),
        ],
    )
    app.router.routes.extend(health_routes(sources.latest))
    app.router.routes.extend(metrics_routes(sources.exposition, sources.latest, sources.in_thread))
    app.include_router(_api(sources))
    document = cache(lambda: openapi_document(app))  # takes a tenth of a second

    async def openapi(_request: Request) -> Response:
        return JSONResponse(await sources.in_thread(document))

    app.router.routes.append(Route(f"{PREFIX}/openapi.json", openapi))
    return app


def _api(sources: Sources) -> APIRouter:
    api = APIRouter(prefix=PREFIX, dependencies=[Depends(no_repeats)], responses=PROBLEM)
    open_list = OpenList()
    for router in (
        status_router(sources),
        clusters_router(sources),
        groups_router(sources),
        partitions_router(sources),
        transactions_router(sources),
        fencing_router(sources),
        costs_router(sources),
        losses_router(sources, open_list),
        sequences_router(sources),
        record_errors_router(sources),
        application_errors_router(sources),
        findings_router(sources, open_list),
        change_events_router(sources),
        alerts_router(sources),
        silences_router(sources),
        receivers_router(sources),
        deliveries_router(sources),
        audit_router(sources),
        jobs_router(sources),
        baselines_router(sources),
        past_router(sources),
        posture_router(sources),
        rules_router(sources),
        ingest_router(sources),
    ):
        api.include_router(router)
    return api


async def _pass_on(_request: Request, exc: Exception) -> Response:
    """Leave an error to the middleware around the routes."""
    raise exc


def _last_resort(log: Log) -> dict[Any, Any]:
    """Return handlers of errors outside a route, and of unexpected errors anywhere."""

    async def on_surprise(request: Request, exc: Exception) -> Response:
        log.error(
            Event.REQUEST_FAILED,
            request_id=request.scope.get("request_id"),
            method=request.method,
            path=request.scope["path"],
            exc_info=exc,
        )
        return await on_problem(request, exc)

    return {**dict.fromkeys(EXPECTED, on_problem), Exception: on_surprise}
