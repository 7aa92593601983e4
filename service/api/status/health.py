"""Liveness and readiness probes in the form of Kubernetes' own.

Neither depends on Kafka, whose outage Tidemark reports, nor on a database that fails after the start.
"""

from __future__ import annotations

from http import HTTPStatus
from typing import Final

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from service.rounds.latest import Latest, ServiceState

ALIVE_INTERVALS: Final = 10
ALIVE_SECONDS: Final = 300.0


def health_routes(latest: Latest) -> list[Route]:
    """Return the routes of both probes."""

    async def livez(_request: Request) -> Response:
        silent = latest.silent_seconds
        if silent <= alive_seconds(latest.state):
            return PlainTextResponse("ok")
        message = f"no round has ended for {silent:.0f} s: only a restart will help\n"
        return PlainTextResponse(message, HTTPStatus.SERVICE_UNAVAILABLE)

    async def readyz(request: Request) -> Response:
        checks = readiness(latest.state)
        is_ready = all(error is None for error in checks.values())
        if is_ready and "verbose" not in request.query_params:
            return PlainTextResponse("ok")
        status = HTTPStatus.OK if is_ready else HTTPStatus.SERVICE_UNAVAILABLE
        return PlainTextResponse(_render_checks(checks, is_ready=is_ready), status)

    return [Route("/livez", livez), Route("/readyz", readyz)]


def alive_seconds(state: ServiceState) -> float:
    """Return for how many seconds no round may end before the process counts as stuck.

    Rounds end whatever Kafka or the database do; a start may have to wait for a recovery.
    """
    return max(ALIVE_INTERVALS * state.interval_seconds, ALIVE_SECONDS)


def readiness(state: ServiceState) -> dict[str, str | None]:
    """Return the checks of readiness by name, each with its error or None."""
    is_loaded = state.persistence.is_loaded
    return {
        "first-round-made": None if state.rounds else "no round has ended yet",
        "memory": None if is_loaded else "the stored memory could not be read yet",
    }


def _render_checks(checks: dict[str, str | None], *, is_ready: bool) -> str:
    lines = [
        f"[+]{name} ok" if error is None else f"[-]{name} failed: {error}"
        for name, error in checks.items()
    ]
    return "\n".join([*lines, f"readyz check {'passed' if is_ready else 'failed'}", ""])
