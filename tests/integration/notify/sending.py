"""Attempts over real sockets."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Awaitable, Callable, Mapping
from typing import Final, TypeVar

from service.alerting.receivers.receiver_url import ReceiverUrl
from service.alerting.receivers.receivers import WebhookReceiver
from service.alerting.sending.address_guard import AddressGuard
from service.alerting.sending.calls import CallLimits, Calls, Resolve, system_resolve
from service.alerting.sending.sender import Attempt, Sender
from service.runtime.clock import monotonic, utc_now
from tests.integration.notify.receiving import CERTIFICATE, OPEN

Done = TypeVar("Done")
SHORT: Final = CallLimits(connect_seconds=2, answer_seconds=1, reply_seconds=0.5)
BODY: Final = b'{"a":1}'
HEADERS: Final = {"Content-Type": "application/json"}


def trusting() -> ssl.SSLContext:
    """Return a context that knows the certificate of the tests' receivers."""
    return ssl.create_default_context(cafile=str(CERTIFICATE))


def with_sender(
    work: Callable[[Sender], Awaitable[Done]],
    *,
    guard: AddressGuard = OPEN,
    limits: CallLimits | None = None,
    tls: ssl.SSLContext | None = None,
    resolve: Resolve = system_resolve,
) -> Done:
    """Do some work with a sender, and close its connections."""

    async def run() -> Done:
        calls = Calls(guard, limits=limits, tls=tls, resolve=resolve)
        try:
            return await work(Sender(calls, utc_now=utc_now, monotonic=monotonic))
        finally:
            await calls.aclose()

    return asyncio.run(run())


def to(url: str) -> WebhookReceiver:
    """Return a receiver by its address."""
    return WebhookReceiver(name="team", url=ReceiverUrl(url))


def send(
    url: str,
    *,
    guard: AddressGuard = OPEN,
    limits: CallLimits | None = None,
    tls: ssl.SSLContext | None = None,
    resolve: Resolve = system_resolve,
    headers: Mapping[str, str] = HEADERS,
) -> Attempt:
    """Make one attempt."""
    return with_sender(
        lambda sender: sender.send(to(url), BODY, headers),
        guard=guard,
        limits=limits,
        tls=tls,
        resolve=resolve,
    )


class Names:
    """A name server that gives its answers one after the other, the last one for ever."""

    def __init__(self, *answers: tuple[str, ...]) -> None:
        self._answers = list(answers)
        self.queries: list[str] = []

    async def __call__(self, host: str, _port: int) -> tuple[str, ...]:
        self.queries.append(host)
        return self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
