"""Versions of editable objects in HTTP: a strong ETag, and If-Match with every change.

A change names the version that its author has seen, so that nobody overwrites an unseen change.
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
            "description": "ETag of the version to change; an asterisk matches any version",
            "schema": {"type": "string", "maxLength": _LONGEST},
            "example": '"1"',
        }
    ],
}


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
