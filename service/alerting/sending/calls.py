"""One POST to a receiver, with limits for its time and for the bytes that are read of the answer.

It uses httpcore2, the engine of httpx2, and not httpx2's client: the engine takes our network backend
as an argument, which the client does not. And the engine cannot do what must not happen here: follow
redirects, store cookies, read proxies or passwords from the environment, decompress a small reply into
a large one, log a URL.

Connections are checked when they are made. A name is resolved once, all its addresses are checked, and one
of these is connected to. A name server that answers differently later changes nothing, since it is not
queried again. HTTP's `Host` and TLS still use the name. One address that may not be called denies them all:
a name that leads to public and internal addresses at once is never intended.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import socket
import ssl
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Final, TypeAlias

import httpcore2

from rules.errors import TidemarkError
from service.alerting.receivers.receiver_url import ReceiverUrl
from service.alerting.sending.address_guard import AddressDeniedError, AddressGuard
from service.alerting.sending.answers import Failure
from service.runtime.threads import in_thread

_IDLE_SECONDS: Final = 30.0
_IDLE_KEPT: Final = 20  # connections
Resolve: TypeAlias = Callable[[str, int], Awaitable[Sequence[str]]]
_MOST_TRIED: Final = 4  # addresses of one name, which share the time to connect


class UnknownNameError(TidemarkError):
    """A receiver's name has no address, or no name server answered."""


async def system_resolve(host: str, port: int) -> Sequence[str]:
    """Return the addresses of a name, as this machine resolves it; odd spellings of one too.

    Raises:
        UnknownNameError: there are none.
    """
    try:
        entries = await in_thread(
            lambda: socket.getaddrinfo(host, port, type=socket.SOCK_STREAM), name="resolve"
        )
    except (OSError, UnicodeError) as exc:
        raise UnknownNameError(f"{host} has no address: {exc}") from exc
    return tuple(dict.fromkeys(str(address[0]) for *_, address in entries))


class GuardedNetwork(httpcore2.AsyncNetworkBackend):
    """A network backend of httpcore2 that connects only to addresses that a guard allows."""

    def __init__(self, guard: AddressGuard, resolve: Resolve = system_resolve) -> None:
        self._guard = guard
        self._resolve = resolve
        self._network = httpcore2.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109 - httpcore2's signature
        local_address: str | None = None,
        socket_options: Iterable[httpcore2.SOCKET_OPTION] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        """Connect to the first checked address that answers; `timeout` is in seconds.

        The time to resolve the name comes on top of it: the caller limits the total.

        Raises:
            AddressDeniedError: the name has an address that may not be called.
            UnknownNameError: it has no address.
            httpcore2.ConnectError, httpcore2.ConnectTimeout: no address answers.
        """
        addresses = await self._checked(host, port)
        share = None if timeout is None else timeout / len(addresses)
        failure: httpcore2.ConnectError | httpcore2.ConnectTimeout | None = None
        for address in addresses:
            try:
                return await self._network.connect_tcp(
                    address, port, share, local_address, socket_options
                )
            except (httpcore2.ConnectError, httpcore2.ConnectTimeout) as exc:
                failure = exc
        raise failure or UnknownNameError(f"{host} has no address")

    async def _checked(self, host: str, port: int) -> Sequence[str]:
        addresses = await self._resolve(host, port)
        if not addresses:
            raise UnknownNameError(f"{host} has no address")
        return [self._guard.check(address) for address in addresses][:_MOST_TRIED]


@dataclass(frozen=True, slots=True, kw_only=True)
class CallLimits:
    """How long a call may take, and how much of its answer is read."""

    connect_seconds: float = 5.0
    answer_seconds: float = 15.0  # Standard Webhooks: 15 to 30; from resolving to the status
    reply_seconds: float = 2.0  # for the body, which is only shown
    reply_bytes: int = 65536
    connections: int = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What a receiver answered."""

    status: int
    headers: Mapping[str, str] = field(default_factory=dict)  # names in small letters
    body: bytes = b""  # no more than the limit


class CallError(TidemarkError):
    """A call without an answer; the text may repeat parts of the URL."""

    def __init__(self, message: str, failure: Failure) -> None:
        super().__init__(message)
        self.failure = failure


@functools.cache
def _system_authorities() -> ssl.SSLContext:
    """Read the machine's certificate authorities once: it takes 40 ms of CPU."""
    return ssl.create_default_context()


class Calls:
    """Calls receivers over a pool of connections."""

    def __init__(
        self,
        guard: AddressGuard,
        *,
        limits: CallLimits | None = None,
        tls: ssl.SSLContext | None = None,
        resolve: Resolve = system_resolve,
    ) -> None:
        self._limits = limits or CallLimits()
        self._pool = httpcore2.AsyncConnectionPool(
            ssl_context=tls or _system_authorities(),
            max_connections=self._limits.connections,
            max_keepalive_connections=_IDLE_KEPT,
            keepalive_expiry=_IDLE_SECONDS,
            network_backend=GuardedNetwork(guard, resolve),
        )

    async def post(self, url: ReceiverUrl, headers: Mapping[str, str], body: bytes) -> Reply:
        """Send a body and return the answer, whatever its status.

        Raises:
            CallError: there was no answer.
        """
        with _one_error():
            async with asyncio.timeout(self._limits.answer_seconds) as limit:
                async with self._stream(url, headers, body) as answer:
                    limit.reschedule(None)  # the status is what matters, and it is here
                    return Reply(
                        status=answer.status,
                        headers=_text_of(answer.headers),
                        body=await self._begin(answer),
                    )

    async def aclose(self) -> None:
        """Close all connections."""
        await self._pool.aclose()

    def _stream(
        self, url: ReceiverUrl, headers: Mapping[str, str], body: bytes
    ) -> AbstractAsyncContextManager[httpcore2.Response]:
        called = httpcore2.URL(
            scheme=url.scheme.encode("ascii"),
            host=url.host.encode("ascii"),
            port=url.port,
            target=url.target.encode("ascii"),
        )
        sent = {"Host": url.host_header, "Accept-Encoding": "identity", **headers}
        limits = {"timeout": {"connect": self._limits.connect_seconds}}
        return self._pool.stream(
            "POST", called, headers=list(sent.items()), content=body, extensions=limits
        )

    async def _begin(self, answer: httpcore2.Response) -> bytes:
        """Return the first bytes of the answer's body.

        The rest is never read, and its connection is closed. A receiver that answers with a status and
        then breaks off, or never ends its body, has accepted the notification all the same.
        """
        read = bytearray()
        with contextlib.suppress(OSError, httpcore2.NetworkError, httpcore2.ProtocolError):
            async with asyncio.timeout(self._limits.reply_seconds):
                async for chunk in answer.aiter_stream():
                    read += chunk
                    if len(read) >= self._limits.reply_bytes:
                        break
        return bytes(read[: self._limits.reply_bytes])


def _text_of(headers: Iterable[tuple[bytes, bytes]]) -> dict[str, str]:
    return {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in headers}


@contextlib.contextmanager
def _one_error() -> Iterator[None]:
    """Translate every error of a call without an answer to CallError."""
    try:
        yield
    except AddressDeniedError as exc:
        raise CallError(str(exc), Failure.ADDRESS_DENIED) from exc
    except UnknownNameError as exc:
        raise CallError(str(exc), Failure.NAME) from exc
    except (TimeoutError, httpcore2.TimeoutException) as exc:
        raise CallError("no answer in time", Failure.TIMEOUT) from exc
    except (OSError, httpcore2.NetworkError, httpcore2.ProtocolError) as exc:
        # httpcore2 does not translate a TLS error that occurs while it reads, as after a rejected handshake.
        raise CallError(_words(exc), _failure_of(exc)) from exc


def _words(error: Exception) -> str:
    return str(error) or "the connection broke"


def _failure_of(error: Exception) -> Failure:
    """Return TLS for a certificate that cannot be verified: httpcore2 reports a broken connection."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ssl.SSLCertVerificationError):
            return Failure.TLS
        cause = cause.__cause__ or cause.__context__
    return Failure.CONNECTION
