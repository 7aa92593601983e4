"""Problems of applications as JSON; ASCII, because a log may contain what the database rejects."""

from __future__ import annotations

import json
from typing import Final

from rules.errors import StoreError
from rules.exceptions.problems import Problem
from service.storage.formats.values import plain, read

FORMAT: Final = 1


def encode(problem: Problem) -> str:
    """Encode a problem as text of format `FORMAT`."""
    return json.dumps(plain(problem), separators=(",", ":"))


def decode(content: str, form: int) -> Problem:
    """Decode a problem.

    Raises:
        StoreError: the text has another format, or was not written by `encode`.
    """
    if form != FORMAT:
        raise StoreError(
            f"stored application errors have the unknown format {form}", retryable=False
        )
    try:
        return read(Problem, json.loads(content))
    except (LookupError, TypeError, ValueError, AttributeError) as exc:
        raise StoreError(
            f"stored application errors cannot be read: {type(exc).__name__}", retryable=False
        ) from exc
