"""The endpoints that Prometheus scrapes: the metrics of the last round, under our names or an exporter's."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from service.api.core.edge import SCRAPE_PATH
from service.api.core.few_at_once import InThread
from service.metrics.dropin import EXPORTERS
from service.metrics.dropin.exporter import Exporter
from service.metrics.exposition import Exposition
from service.rounds.latest import Latest


def metrics_routes(exposition: Exposition, latest: Latest, in_thread: InThread) -> list[Route]:
    """Return the routes of Tidemark's metrics and of each exporter's; query parameters are ignored."""

    def route(path: str, exporter: Exporter | None) -> Route:
        async def metrics(request: Request) -> Response:
            accept = ",".join(request.headers.getlist("accept")) or None
            gzip = takes_gzip(",".join(request.headers.getlist("accept-encoding")))
            is_stale = latest.state.is_stale
            # Writing, joining or compressing the first body of a round takes tens of milliseconds.
            body, content_type = await in_thread(
                lambda: exposition.body(accept, gzip=gzip, is_stale=is_stale, exporter=exporter)
            )
            headers = {"Content-Type": content_type, "Vary": "Accept, Accept-Encoding"}
            if gzip:
                headers["Content-Encoding"] = "gzip"
            return Response(body, headers=headers)

        return Route(path, metrics)

    drop_ins = (route(f"{SCRAPE_PATH}/{exporter.name}", exporter) for exporter in EXPORTERS)
    return [route(SCRAPE_PATH, None), *drop_ins]


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
