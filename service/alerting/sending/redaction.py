"""What others say, made fit to be kept: no secrets, no control characters, not too long."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from service.alerting.receivers.secret import HIDDEN

KEPT: Final = 1024  # characters of a reply
_SHORTEST: Final = 4  # a shorter text gives nothing away, and is in every other word
# PostgreSQL stores no NUL, and a terminal obeys the others.
_CONTROL: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def redacted(text: str, secrets: Iterable[str]) -> str:
    """Return a text with every secret hidden, also where its letters differ in case."""
    found = sorted(
        {secret for secret in secrets if len(secret) >= _SHORTEST}, key=len, reverse=True
    )
    if not found:
        return text
    pattern = re.compile("|".join(map(re.escape, found)), re.IGNORECASE)
    return pattern.sub(HIDDEN, text)


def excerpt(reply: bytes, secrets: Iterable[str]) -> str:
    """Return the begin of a reply. Hidden first and cut then: a cut secret would not be known."""
    text = redacted(reply.decode("utf-8", "replace"), secrets)
    return _CONTROL.sub("�", text)[:KEPT]
