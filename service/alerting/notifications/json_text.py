"""JSON as it is sent: one value has one text, so that a repeated body is the same byte by byte."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import TypeAlias

Json: TypeAlias = "str | int | bool | Mapping[str, Json] | Sequence[Json]"

_SECONDS_LONG = len("2025-06-02T12:00:00")


def json_bytes(document: Json) -> bytes:
    """Return a document in UTF-8 with sorted names and no spaces.

    Half of a surrogate pair, which no decoder accepts, becomes a question mark: a topic's odd name
    must not prevent a page from being sent.
    """
    text = json.dumps(document, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    return text.encode("utf-8", "replace")


def timestamp(at: datetime) -> str:
    """Return a time in UTC as Go prints it (RFC 3339, no more digits than it has)."""
    utc = at.astimezone(UTC)
    digits = f"{utc.microsecond:06d}".rstrip("0")
    return utc.isoformat()[:_SECONDS_LONG] + (f".{digits}Z" if digits else "Z")
