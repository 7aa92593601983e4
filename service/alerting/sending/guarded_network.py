"""Connections that are checked when they are made.

A name is resolved once, all its addresses are checked, and one of these is connected to. A name
server that answers differently later changes nothing, since it is not queried again. HTTP's
`Host` and TLS still use the name. One address that may not be called denies them all: a name that
leads to public and internal addresses at once is never intended.
"""

from __future__ import annotations

import socket
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Final, TypeAlias

import httpcore2

from rules.errors import TidemarkError
from service.alerting.sending.address_guard import AddressGuard
from service.runtime.threads import in_thread

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
