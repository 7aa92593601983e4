"""Errors as `application/problem+json` (RFC 9457); every error of the API has this form.

`type` is about:blank, so `title` is the phrase of the status code and `detail` says the rest.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any, Final, TypeVar
from urllib.parse import quote

from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from rules.errors import StoreError

MEDIA_TYPE: Final = "application/problem+json"
JSON: Final = "application/json"
RETRY_AFTER_SECONDS: Final = 10
T = TypeVar("T")
MAX_ERRORS: Final = 20  # of one request; the first few say enough


class ProblemError(Exception):
    """A request that cannot be answered; it never leaves the HTTP API."""

    def __init__(
        self,
        status: HTTPStatus,
        detail: str,
        *,
        headers: Mapping[str, str] | None = None,
        errors: Sequence[Mapping[str, str]] = (),
    ) -> None:
        super().__init__(detail)
        self.status = status
        self.detail = detail
        self.headers = dict(headers or {})
        self.errors = tuple(errors)


class TooLateError(ProblemError):
    """There was no answer in time; the work goes on and may still succeed."""

    def __init__(self, detail: str) -> None:
        headers = {"Retry-After": str(RETRY_AFTER_SECONDS)}
        super().__init__(HTTPStatus.SERVICE_UNAVAILABLE, detail, headers=headers)


class OverloadError(ProblemError):
    """A request too many while others are being answered; it is answered after a pause."""

    def __init__(
        self, detail: str, status: HTTPStatus = HTTPStatus.SERVICE_UNAVAILABLE, *, seconds: int = 0
    ) -> None:
        """`seconds`: when to try again; by default as long as for everything that is unavailable."""
        headers = {"Retry-After": str(seconds or RETRY_AFTER_SECONDS)}
        super().__init__(status, detail, headers=headers)


def unavailable(detail: str) -> ProblemError:
    """Return the problem of a request that may succeed a little later (503)."""
    headers = {"Retry-After": str(RETRY_AFTER_SECONDS)}
    return ProblemError(HTTPStatus.SERVICE_UNAVAILABLE, detail, headers=headers)


def too_much(detail: str, seconds: int) -> ProblemError:
    """Return the problem of one request too many, to be retried after some seconds (429)."""
    headers = {"Retry-After": str(seconds)}
    return ProblemError(HTTPStatus.TOO_MANY_REQUESTS, detail, headers=headers)


def invalid(field: str, message: str) -> ProblemError:
    """Return the problem of a parameter with an invalid value (422)."""
    errors = [{"field": field, "message": message}]
    return ProblemError(HTTPStatus.UNPROCESSABLE_ENTITY, f"{field}: {message}", errors=errors)


def not_found(detail: str) -> ProblemError:
    """Return the problem of something that does not exist (404)."""
    return ProblemError(HTTPStatus.NOT_FOUND, detail)


def existing(value: T | None, detail: str) -> T:
    """Return a value that was searched for.

    Raises:
        ProblemError: it does not exist (404).
    """
    if value is None:
        raise not_found(detail)
    return value


def conflict(detail: str) -> ProblemError:
    """Return the problem of a change that the current state does not allow (409)."""
    return ProblemError(HTTPStatus.CONFLICT, detail)


def body_of(problem: ProblemError, path: str | None) -> bytes:
    """Return a problem as JSON; `path` is the requested one."""
    document: dict[str, Any] = {
        "type": "about:blank",
        "title": problem.status.phrase,
        "status": problem.status.value,
        "detail": problem.detail,
    }
    if path is not None:
        document["instance"] = quote(path, errors="replace")
    if problem.errors:
        document["errors"] = list(problem.errors)
    return json.dumps(document).encode()


def response_of(problem: ProblemError, path: str) -> Response:
    """Return a problem as an HTTP response."""
    return Response(body_of(problem, path), problem.status, problem.headers, MEDIA_TYPE)


async def on_problem(request: Request, exc: Exception) -> Response:
    """Answer a request that raised an error."""
    return response_of(_problem_of(exc, request), request.scope["path"])


def _problem_of(exc: Exception, request: Request) -> ProblemError:
    match exc:
        case ProblemError():
            return exc
        case StoreError():
            return unavailable(str(exc))
        case RequestValidationError():
            return _of_validation(exc, request)
        case HTTPException():
            status = HTTPStatus(exc.status_code)
            detail = DETAILS.get(status, exc.detail)
            return ProblemError(status, detail, headers=exc.headers)
        case _:
            detail = "The request could not be answered; the log of Tidemark says why."
            return ProblemError(HTTPStatus.INTERNAL_SERVER_ERROR, detail)


DETAILS: Final = {
    HTTPStatus.NOT_FOUND: "There is nothing at this path; /api/v1/openapi.json lists what is.",
    HTTPStatus.METHOD_NOT_ALLOWED: "This path does not answer that method.",
}


def _of_validation(exc: RequestValidationError, request: Request) -> ProblemError:
    if any(error["loc"][:1] == ("body",) for error in exc.errors()):
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind != JSON:
            detail = f"a body is {JSON}, and the header Content-Type says so"
            return ProblemError(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, detail)
    broken = next((error for error in exc.errors() if error["type"] == "json_invalid"), None)
    if broken is not None:
        why = broken.get("ctx", {}).get("error", "it cannot be read")
        detail = f"the body is not JSON: {why} at character {broken['loc'][-1]}"
        return ProblemError(HTTPStatus.BAD_REQUEST, detail)
    errors = [
        {"field": _field(error["loc"]), "message": _message(error)}
        for error in exc.errors()[:MAX_ERRORS]
    ]
    detail = "; ".join(f"{error['field']}: {error['message']}" for error in errors)
    return ProblemError(HTTPStatus.UNPROCESSABLE_ENTITY, detail, errors=errors)


def _field(location: Sequence[object]) -> str:
    """Return the name in a pydantic location, which begins with "query" or "path"."""
    return ".".join(str(part)[:100] for part in location[1:]) or str(location[0])


def _message(error: Mapping[str, Any]) -> str:
    if error["type"] == "extra_forbidden":
        return f"there is no such {'field' if error['loc'][0] == 'body' else 'parameter'}"
    return str(error["msg"])
