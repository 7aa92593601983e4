"""Scrapes one endpoint over HTTP, within a time and up to a size; an error is a `ScrapeFailure`.

Redirects are not followed, since credentials would go along, and no body is taken compressed: a few
kilobytes could become gigabytes. Proxies and passwords of the environment are not used. Names are
resolved by the injected `resolve`: the event loop's own threads are few, and would wait for the slowest
name server also when the service ends.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Final

import httpx2

from collectors.scrapes.answer import Samples, plain
from collectors.scrapes.endpoints import Credentials, Endpoint
from collectors.scrapes.page import read_page
from collectors.scrapes.query import QUERY_PATH, error_in, query, read_answer
from rules.errors import SettingsError
from rules.facts.gap import GapCause
from rules.facts.scrapes import EndpointKind, ScrapeFailure

ACCEPT: Final = (
    "application/openmetrics-text;version=1.0.0;q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1"
)
Resolve = Callable[[str, int], Awaitable[Sequence[str]]]  # host and port -> addresses

OPENMETRICS: Final = "application/openmetrics-text"
NO_PAGES: Final = ("text/html", "application/xhtml+xml", "application/json", "application/xml")
REJECTED: Final = (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN)


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What one observation of an endpoint may cost."""

    seconds: float  # from the connection to the last byte
    max_body_bytes: int
    max_series: int  # of the selected metrics


@dataclass(frozen=True, slots=True, kw_only=True)
class Body:
    """What an endpoint sent, unread: reading takes time and belongs in a thread."""

    kind: EndpointKind
    content: bytes
    media_type: str = ""


class _RejectedError(Exception):
    """An answer that is not read."""

    def __init__(self, cause: GapCause, why: str) -> None:
        super().__init__(why)
        self.cause = cause


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpScraper:
    """Scrapes endpoints; its fields say how."""

    limits: Limits
    credentials: Mapping[EndpointKind, Credentials]
    matchers: str = ""  # PromQL's, of the series of this cluster on a Prometheus server
    tls: ssl.SSLContext = field(repr=False)
    resolve: Resolve = field(repr=False)

    async def scrape(self, endpoint: Endpoint) -> Body | ScrapeFailure:
        """Return what an endpoint sends now, over a connection of its own."""
        credentials = self.credentials.get(endpoint.kind, Credentials())
        try:
            async with asyncio.timeout(self.limits.seconds), self._client() as client:
                return await self._get_from_any_address(client, endpoint, credentials)
        except (TimeoutError, httpx2.TimeoutException):
            why = f"no whole answer within {self.limits.seconds:g} s"
            return ScrapeFailure(cause=GapCause.TIMEOUT, why=why)
        except _RejectedError as exc:
            return ScrapeFailure(cause=exc.cause, why=credentials.hide(str(exc)))
        except (httpx2.HTTPError, httpx2.InvalidURL, httpx2.StreamError, UnicodeError) as exc:
            why = f"{type(exc).__name__}: {exc}".rstrip(": ")
            # Hidden before it is cut: half a secret would not be found any more.
            return ScrapeFailure(cause=GapCause.UNREACHABLE, why=plain(credentials.hide(why)))

    def read(self, body: Body) -> Samples:
        """Read what an endpoint sent; it may take a second, without waiting for anything."""
        most = self.limits.max_series
        if body.kind is EndpointKind.PROMETHEUS:
            return read_answer(body.content, max_series=most)
        is_openmetrics = body.media_type == OPENMETRICS
        return read_page(body.content, is_openmetrics=is_openmetrics, max_series=most)

    def _client(self) -> httpx2.AsyncClient:
        return httpx2.AsyncClient(verify=self.tls, trust_env=False, timeout=self.limits.seconds)

    async def _get_from_any_address(
        self, client: httpx2.AsyncClient, endpoint: Endpoint, credentials: Credentials
    ) -> Body:
        """Send the request to the first address of its name that accepts a connection."""
        url = httpx2.URL(endpoint.url)
        for address in (addresses := await self.resolve(url.host, url.port or 0)):
            try:
                return await self._get(client, endpoint, credentials, url.copy_with(host=address))
            except httpx2.ConnectError:
                if address == addresses[-1]:
                    raise
        raise _RejectedError(GapCause.UNREACHABLE, "its host name cannot be resolved")

    async def _get(
        self,
        client: httpx2.AsyncClient,
        endpoint: Endpoint,
        credentials: Credentials,
        url: httpx2.URL,
    ) -> Body:
        host = httpx2.URL(endpoint.url)
        is_server = endpoint.kind is EndpointKind.PROMETHEUS
        headers = {
            "Host": host.netloc.decode("ascii"),
            "Accept-Encoding": "identity",
            "Accept": "*/*" if is_server else ACCEPT,
        }
        if credentials.bearer_token is not None:
            headers["Authorization"] = f"Bearer {credentials.bearer_token}"
        async with client.stream(
            "GET",
            url.copy_with(path=url.path.rstrip("/") + QUERY_PATH) if is_server else url,
            params={"query": query(self.matchers)} if is_server else None,
            headers=headers,
            auth=_basic(credentials),
            extensions={"sni_hostname": host.host},  # whose certificate it has to be
        ) as response:
            media_type = _media_type(response)
            if response.status_code != HTTPStatus.OK:
                error_body = await self._content(response) if is_server else b""
                raise _rejection(response, error_in(error_body))
            if response.headers.get("content-encoding", "identity").lower() != "identity":
                why = "the body is compressed, which was not requested"
                raise _RejectedError(GapCause.UNREADABLE, why)
            if not is_server and media_type in NO_PAGES:
                raise _RejectedError(GapCause.UNREADABLE, f"it is {media_type}, no page of metrics")
            content = await self._content(response)
        return Body(kind=endpoint.kind, content=content, media_type=media_type)

    async def _content(self, response: httpx2.Response) -> bytes:
        content, most = bytearray(), self.limits.max_body_bytes
        async for piece in response.aiter_raw():
            content += piece
            if len(content) > most:
                raise _RejectedError(GapCause.LIMIT, f"the body is larger than {most} bytes")
        return bytes(content)


def addresses_of(host: str, port: int) -> list[str]:
    """Return the addresses of a name, in the order in which they are to be tried; it may take long."""
    try:
        targets = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return []
    return list(dict.fromkeys(str(target[0]) for *_, target in targets))


def tls_context(ca_location: str | None) -> ssl.SSLContext:
    """Return how certificates are checked: by the authority given, else by the system's.

    Raises:
        SettingsError: the authority's file cannot be used.
    """
    try:
        return ssl.create_default_context(cafile=ca_location)
    except OSError as exc:  # also ssl.SSLError: it holds no certificate
        message = f"scrapes.ssl_ca_location: {ca_location} holds no certificate that can be read"
        raise SettingsError(message) from exc


def _basic(credentials: Credentials) -> httpx2.BasicAuth | None:
    if credentials.username is None:
        return None
    return httpx2.BasicAuth(credentials.username, credentials.password or "")


def _media_type(response: httpx2.Response) -> str:
    header: str = response.headers.get("content-type", "")
    return header.partition(";")[0].strip().lower()


def _rejection(response: httpx2.Response, text: str | None) -> _RejectedError:
    status = response.status_code
    if status in REJECTED:
        return _RejectedError(GapCause.NOT_AUTHORIZED, f"HTTP {status}: it wants other credentials")
    if response.is_redirect:
        return _RejectedError(GapCause.UNREADABLE, f"HTTP {status}: redirects are not followed")
    why = f"HTTP {status}" + (f": {text}" if text else "")
    return _RejectedError(GapCause.BROKER_ERROR, why)
