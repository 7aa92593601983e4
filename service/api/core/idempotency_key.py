"""The Idempotency-Key header of a request, and its syntax."""

from __future__ import annotations

import re
from http import HTTPStatus
from typing import Final

from service.api.core.problems import ProblemError

USABLE_KEY: Final = re.compile(r"[!-~]([ -~]{0,198}[!-~])?")


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
