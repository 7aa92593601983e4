"""One attempt to deliver one body, and its outcome.

It decides nothing about time: `service.delivery` says when there is another attempt.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, Protocol

from service.alerting.receivers.receiver_url import ReceiverUrl
from service.alerting.receivers.receivers import Receiver
from service.alerting.sending.answers import (
    SLOW,
    Failure,
    Outcome,
    excerpt,
    failure_of,
    not_before,
    outcome_of,
    redact,
)
from service.alerting.sending.calls import CallError, Reply

_DETAIL: Final = 300  # characters


class Caller(Protocol):
    """Sends a body: the port to the network."""

    async def post(self, url: ReceiverUrl, headers: Mapping[str, str], body: bytes) -> Reply:
        """Return the answer, or raise CallError."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """The result of one attempt; holds no secret, and may be stored and shown."""

    outcome: Outcome
    status: int | None = None  # None: no answer
    failure: Failure | None = None  # None: delivered
    detail: str = ""  # one line for a person; empty if it was delivered
    reply: str = ""  # the first 1,024 characters of the answer
    not_before: datetime | None = None  # aware, UTC; from the receiver's Retry-After
    at: datetime  # aware, UTC; the start of the attempt
    took: timedelta

    @property
    def is_slow(self) -> bool:
        """Whether a person has to repair something before a retry can succeed."""
        return self.failure in SLOW


class Sender:
    """Makes attempts."""

    def __init__(
        self,
        caller: Caller,
        *,
        utc_now: Callable[[], datetime],
        monotonic: Callable[[], float],
    ) -> None:
        self._caller = caller
        self._utc_now = utc_now
        self._monotonic = monotonic

    async def send(self, receiver: Receiver, body: bytes, headers: Mapping[str, str]) -> Attempt:
        """Make one attempt; nothing that a receiver or the network does raises an error."""
        at, begin = self._utc_now(), self._monotonic()
        reply: Reply | None = None
        try:
            reply = await self._caller.post(receiver.endpoint, headers, body)
        except CallError as exc:
            failure: Failure | None = exc.failure
            detail = redact(str(exc), receiver.secrets)
        else:
            failure = failure_of(reply.status)
            detail = f"{receiver.endpoint} answered {reply.status}" if failure else ""
        status = None if reply is None else reply.status
        return Attempt(
            outcome=outcome_of(status, failure),
            status=status,
            failure=failure,
            detail=detail[:_DETAIL],
            reply="" if reply is None else excerpt(reply.body, receiver.secrets),
            not_before=self._not_before(reply, failure),
            at=at,
            took=timedelta(seconds=self._monotonic() - begin),
        )

    def _not_before(self, reply: Reply | None, failure: Failure | None) -> datetime | None:
        if reply is None or failure is None:
            return None
        return not_before(reply.headers.get("retry-after"), self._utc_now())
