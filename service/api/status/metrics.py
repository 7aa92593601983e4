"""The endpoint that Prometheus scrapes; it sends the bytes that the last round rendered."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from service.api.core.ports import InThread
from service.metrics.exposition import Exposition
from service.rounds.latest import Latest


def metrics_route(exposition: Exposition, latest: Latest, in_thread: InThread) -> Route:
    """Return the route of the metrics; query parameters are ignored."""

    async def metrics(request: Request) -> Response:
        accept = ",".join(request.headers.getlist("accept")) or None
        gzip = takes_gzip(",".join(request.headers.getlist("accept-encoding")))
        # Joining or compressing the first body of a round takes tens of milliseconds.
        is_stale = latest.state.is_stale
        body, content_type = await in_thread(
            lambda: exposition.body(accept, gzip=gzip, is_stale=is_stale)
        )
        headers = {"Content-Type": content_type, "Vary": "Accept, Accept-Encoding"}
        if gzip:
            headers["Content-Encoding"] = "gzip"
        return Response(body, headers=headers)

    return Route("/metrics", metrics)


def takes_gzip(accept_encoding: str) -> bool:
    """Return whether a client accepts gzip (RFC 9110 section 12.5.3)."""
    taken: dict[str, bool] = {}
    for clause in accept_encoding.split(","):
        coding, *parameters = (part.strip().lower() for part in clause.split(";"))
        taken[coding] = _is_accepted(parameters)
    return taken.get("gzip", taken.get("x-gzip", taken.get("*", False)))


def _is_accepted(parameters: list[str]) -> bool:
    weights = [text.partition("=")[2] for text in parameters if text.startswith("q=")]
    try:
        return not weights or float(weights[0]) > 0
    except ValueError:
        return False
