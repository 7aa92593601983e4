"""What a receiver's answer means: delivered, try again, give up, or never call it again."""

from __future__ import annotations

from enum import StrEnum
from typing import Final


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
