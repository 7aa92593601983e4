"""Sends HTTP requests over one connection, by the standard library alone.

A command makes a few requests and ends. httpx2 and what it needs take 100 ms of CPU to import, more than all the rest
of `tidemark status`. Redirects are not followed, cookies not kept, and answers are requested uncompressed.
"""

from __future__ import annotations

import select
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from http.client import BadStatusLine, HTTPConnection, HTTPException, HTTPSConnection
from typing import Final, Protocol
from urllib.parse import SplitResult, unquote, urlsplit

from rules.errors import UnreachableError
from rules.version import VERSION
from service.cli.server.connecting import LOOPBACK, tls_context

PORTS: Final = {"http": 80, "https": 443}
Headers = Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpAnswer:
    """The answer to a request, read to its end."""

    status: int
    reason: str = ""
    headers: Headers  # names in small letters
    body: bytes = b""


class Connection(Protocol):
    """A connection to the server of one address, made when it is needed."""

    def send(self, method: str, target: str, *, headers: Headers, body: bytes | None) -> HttpAnswer:
        """Return the answer to a request; `target` is the path and the query, quoted.

        Raises:
            UnreachableError: no answer, or what answers does not speak HTTP.
        """

    def close(self) -> None:
        """Close it; a later request makes another one."""


class HttpConnection:
    """A connection by TCP or TLS, through the proxy that the environment names, if any.

    No proxy leads to this machine's own loopback interface.
    """

    def __init__(self, server: str, *, seconds: float) -> None:
        """`server` is an address without path; connecting, and each read and write, may take `seconds`."""
        self._server = server
        self._address = urlsplit(server)
        self._seconds = seconds

    def send(self, method: str, target: str, *, headers: Headers, body: bytes | None) -> HttpAnswer:
        """Return the answer to a request; `target` is the path and the query, quoted.

        Raises:
            UnreachableError: no answer, or what answers does not speak HTTP.
        """
        try:
            return self._exchange(method, target, headers, body)
        except TimeoutError as exc:
            self.close()
            raise UnreachableError(f"{self._server} did not answer in time") from exc
        except (OSError, HTTPException, UnicodeError) as exc:
            self.close()
            raise UnreachableError(
                f"{self._server} cannot be reached: {_reason(exc)}; is `tidemark serve` running "
                "there? --server sets the address"
            ) from exc

    def close(self) -> None:
        """Close it; a later request makes another one."""
        if "_connection" in self.__dict__:
            self._connection.close()

    def _exchange(
        self, method: str, target: str, headers: Headers, body: bytes | None
    ) -> HttpAnswer:
        connection = self._connection
        if connection.sock is not None and _is_closed_by_server(connection):
            connection.close()
        names = {"User-Agent": f"tidemark/{VERSION}", **self._proxy_headers, **headers}
        connection.request(method, self._target_prefix + target, body=body, headers=names)
        answer = connection.getresponse()
        return HttpAnswer(
            status=answer.status,
            reason=answer.reason,
            headers={name.lower(): value for name, value in answer.getheaders()},
            body=answer.read(),
        )

    @cached_property
    def _connection(self) -> HTTPConnection:
        """The connection, which connects itself at the first request.

        Raises:
            OSError: certificate authorities cannot be read, or the proxy is not one of HTTP.
        """
        nearest = self._proxy or self._address
        host, port = nearest.hostname or "", nearest.port or PORTS[nearest.scheme]
        if self._address.scheme == "http":
            return HTTPConnection(host, port, timeout=self._seconds)
        secure = HTTPSConnection(host, port, timeout=self._seconds, context=tls_context())
        if self._proxy is not None:
            address = self._address
            headers = _authorization(self._proxy)
            secure.set_tunnel(address.hostname or "", address.port or PORTS["https"], headers)
        return secure

    @cached_property
    def _proxy(self) -> SplitResult | None:
        return None if self._address.hostname in LOOPBACK else _proxy_of(self._address)

    @property
    def _target_prefix(self) -> str:
        """What precedes a path: a proxy that does not tunnel is sent the whole address."""
        is_forwarded = self._proxy is not None and self._address.scheme == "http"
        return self._server if is_forwarded else ""

    @property
    def _proxy_headers(self) -> Headers:
        if self._proxy is None or self._address.scheme != "http":
            return {}
        return _authorization(self._proxy)


def _is_closed_by_server(connection: HTTPConnection) -> bool:
    """Return whether an idle connection has something to read: its end, since nothing was requested."""
    poll = select.poll()
    poll.register(connection.sock, select.POLLIN)
    return bool(poll.poll(0))


def _proxy_of(address: SplitResult) -> SplitResult | None:
    """Return the HTTP proxy to an address that the environment names, None for none.

    Raises:
        OSError: it is no proxy of HTTP, or no address.
    """
    from urllib.request import getproxies, proxy_bypass  # noqa: PLC0415 - 10 ms, not for loopback

    proxies = getproxies()
    url = proxies.get(address.scheme) or proxies.get("all")
    if not url or proxy_bypass(address.netloc):
        return None
    try:
        proxy = urlsplit(url if "://" in url else f"http://{url}")
        _ = proxy.port  # checked as it is read
    except ValueError as exc:
        raise OSError(f"the proxy of the environment has no valid address: {exc}") from exc
    if proxy.scheme != "http" or not proxy.hostname:
        raise OSError(f"the proxy of the environment is {proxy.scheme}, and only http is supported")
    return proxy


def _authorization(proxy: SplitResult) -> dict[str, str]:
    if proxy.username is None:
        return {}
    user = f"{unquote(proxy.username)}:{unquote(proxy.password or '')}"
    return {"Proxy-Authorization": f"Basic {b64encode(user.encode()).decode()}"}


def _reason(error: Exception) -> str:
    if isinstance(error, BadStatusLine) and not isinstance(error, OSError):
        return "what answers does not speak HTTP"
    return str(error) or type(error).__name__
