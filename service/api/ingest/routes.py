"""Takes log lines of brokers and of applications from shippers such as Fluent Bit, Vector and Promtail."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Annotated, Any, Final, TypeVar

from fastapi import APIRouter, Query, Request
from pydantic import Field

from service.api.core.changing import caller_of, key_of
from service.api.core.ports import ApplicationErrorLog, Inbox, Sources
from service.api.core.problems import ProblemError, TooLateError, too_much
from service.api.ingest.application_body import application_reading
from service.api.ingest.body import Reading, Sent, delivery_of
from service.api.ingest.broker_body import broker_reading
from service.api.ingest.query import ApplicationQuery, IngestQuery
from service.observe.application_errors import Limited, LineCounts
from service.observe.log_submissions import Rejection
from service.storage.rounds.inbox import Counts
from service.views.model import Model

T = TypeVar("T")

FULL_SECONDS: Final = 15  # the usual interval of rounds, each of which empties the inbox
MAY_BE_STORED: Final = (
    "the lines may have been stored. Send the same request again, best with an Idempotency-Key, "
    "which stores it once"
)
NOTHING: Final = Counts(lines=0, events=0, unparsed=0)
NO_LINES: Final = LineCounts(lines=0, errors=0, unparsed=0)
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


class ApplicationIngested(Model):
    """Counts of the log lines that were taken."""

    lines: Annotated[int, Field(description="Received lines")]
    errors: Annotated[int, Field(description="Recognised errors of Kafka's clients, all stored")]
    unparsed: Annotated[
        int, Field(description="Warnings of Kafka's clients that were not understood")
    ]


def ingest_router(sources: Sources) -> APIRouter:
    """Return the routes that ingest log lines."""
    router = APIRouter(tags=["ingest"])

    @router.post(
        "/ingest/broker-log", status_code=HTTPStatus.ACCEPTED, openapi_extra=dict(DESCRIBED)
    )
    async def post_broker_log(request: Request, query: Annotated[IngestQuery, Query()]) -> Ingested:
        """Ingest log lines of brokers; their events are stored when this is answered."""
        sent = await _sent(request, broker_reading(query))
        return Ingested.model_validate(await _taken(sources, lambda: _accept(sources.inbox, sent)))

    @router.post(
        "/ingest/application-log", status_code=HTTPStatus.ACCEPTED, openapi_extra=dict(DESCRIBED)
    )
    async def post_application_log(
        request: Request, query: Annotated[ApplicationQuery, Query()]
    ) -> ApplicationIngested:
        """Ingest log lines of applications; errors of Kafka's clients are stored when this is answered."""
        sent, sender = await _sent(request, application_reading(query)), _sender_of(request)
        counts = await _taken(
            sources, lambda: _accept_errors(sources.application_errors, sent, sender)
        )
        return ApplicationIngested.model_validate(counts)

    return router


async def _sent(request: Request, reading: Reading) -> Sent:
    return Sent(
        body=await request.body(),
        content_type=request.headers.get("content-type", ""),
        content_encoding=request.headers.get("content-encoding", ""),
        reading=reading,
        key=key_of(request.headers.get("idempotency-key")),
    )


def _sender_of(request: Request) -> str:
    """Return who sends: the name of a token, and the address that it comes from."""
    address = "" if request.client is None else request.client.host
    return f"{caller_of(request).who} {address}"


async def _taken(sources: Sources, accept: Callable[[], T]) -> T:
    try:
        return await sources.ingesting(accept)
    except TooLateError as exc:
        raise TooLateError(f"{exc.detail}: {MAY_BE_STORED}") from exc


def _accept_errors(log: ApplicationErrorLog, sent: Sent, sender: str) -> LineCounts:
    delivery = delivery_of(sent)
    if not delivery.lines:
        return NO_LINES
    outcome = log.accept(delivery, sender)
    if isinstance(outcome, Limited):
        raise too_much(
            "more lines than application_logs allows: send these again later", outcome.wait_seconds
        )
    return outcome


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
