"""What a receiver's answer means: delivered, try again, give up, or never call it again.

And what is kept of it: when the receiver may be called again, and the text of others without secrets and
control characters.

Source: RFC 9110, 10.2.3 (`Retry-After`, in seconds or as a date).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from enum import StrEnum
from typing import Final

from service.alerting.receivers.receiver_url import HIDDEN

# A receiver that says "at once" while it fails would be called without a pause.
SHORTEST: Final = timedelta(seconds=1)
LONGEST: Final = timedelta(hours=24)
_SECONDS: Final = re.compile("[0-9]{1,9}")
KEPT: Final = 1024  # characters of a reply
_SHORTEST_SECRET: Final = 4  # a shorter text reveals nothing, and occurs in many words
# PostgreSQL stores no NUL, and a terminal interprets the others.
_CONTROL: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


class Outcome(StrEnum):
    """The result of one attempt for its delivery."""

    DELIVERED = "delivered"
    RETRY = "retry"
    DEAD = "dead"  # this body will never be accepted
    DISABLED = "disabled"  # the receiver accepts no more deliveries at all


class Failure(StrEnum):
    """Why an attempt did not deliver."""

    TIMEOUT = "timeout"
    CONNECTION = "connection"  # rejected, reset, or not HTTP
    TLS = "tls"  # above all a certificate that does not prove the name
    NAME = "name"  # has no address
    ADDRESS_DENIED = "address_denied"  # by our own guard
    REDIRECT = "redirect"
    AUTH = "auth"
    NOT_FOUND = "not_found"
    RATE_LIMITED = "rate_limited"
    CLIENT_ERROR = "client_error"
    SERVER_ERROR = "server_error"
    GONE = "gone"


# Failures that a person has to repair, while the delivery should not be lost: retried, but seldom.
SLOW: Final = frozenset(
    (Failure.AUTH, Failure.NOT_FOUND, Failure.ADDRESS_DENIED, Failure.TLS, Failure.REDIRECT)
)
_BY_STATUS: Final = {
    401: Failure.AUTH,
    403: Failure.AUTH,
    404: Failure.NOT_FOUND,
    408: Failure.TIMEOUT,
    410: Failure.GONE,
    425: Failure.CLIENT_ERROR,
    429: Failure.RATE_LIMITED,
}
_TOO_EARLY: Final = 425


def failure_of(status: int) -> Failure | None:
    """Return the failure that an HTTP status means; None for success."""
    if status in _BY_STATUS:
        return _BY_STATUS[status]
    match status // 100:
        case 2:
            return None
        case 3:
            return Failure.REDIRECT
        case 4:
            return Failure.CLIENT_ERROR
        case _:
            return Failure.SERVER_ERROR


def outcome_of(status: int | None, failure: Failure | None) -> Outcome:
    """Return the outcome of an attempt; `status` is None if there was no answer."""
    match failure:
        case None:
            return Outcome.DELIVERED
        case Failure.GONE:
            return Outcome.DISABLED
        case Failure.CLIENT_ERROR if status != _TOO_EARLY:
            return Outcome.DEAD
        case _:
            return Outcome.RETRY


def not_before(header: str | None, now: datetime) -> datetime | None:
    """Return when to call again, between a second and a day from now; None without a header.

    A header that cannot be read counts as none.
    """
    if header is None:
        return None
    text = header.strip()
    wait = timedelta(seconds=int(text)) if _SECONDS.fullmatch(text) else _until(text, now)
    return None if wait is None else now + min(max(wait, SHORTEST), LONGEST)


def _until(text: str, now: datetime) -> timedelta | None:
    try:
        timestamp = parsedate_to_datetime(text)
    except (ValueError, OverflowError):
        return None
    aware = timestamp if timestamp.tzinfo is not None else timestamp.replace(tzinfo=UTC)
    return aware - now


def redact(text: str, secrets: Iterable[str]) -> str:
    """Return a text with every secret hidden, whatever the case of its letters."""
    hidden = sorted(
        {secret for secret in secrets if len(secret) >= _SHORTEST_SECRET}, key=len, reverse=True
    )
    if not hidden:
        return text
    pattern = re.compile("|".join(map(re.escape, hidden)), re.IGNORECASE)
    return pattern.sub(HIDDEN, text)


def excerpt(reply: bytes, secrets: Iterable[str]) -> str:
    """Return the beginning of a reply. Redact before the cut: a cut secret would not be recognised."""
    text = redact(reply.decode("utf-8", "replace"), secrets)
    return _CONTROL.sub("�", text)[:KEPT]
