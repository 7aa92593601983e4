"""Runs the HTTP server in an existing event loop; signal handling stays with the process."""

from __future__ import annotations

import ipaddress
import resource
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from starlette.types import ASGIApp
from uvicorn import Config, Server

from rules.errors import SettingsError
from service.api.core.protocol import Connections, GuardedProtocol

BACKLOG: Final = 1024  # connections that wait to be accepted; beyond it a client waits a second
# Accepted before others are served and what those have sent is read. Of hundreds at once the first would be
# dropped, as those that are silent longest, before anybody has read what they sent.
ACCEPTED_AT_ONCE: Final = 64
GRACE_SECONDS: Final = 5  # for answers under way when the server stops
MAX_HEADER_BYTES: Final = 64 * 1024  # request line and headers; a group's name may have 32 KiB
CONNECTIONS_PER_REQUEST: Final = 4  # most connections are idle
# For scrapes, log lines and tokens under verification, which have places apart from other requests, and for
# hundreds that are silent or slow: each that is dropped instead comes again at once and costs far more.
MORE_CONNECTIONS: Final = 768


def bind(host: str, port: int) -> socket.socket:
    """Return a listening socket; port 0 takes any that is free.

    Raises:
        SettingsError: the address is not one of this machine, or the port is taken.
    """
    try:
        addresses = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE | socket.AI_NUMERICSERV
        )
    except (OSError, UnicodeError, OverflowError) as exc:
        raise _unusable(host, port, getattr(exc, "strerror", None) or str(exc)) from exc
    family, _, _, _, address = addresses[0]
    try:
        return _listen(family, address)
    except OSError as exc:
        raise _unusable(host, port, exc.strerror or str(exc)) from exc


def is_loopback(bound: socket.socket) -> bool:
    """Return whether only this machine can reach a socket."""
    return ipaddress.ip_address(bound.getsockname()[0].partition("%")[0]).is_loopback


def _listen(family: int, address: tuple[object, ...]) -> socket.socket:
    # With its protocol named asyncio turns off Nagle's algorithm, which would hold back the second
    # part of every answer for 40 ms.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:  # "::" means every address, IPv4 ones too
            listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        listener.bind(address)
        listener.listen(BACKLOG)
        listener.setblocking(False)
    except OSError:
        listener.close()
        raise
    return listener


def _unusable(host: str, port: int, why: str) -> SettingsError:
    return SettingsError(
        f"cannot listen on {host} port {port}: {why}; set TIDEMARK_HTTP__HOST or TIDEMARK_HTTP__PORT"
    )


def connection_limit(max_concurrent_requests: int) -> int:
    """Return how many connections are kept: more than can be busy, so that one is always idle.

    They take no more than half of the files that the process may open: rounds need some too.
    """
    limit = CONNECTIONS_PER_REQUEST * max_concurrent_requests + MORE_CONNECTIONS
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return limit if files == resource.RLIM_INFINITY else min(limit, files // 2)


class HttpServer:
    """Serves an application on a socket until `stop` is called."""

    def __init__(
        self,
        app: ASGIApp,
        bound: socket.socket,
        *,
        max_connections: int,
        protocol: type[GuardedProtocol] = GuardedProtocol,
    ) -> None:
        self._bound = bound
        self._server = _Server(_config(app, protocol, max_connections))

    async def run(self) -> None:
        """Serve; return when `stop` was called and the answers under way are sent."""
        try:
            await self._server.serve(sockets=[self._bound])
        finally:
            for server in getattr(self._server, "servers", []):  # none before it began
                server.close()
            self._bound.close()

    def stop(self) -> None:
        """Take no more requests; `run` returns within the grace time."""
        self._server.should_exit = True


class _Server(Server):
    """Uvicorn without its signal handlers; the process handles signals itself."""

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        self.server_state = Connections()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to accept a few connections at a time; asyncio lets no more than these wait, either."""
        await super().startup(sockets)
        for listener in sockets or ():
            listener.listen(BACKLOG)

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave signals alone."""
        yield


def _config(app: ASGIApp, protocol: type[GuardedProtocol], connections: int) -> Config:
    return Config(
        app,
        http=protocol,
        ws="none",
        lifespan="off",
        interface="asgi3",
        log_config=None,
        log_level="error",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        limit_concurrency=connections,
        backlog=ACCEPTED_AT_ONCE,
        timeout_graceful_shutdown=GRACE_SECONDS,
        h11_max_incomplete_event_size=MAX_HEADER_BYTES,
    )
