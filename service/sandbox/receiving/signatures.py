"""Whether a webhook is from whom it seems to be: what a receiver has to check, and here does.

Source: Standard Webhooks 1.0.0, symmetric signatures (`v1`).
"""

from __future__ import annotations

import hmac
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Final

from service.alerting.receivers.standard_webhooks import SigningSecret

TOLERANCE: Final = timedelta(minutes=5)  # that of the standard's libraries, to both sides


class Signature(StrEnum):
    """What came of the check."""

    VERIFIED = "verified"
    WRONG = "wrong"  # made with another secret, or the body was changed
    MISSING = "missing"  # a secret was given, and nothing is signed
    UNTIMELY = "untimely"  # older than the tolerance, or from the future: perhaps replayed
    UNCHECKED = "unchecked"  # signed, and no secret was given
    NONE = "none"  # not signed, and no secret was given


def check(
    headers: Mapping[str, str], body: bytes, *, secrets: Sequence[SigningSecret], now: datetime
) -> Signature:
    """Check a request; the headers' names are in small letters, `now` is aware."""
    signatures = headers.get("webhook-signature", "").split()
    if not secrets:
        return Signature.UNCHECKED if signatures else Signature.NONE
    if not signatures:
        return Signature.MISSING
    at = headers.get("webhook-timestamp", "")
    message = f"{headers.get('webhook-id', '')}.{at}.".encode() + body
    expected = [secret.signature(message).encode() for secret in secrets]
    if not any(
        hmac.compare_digest(signature.encode(), mine)
        for signature in signatures
        for mine in expected
    ):
        return Signature.WRONG
    return Signature.VERIFIED if _is_timely(at, now) else Signature.UNTIMELY


def _is_timely(seconds: str, now: datetime) -> bool:
    try:
        at = datetime.fromtimestamp(int(seconds), UTC)
    except (ValueError, OverflowError, OSError):
        return False
    return abs(now - at) <= TOLERANCE
