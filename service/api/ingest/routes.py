"""Takes log lines of brokers from shippers such as Fluent Bit, Vector and Promtail."""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from typing import Annotated, Any, Final

from fastapi import APIRouter, Query, Request
from pydantic import Field

from service.api.core.changing import key_of
from service.api.core.ports import Inbox, Sources
from service.api.core.problems import ProblemError, TooLateError, too_much
from service.api.ingest.body import Sent, delivery_of
from service.api.ingest.query import IngestQuery
from service.observe.log_submissions import Rejection
from service.storage.rounds.inbox import Counts
from service.views.model import Model

FULL_SECONDS: Final = 15  # the usual interval of rounds, each of which empties the inbox
MAY_BE_STORED: Final = (
    "the lines may have been stored. Send the same request again, best with an Idempotency-Key, "
    "which stores it once"
)
NOTHING: Final = Counts(lines=0, events=0, unparsed=0)
TEXT: Final = {"schema": {"type": "string"}}
RECORD: Final = {"type": "object", "examples": [{"message": "[2026-11-21 11:56:40,159] ERROR ..."}]}
DESCRIBED: Final[Mapping[str, Any]] = {
    "requestBody": {
        "required": True,
        "description": "Log lines, or JSON records with a line in `message`, `log` or `line`; an array of "
        "records, or Loki's push in JSON, is application/json, and Loki's push in Protocol Buffers is "
        "application/x-protobuf. Content-Encoding may be gzip.",
        "content": {
            "text/plain": TEXT,
            "application/x-ndjson": TEXT,
            "application/x-protobuf": {"schema": {"type": "string", "format": "binary"}},
            "application/json": {"schema": {"anyOf": [RECORD, {"type": "array", "items": RECORD}]}},
        },
    },
    "parameters": [
        {
            "name": "Idempotency-Key",
            "in": "header",
            "required": False,
            "description": "A request that is sent again with its key is answered as before, for an "
            "hour, and stored once",
            "schema": {"type": "string", "maxLength": 200},
        }
    ],
}


class Ingested(Model):
    """Counts of the log lines that were stored."""

    lines: Annotated[int, Field(description="Received lines")]
    events: Annotated[int, Field(description="Parsed events about sequences and lost records")]
    unparsed: Annotated[int, Field(description="Lines about them that could not be parsed")]


def ingest_router(sources: Sources) -> APIRouter:
    """Return the route that ingests log lines."""
    router = APIRouter(tags=["ingest"])

    @router.post(
        "/ingest/broker-log", status_code=HTTPStatus.ACCEPTED, openapi_extra=dict(DESCRIBED)
    )
    async def post_broker_log(request: Request, query: Annotated[IngestQuery, Query()]) -> Ingested:
        """Ingest log lines of brokers; their events are stored when this is answered."""
        sent = Sent(
            body=await request.body(),
            content_type=request.headers.get("content-type", ""),
            content_encoding=request.headers.get("content-encoding", ""),
            query=query,
            key=key_of(request.headers.get("idempotency-key")),
        )
        try:
            counts = await sources.ingesting(lambda: _accept(sources.inbox, sent))
        except TooLateError as exc:
            raise TooLateError(f"{exc.detail}: {MAY_BE_STORED}") from exc
        return Ingested.model_validate(counts)

    return router


def _accept(inbox: Inbox, sent: Sent) -> Counts:
    delivery = delivery_of(sent)
    if not delivery.lines:
        return NOTHING
    outcome = inbox.accept(delivery)
    if isinstance(outcome, Counts):
        return outcome
    raise _problem_of(outcome)


def _problem_of(rejection: Rejection) -> ProblemError:
    match rejection:
        case Rejection.FULL:
            detail = "too many log lines are waiting for a round: send these again later"
            return too_much(detail, FULL_SECONDS)
        case Rejection.KEY_REUSED:
            detail = "another request with different content used this Idempotency-Key"
            return ProblemError(HTTPStatus.UNPROCESSABLE_ENTITY, detail)
        case Rejection.TOO_MANY_STREAMS:
            detail = "too many sources: name one per broker, not one per request"
            return ProblemError(HTTPStatus.UNPROCESSABLE_ENTITY, detail)
