"""Headers by which a receiver verifies that a webhook is ours, recent, and not a repetition.

Source: Standard Webhooks 1.0.0, symmetric signatures (`v1`).
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from collections.abc import Sequence
from datetime import datetime
from typing import Final

from rules.errors import SettingsError
from service.alerting.receivers.receiver_url import Secret

PREFIX: Final = "whsec_"
_SHORTEST, _LONGEST = 24, 64  # bytes, by the standard


class SigningSecret(Secret):
    """A key that one receiver shares with us: `whsec_` and 24 to 64 random bytes in base64."""

    __slots__ = ("_key",)

    def __init__(self, text: str) -> None:
        """Read a secret, with or without the padding of base64.

        Raises:
            SettingsError: it is no such secret; the text does not repeat it.
        """
        super().__init__(text)
        self._key = _key(text)

    def signature(self, message: bytes) -> str:
        """Return the signature of a message, with its version."""
        digest = hmac.new(self._key, message, hashlib.sha256).digest()
        return f"v1,{base64.b64encode(digest).decode('ascii')}"


def sign_headers(
    webhook_id: str, body: bytes, *, at: datetime, secrets: Sequence[SigningSecret]
) -> dict[str, str]:
    """Return the headers of one attempt; without secrets they carry no signature.

    `webhook_id` is the same on every attempt, so that a receiver recognises a repetition. `at` is the
    time of this attempt: receivers reject requests that are older than a few minutes. While a key is
    changed there are two secrets, and a receiver accepts a signature by either.
    """
    seconds = str(int(at.timestamp()))
    headers = {"webhook-id": webhook_id, "webhook-timestamp": seconds}
    if secrets:
        message = f"{webhook_id}.{seconds}.".encode() + body
        headers["webhook-signature"] = " ".join(secret.signature(message) for secret in secrets)
    return headers


def _key(text: str) -> bytes:
    if not text.startswith(PREFIX):
        raise SettingsError(f"a webhook's signing secret must begin with {PREFIX}")
    coded = text.removeprefix(PREFIX)
    try:
        key = base64.b64decode(coded + "=" * (-len(coded) % 4), validate=True)
    except (binascii.Error, ValueError):
        # Not chained: the decoder's error may repeat what it could not read.
        raise SettingsError("a webhook's signing secret is no base64") from None
    if not _SHORTEST <= len(key) <= _LONGEST:
        raise SettingsError(
            f"a webhook's signing secret must hold {_SHORTEST} to {_LONGEST} bytes, not {len(key)}"
        )
    return key
