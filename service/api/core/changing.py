"""One change by one person: done once, written into the audit trail, and answered the same way each
time that the same request is sent.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from http import HTTPStatus
from typing import Any, Final

from pydantic import BaseModel
from starlette.requests import Request
from starlette.responses import Response

from service.api.core.access import GRANT
from service.api.core.idempotency_key import key_of
from service.api.core.ports import Sources
from service.api.core.problems import ProblemError, TooLateError
from service.storage.changes.audit import AuditEvent
from service.storage.changes.changes import Change
from service.storage.changes.idempotency import Answer, KeyConflict, Keyed
from service.storage.tokens.tokens import Grant

MAY_BE_DONE: Final = (
    "the change may have been made all the same. Observation first, or send the same request again with the "
    "Idempotency-Key that it had"
)
KEY_HEADER: Final[Mapping[str, Any]] = {
    "parameters": [
        {
            "name": "Idempotency-Key",
            "in": "header",
            "required": False,
            "description": "A request that is sent again with its key is done once, and answered as "
            "before, for a day",
            "schema": {"type": "string", "minLength": 1, "maxLength": 200},
        }
    ],
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """What was done, and what is answered."""

    audit_event: AuditEvent
    status: HTTPStatus
    model: BaseModel | None = None  # None: nothing is said
    headers: Mapping[str, str] = field(default_factory=dict)
    after: Callable[[], None] | None = None  # called once it is stored


Work = Callable[[Change], Done]


def caller_of(request: Request) -> Grant:
    """Return who asks."""
    grant: Grant = request.scope[GRANT]
    return grant


async def changed(request: Request, sources: Sources, work: Work) -> Response:
    """Do a change in one transaction, and answer.

    Raises:
        ProblemError: it was rejected; `TooLateError`: nobody can tell whether it was done.
        StoreError: nothing was changed.
    """
    who, now = caller_of(request).who, sources.utc_now()
    asked = _keyed(request, who, await request.body())

    def do() -> Answer:
        with sources.admin.changes.begin(who, now) as change:
            answer, after = _once(change, asked, work)
        if after is not None:
            after()
        return answer

    try:
        answer = await sources.in_database(do)
    except TooLateError as exc:
        raise TooLateError(f"{exc.detail}: {MAY_BE_DONE}") from exc
    return Response(answer.body or None, answer.status, dict(answer.headers))


def stamp_of(now: datetime) -> dict[str, Any]:
    """Return what every answer says first, of what was read in this time."""
    return {"as_of": now, "is_current": True}


def _once(
    change: Change, asked: Keyed | None, work: Work
) -> tuple[Answer, Callable[[], None] | None]:
    known = None if asked is None else change.known(asked)
    if isinstance(known, KeyConflict):
        raise _rejection(known)
    if known is not None:
        return known, None
    done = work(change)
    change.note(done.audit_event)
    answer = _answer(done)
    if asked is not None:
        change.keep(asked, answer)
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
            told = "a request with this Idempotency-Key is being done: ask again soon"
            return ProblemError(HTTPStatus.CONFLICT, told, headers={"Retry-After": "1"})
        case KeyConflict.REUSED:
            told = "another request had this Idempotency-Key and asked for something else"
            return ProblemError(HTTPStatus.UNPROCESSABLE_ENTITY, told)
