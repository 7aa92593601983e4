"""Endpoints of metrics: their addresses, names and credentials.

A name never holds a secret: user, password and query are no part of it, and an address that carries
user and password in itself is rejected, since it would be shown in every list of targets. A bad address
is never repeated, not even in part: nobody knows which part of it was meant as a password.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import SplitResult, urlencode, urlsplit, urlunsplit

from rules.facts.scrapes import EndpointKind

DEFAULT_PATH: Final = "/metrics"
SCHEMES: Final[Mapping[str, int]] = {"http": 80, "https": 443}  # and their ports
HIDDEN: Final = "***"
WITH_USER: Final = "no address may hold @: give user and password as settings (in a path @ is %40)"


class BadAddressError(ValueError):
    """An unusable address; the message repeats nothing of it."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """An address from which metrics are scraped."""

    kind: EndpointKind
    url: str  # of the page, or of a server's API without its path
    name: str  # what it is called everywhere
    address: str  # host:port, as Prometheus' label `instance` has it


@dataclass(frozen=True, slots=True, kw_only=True)
class Credentials:
    """Credentials for endpoints of one kind; never shown."""

    bearer_token: str | None = field(default=None, repr=False)
    username: str | None = field(default=None, repr=False)
    password: str | None = field(default=None, repr=False)

    def hide(self, text: str) -> str:
        """Return a text without the secrets, in case a library has repeated them."""
        for secret in (self.bearer_token, self.password):
            if secret:
                text = text.replace(secret, HIDDEN)
        return text


def page_at(url: str) -> Endpoint:
    """Return the endpoint of a metrics page; without a path it is /metrics.

    Raises:
        BadAddressError: it is not the URL of a page.
    """
    parts = _parts(url)
    parts = parts._replace(path=parts.path or DEFAULT_PATH)
    return _endpoint(EndpointKind.PAGE, parts)


def server_at(url: str) -> Endpoint:
    """Return the endpoint of a Prometheus server, also below a path of its own.

    Raises:
        BadAddressError: it is not the URL of a server.
    """
    parts = _parts(url)
    if parts.query:
        raise BadAddressError("the address of a server has no query")
    return _endpoint(EndpointKind.PROMETHEUS, parts._replace(path=parts.path.rstrip("/")))


def target_of(address: str, labels: Mapping[str, str]) -> Endpoint:
    """Return the endpoint of a discovered target, as Prometheus makes it of host:port and labels.

    Raises:
        BadAddressError: target and labels make no URL.
    """
    if "@" in address:
        raise BadAddressError("a target is host:port, without user and password")
    if any(sign in address for sign in "/?#"):
        raise BadAddressError("a target is host:port; labels name scheme, path and parameters")
    scheme = labels.get("__scheme__", "http")
    path = labels.get("__metrics_path__", DEFAULT_PATH)
    start = "__param_"
    parameters = {
        key.removeprefix(start): value for key, value in labels.items() if key.startswith(start)
    }
    slash = "" if path.startswith("/") else "/"
    query = f"?{urlencode(parameters)}" if parameters else ""
    return page_at(f"{scheme}://{address}{slash}{path}{query}")


def _parts(url: str) -> SplitResult:
    if "@" in url:  # before all else: a password may hold what ends a host, a path or a query
        raise BadAddressError(WITH_USER)
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:  # its message repeats the URL
        raise BadAddressError("it is no URL like http://host:port/path") from None
    if parts.scheme not in SCHEMES or not parts.hostname:
        raise BadAddressError("it does not begin with http://host or https://host")
    if parts.fragment or port == 0 or any(sign.isspace() or not sign.isprintable() for sign in url):
        raise BadAddressError("it has port 0, a fragment, a blank or a letter that cannot be shown")
    return parts


def _endpoint(kind: EndpointKind, parts: SplitResult) -> Endpoint:
    host = parts.hostname or ""
    port = parts.port or SCHEMES[parts.scheme]
    shown = f"[{host}]" if ":" in host else host
    return Endpoint(kind, urlunsplit(parts), _name(parts), f"{shown}:{port}")


def _name(parts: SplitResult) -> str:
    """Return the address without its query, which may hold a secret."""
    return urlunsplit(parts._replace(query="", fragment=""))
