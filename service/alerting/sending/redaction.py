"""Redact the text of others before it is stored: no secrets, no control characters, not too long."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from service.alerting.receivers.secret import HIDDEN

KEPT: Final = 1024  # characters of a reply
_SHORTEST: Final = 4  # a shorter text reveals nothing, and occurs in many words
# PostgreSQL stores no NUL, and a terminal interprets the others.
_CONTROL: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def redact(text: str, secrets: Iterable[str]) -> str:
    """Return a text with every secret hidden, whatever the case of its letters."""
    hidden = sorted(
        {secret for secret in secrets if len(secret) >= _SHORTEST}, key=len, reverse=True
    )
    if not hidden:
        return text
    pattern = re.compile("|".join(map(re.escape, hidden)), re.IGNORECASE)
    return pattern.sub(HIDDEN, text)


def excerpt(reply: bytes, secrets: Iterable[str]) -> str:
    """Return the beginning of a reply. Redact before the cut: a cut secret would not be recognised."""
    text = redact(reply.decode("utf-8", "replace"), secrets)
    return _CONTROL.sub("�", text)[:KEPT]
