"""Versions of what can be edited, as HTTP tells them: a strong ETag, and If-Match with every change.

Who changes something says which version he has seen, so that nobody undoes what he does not know of.
"""

from __future__ import annotations

import re
from http import HTTPStatus
from typing import Any, Final

from starlette.requests import Request

from service.api.core.problems import ProblemError

_TAG: Final = re.compile(r'\s*(W/)?"([^"]*)"\s*')
_LONGEST: Final = 1000  # characters
IF_MATCH: Final[dict[str, Any]] = {
    "parameters": [
        {
            "name": "If-Match",
            "in": "header",
            "required": True,
            "description": "ETag of what is changed, as it was seen; an asterisk for whatever it is now",
            "schema": {"type": "string", "maxLength": _LONGEST},
            "example": '"1"',
        }
    ],
}


def etag_of(version: int) -> str:
    """Return the ETag of a version."""
    return f'"{version}"'


def require_match(request: Request, version: int) -> None:
    """Refuse a change of a version that its author has not seen.

    Raises:
        ProblemError: he names none, or another one.
    """
    given = request.headers.get("if-match")
    if given is None:
        told = "say in If-Match which version is meant: the ETag of what you have seen, or *"
        raise ProblemError(HTTPStatus.PRECONDITION_REQUIRED, told)
    if given.strip() != "*" and etag_of(version) not in _tags(given):
        told = f"it was changed meanwhile: it has ETag {etag_of(version)} now. Observe it again"
        raise ProblemError(HTTPStatus.PRECONDITION_FAILED, told, headers={"ETag": etag_of(version)})


def _tags(header: str) -> set[str]:
    """Return the strong tags of a header; a weak one never matches."""
    found = map(_TAG.fullmatch, header[:_LONGEST].split(","))
    return {f'"{one[2]}"' for one in found if one is not None and one[1] is None}
