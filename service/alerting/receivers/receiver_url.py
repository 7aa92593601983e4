"""What of a receiver must not be printed: its secrets, and its URL but for scheme and host.

A URL is http or https, without parts that would not be sent as written.

Whoever knows the path of a Slack webhook may write to its channel. Path and query are therefore
secrets: errors and logs show the host alone.
"""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import parse_qsl, unquote

import httpx2

from rules.errors import SettingsError

HIDDEN: Final = "[hidden]"
_PORTS: Final = {"http": 80, "https": 443}
_LONGEST: Final = 2048  # characters
_HOST: Final = re.compile(rb"[0-9A-Za-z._-]+|[0-9A-Fa-f:.]+")  # a name or number, or IPv6
_AUTHORITY_END: Final = re.compile("[/?#]")


class Secret:
    """Keeps a text out of everything that prints values; `reveal` is the one way to it."""

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def reveal(self) -> str:
        """Return the text."""
        return self._text

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and other._text == self._text

    def __hash__(self) -> int:
        return hash(self._text)

    def __repr__(self) -> str:
        return HIDDEN


class ReceiverUrl:
    """A checked address that prints without its path."""

    __slots__ = ("_url",)

    def __init__(self, text: str) -> None:
        """Read an address.

        Raises:
            SettingsError: it cannot be used; the text does not repeat it.
        """
        self._url = _parse(text)

    @property
    def scheme(self) -> str:
        """Return http or https."""
        return self._url.scheme

    @property
    def host(self) -> str:
        """Return the name or address to call, in ASCII; an IPv6 address without brackets."""
        return self._url.raw_host.decode("ascii")

    @property
    def port(self) -> int:
        """Return the port to call."""
        return self._url.port or _PORTS[self._url.scheme]

    @property
    def host_header(self) -> str:
        """Return the host as HTTP wants it: with the port where it is not the scheme's own."""
        return self._url.netloc.decode("ascii")

    @property
    def target(self) -> str:
        """Return path and query."""
        return self._url.raw_path.decode("ascii")

    @property
    def secrets(self) -> tuple[str, ...]:
        """Return the texts that reveal the address, also those of its parts."""
        parts = [part for part in self._url.path.split("/") if part]
        values = [value for _, value in parse_qsl(self._url.query.decode("ascii"))]
        raw = [part for part in self._url.raw_path.decode("ascii").split("/") if part]
        return (str(self._url), self.target, unquote(self.target), *parts, *raw, *values)

    def below(self, path: str) -> ReceiverUrl:
        """Return the address of a path below this one; the query goes with it."""
        own, mark, query = self.target.partition("?")
        whole = own.rstrip("/") + path + mark + query
        return ReceiverUrl(f"{self.scheme}://{self.host_header}{whole}")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ReceiverUrl) and other._called == self._called

    def __hash__(self) -> int:
        return hash(self._called)

    @property
    def _called(self) -> tuple[str, str, int, str]:
        return self.scheme, self.host, self.port, self.target

    def __str__(self) -> str:
        return f"{self.scheme}://{self.host_header}/…"

    def __repr__(self) -> str:
        return f"ReceiverUrl({self})"


def _parse(text: str) -> httpx2.URL:
    if len(text) > _LONGEST:
        raise SettingsError(f"a receiver's URL is longer than {_LONGEST} characters")
    try:
        url = httpx2.URL(text)
    except httpx2.InvalidURL:
        # Not chained: the parser's error repeats what it could not read.
        raise SettingsError("a receiver's URL cannot be read") from None
    problem = _problem(url, text)
    if problem:
        raise SettingsError(f"a receiver's URL {problem}")
    return url


def _problem(url: httpx2.URL, text: str) -> str:
    """Return what is wrong with an address; empty for nothing."""
    authority = _AUTHORITY_END.split(text.partition("://")[2])[0]
    wrong = (
        (url.scheme not in _PORTS, "must begin with http:// or https://"),
        (not url.host, "names no host"),
        (not _HOST.fullmatch(url.raw_host), "names a host that cannot exist"),
        ("@" in authority, "must not carry a user name or password: use `authorization`"),
        ("#" in text, "must not have a part after #: it would not be sent"),
        (url.port is not None and not 0 < url.port < 65536, "has a port that does not exist"),
    )
    return next((problem for is_wrong, problem in wrong if is_wrong), "")
