"""Everything that a receiver got, in order of arrival, and whether it is from whom it seems to be.

Source of the check: Standard Webhooks 1.0.0, symmetric signatures (`v1`).
"""

from __future__ import annotations

import hmac
import json
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from http import HTTPStatus
from typing import Any, Final, Protocol

from service.alerting.receivers.standard_webhooks import SigningSecret
from service.sandbox.receiving.bodies import document_of, parse_body

TOLERANCE: Final = timedelta(minutes=5)  # that of the standard's libraries, to both sides
HIDDEN: Final = "hidden"


class Signature(StrEnum):
    """What came of the check."""

    VERIFIED = "verified"
    WRONG = "wrong"  # made with another secret, or the body was changed
    MISSING = "missing"  # a secret was given, and nothing is signed
    UNTIMELY = "untimely"  # older than the tolerance, or from the future: perhaps replayed
    UNCHECKED = "unchecked"  # signed, and no secret was given
    NONE = "none"  # not signed, and no secret was given


DENIED: Final = frozenset((Signature.WRONG, Signature.MISSING, Signature.UNTIMELY))


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


class Sink(Protocol):
    """Where lines are kept."""

    def write(self, line: str, /) -> object:
        """Write a line."""

    def flush(self) -> object:
        """See that it is written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Received:
    """One request, and what was answered."""

    number: int  # in the order of arrival, from 1
    at: datetime  # aware, UTC
    path: str
    headers: Mapping[str, str]  # names in small letters
    body: bytes
    signature: Signature
    attempt: int  # how often this webhook-id has come, this time included
    was_taken: bool  # an earlier request with this webhook-id was answered with success
    answered: HTTPStatus

    @property
    def webhook_id(self) -> str | None:
        """Return what is the same on every attempt to deliver one notification."""
        return self.headers.get("webhook-id")

    @property
    def is_taken(self) -> bool:
        """Whether it was answered with success."""
        return self.answered == HTTPStatus.OK

    @property
    def is_repeat(self) -> bool:
        """Whether it was taken before, too: a receiver that deduplicates by webhook-id ignores it."""
        return self.is_taken and self.was_taken

    def row(self) -> dict[str, Any]:
        """Return it as JSON's values: keys may be added, never renamed."""
        document = document_of(self.body)
        parsed = parse_body(document)
        return {
            "number": self.number,
            "at": self.at.isoformat(),
            "path": self.path,
            "webhook_id": self.webhook_id,
            "attempt": self.attempt,
            "is_repeat": self.is_repeat,
            "signature": str(self.signature),
            "answered": int(self.answered),
            "kind": str(parsed.kind),
            "title": parsed.title,
            "reason": parsed.reason,
            "group_key": parsed.group_key,
            "headers": {k: HIDDEN if k == "authorization" else v for k, v in self.headers.items()},
            "body": document,
            "text": self.body.decode("utf-8", "replace") if document is None else None,
        }


class Recorder:
    """Keeps what comes, decides on the answer, and hands it on; called by many threads."""

    def __init__(
        self,
        *,
        utc_now: Callable[[], datetime],
        hand_on: Callable[[Received], None],
        secrets: Sequence[SigningSecret] = (),
        fail: int = 0,
        sink: Sink | None = None,
    ) -> None:
        """`fail` requests are answered with 500 first; the sink gets a line of JSON for each."""
        self._utc_now = utc_now
        self._hand_on = hand_on
        self._secrets = tuple(secrets)
        self._fail = fail
        self._sink = sink
        self._lock = threading.Lock()
        self._number = 0
        self._attempts: dict[str, int] = {}
        self._taken: set[str] = set()

    def take(self, path: str, headers: Mapping[str, str], body: bytes) -> HTTPStatus:
        """Record a request and return the answer; what is answered with success is recorded.

        Raises:
            OSError: it cannot be written.
        """
        with self._lock:
            received = self._received(path, headers, body)
            if self._sink is not None:
                self._sink.write(json.dumps(received.row(), separators=(",", ":")) + "\n")
                self._sink.flush()
            if received.webhook_id is not None and received.is_taken:
                self._taken.add(received.webhook_id)
            self._hand_on(received)
            return received.answered

    def _received(self, path: str, headers: Mapping[str, str], body: bytes) -> Received:
        now = self._utc_now()
        signature = check(headers, body, secrets=self._secrets, now=now)
        self._number += 1
        key = headers.get("webhook-id")
        if key is not None:
            self._attempts[key] = self._attempts.get(key, 0) + 1
        return Received(
            number=self._number,
            at=now,
            path=path,
            headers=dict(headers),
            body=body,
            signature=signature,
            attempt=1 if key is None else self._attempts[key],
            was_taken=key in self._taken,
            answered=self._answer(signature),
        )

    def _answer(self, signature: Signature) -> HTTPStatus:
        if self._number <= self._fail:
            return HTTPStatus.INTERNAL_SERVER_ERROR
        return HTTPStatus.UNAUTHORIZED if signature in DENIED else HTTPStatus.OK
