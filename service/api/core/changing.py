"""Applies one change by one caller: once, with a row in the audit trail, and with the same answer when
the same request is sent again.

A change of an editable object names the version that its author has seen (a strong ETag, in If-Match), so
that nobody overwrites an unseen change.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any, Final, TypeVar

from fastapi import APIRouter, Request, Response
from pydantic import BaseModel

from service.api.core.access import GRANT
from service.api.core.ports import Sources
from service.api.core.problems import ProblemError, TooLateError
from service.storage.changes.audit import AuditEvent
from service.storage.changes.changes import Change
from service.storage.changes.idempotency import Answer, KeyConflict, Keyed
from service.storage.tokens.tokens import Grant

MAY_BE_DONE: Final = (
    "the change may have been made all the same. Check first, or send the same request again with the "
    "same Idempotency-Key"
)
USABLE_KEY: Final = re.compile(r"[!-~]([ -~]{0,198}[!-~])?")
KEY_HEADER: Final[Mapping[str, Any]] = {
    "parameters": [
        {
            "name": "Idempotency-Key",
            "in": "header",
            "required": False,
            "description": "A request that is sent again with its key is carried out once, and answered as "
            "before, for a day",
            "schema": {"type": "string", "minLength": 1, "maxLength": 200},
        }
    ],
}
_TAG: Final = re.compile(r'\s*(W/)?"([^"]*)"\s*')
_LONGEST: Final = 1000  # characters
IF_MATCH: Final[dict[str, Any]] = {
    "parameters": [
        {
            "name": "If-Match",
            "in": "header",
            "required": True,
            "description": "ETag of the version to change; an asterisk matches any version",
            "schema": {"type": "string", "maxLength": _LONGEST},
            "example": '"1"',
        }
    ],
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """The outcome of a change: its audit event and its answer."""

    audit_event: AuditEvent
    status: HTTPStatus
    model: BaseModel | None = None  # None: an empty body
    headers: Mapping[str, str] = field(default_factory=dict)
    after: Callable[[], None] | None = None  # called after COMMIT


Work = Callable[[Change], Done]
Route = TypeVar("Route", bound=Callable[..., Any])


def post_of(
    router: APIRouter, path: str, model: type[BaseModel], status: HTTPStatus = HTTPStatus.OK
) -> Callable[[Route], Route]:
    """Return the decorator of a change that an Idempotency-Key may make once; it is answered with `model`."""
    return router.post(
        path, status_code=status, response_model=model, openapi_extra=dict(KEY_HEADER)
    )


def caller_of(request: Request) -> Grant:
    """Return the grant of the caller."""
    grant: Grant = request.scope[GRANT]
    return grant


async def apply_change(request: Request, sources: Sources, work: Work) -> Response:
    """Apply a change in one transaction, and return its response.

    Raises:
        ProblemError: it was rejected; `TooLateError`: it is unknown whether it was made.
        StoreError: nothing was changed.
    """
    who, now = caller_of(request).who, sources.utc_now()
    keyed = _keyed(request, who, await request.body())

    def do() -> Answer:
        with sources.admin.changes.begin(who, now) as change:
            answer, after = _once(change, keyed, work)
        if after is not None:
            after()
        return answer

    try:
        answer = await sources.in_database(do)
    except TooLateError as exc:
        raise TooLateError(f"{exc.detail}: {MAY_BE_DONE}") from exc
    return Response(answer.body or None, answer.status, dict(answer.headers))


def key_of(header: str | None) -> str | None:
    """Return the value of an Idempotency-Key header.

    Raises:
        ProblemError: it cannot be used.
    """
    if header is None or USABLE_KEY.fullmatch(header):
        return header
    raise ProblemError(
        HTTPStatus.BAD_REQUEST, "an Idempotency-Key has 1 to 200 printable ASCII characters"
    )


def _once(
    change: Change, keyed: Keyed | None, work: Work
) -> tuple[Answer, Callable[[], None] | None]:
    previous = None if keyed is None else change.find_answer(keyed)
    if isinstance(previous, KeyConflict):
        raise _rejection(previous)
    if previous is not None:
        return previous, None
    done = work(change)
    change.note(done.audit_event)
    answer = _answer(done)
    if keyed is not None:
        change.keep_answer(keyed, answer)
    return answer, done.after


def _answer(done: Done) -> Answer:
    if done.model is None:
        return Answer(status=done.status, headers=done.headers, body=b"")
    headers = {"Content-Type": "application/json", **done.headers}
    body = done.model.model_dump_json(by_alias=True).encode()
    return Answer(status=done.status, headers=headers, body=body)


def _keyed(request: Request, who: str, body: bytes) -> Keyed | None:
    key = key_of(request.headers.get("idempotency-key"))
    if key is None or request.method != "POST":
        return None
    whole = "\n".join((request.method, request.scope["path"], request.url.query, ""))
    digest = hashlib.sha256(whole.encode(errors="surrogatepass") + body).hexdigest()
    return Keyed(who=who, key=key, digest=digest)


def _rejection(error: KeyConflict) -> ProblemError:
    match error:
        case KeyConflict.RUNNING:
            detail = "a request with this Idempotency-Key is under way: send it again soon"
            return ProblemError(HTTPStatus.CONFLICT, detail, headers={"Retry-After": "1"})
        case KeyConflict.REUSED:
            detail = "another request with different content used this Idempotency-Key"
            return ProblemError(HTTPStatus.UNPROCESSABLE_ENTITY, detail)


def etag_of(version: int) -> str:
    """Return the ETag of a version."""
    return f'"{version}"'


def require_match(request: Request, version: int) -> None:
    """Reject a change of a version that its author has not seen.

    Raises:
        ProblemError: the request names no version, or another one.
    """
    if_match = request.headers.get("if-match")
    if if_match is None:
        detail = "If-Match is missing: send the ETag of the version that you have read, or *"
        raise ProblemError(HTTPStatus.PRECONDITION_REQUIRED, detail)
    if if_match.strip() != "*" and etag_of(version) not in _tags(if_match):
        detail = f"it was changed meanwhile: its ETag is now {etag_of(version)}. Read it again"
        raise ProblemError(
            HTTPStatus.PRECONDITION_FAILED, detail, headers={"ETag": etag_of(version)}
        )


def _tags(header: str) -> set[str]:
    """Return the strong tags of a header; a weak one never matches."""
    tags = map(_TAG.fullmatch, header[:_LONGEST].split(","))
    return {f'"{tag[2]}"' for tag in tags if tag is not None and tag[1] is None}
