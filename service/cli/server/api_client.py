"""A client of the HTTP API of a running Tidemark, for the commands.

Each error's text names the server and what to do; a token is never part of it. A server whose answers
do not have Tidemark's format is not taken for one, whatever the status.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from typing import Any, Final, Self
from urllib.parse import quote, urlencode, urlsplit

from rules.errors import (
    AuthenticationError,
    CollectError,
    ConflictError,
    NotThereError,
    RequestError,
    UnreachableError,
)
from service.api.core.prefix import PREFIX
from service.cli.server.http_connection import Connection, HttpAnswer, HttpConnection
from service.terminal.words import printable

TIMEOUT_SECONDS: Final = 10.0
LIMIT: Final = 1000  # items of a page
MAX_PAGES: Final = 1000
SAFE: Final = "/%:@!$&'()*+,;=~"  # in a path
PROBLEM: Final = "application/problem+json"
STAMP: Final = frozenset({"as_of", "is_current"})  # every answer about a cluster has it
DENIED: Final = (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN)
UNREADABLE: Final = (
    HTTPStatus.BAD_REQUEST,
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
    HTTPStatus.UNPROCESSABLE_ENTITY,
)
OF_PROXIES: Final = (  # in another format than Tidemark's own
    HTTPStatus.BAD_GATEWAY,
    HTTPStatus.SERVICE_UNAVAILABLE,
    HTTPStatus.GATEWAY_TIMEOUT,
)
CONFLICTS: Final = (HTTPStatus.CONFLICT, HTTPStatus.PRECONDITION_FAILED)

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to a request."""

    document: Row  # empty if the answer has no content
    etag: str | None  # of a resource that can be edited


class Document(dict[str, Any]):
    """An object of an answer. A field that it lacks is missing in the server, which is older, not an error of ours."""

    __slots__ = ("_server",)

    def __init__(self, server: str, fields: Row) -> None:
        """`server` is the address of who answered."""
        super().__init__(fields)
        self._server = server

    def __missing__(self, name: str) -> Any:
        raise UnreachableError(f"{self._server} answers without {name!r}: an older Tidemark?")


class ApiClient:
    """A client of one Tidemark."""

    def __init__(
        self,
        server: str,
        *,
        token: str | None = None,
        scope: str = "read",
        seconds: float = TIMEOUT_SECONDS,
        connection: Connection | None = None,
    ) -> None:
        """`server` is the address, without the path of the API; `scope` is the one that is needed there."""
        self.server = server.rstrip("/")
        self._scope = scope
        self._headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        address = urlsplit(self.server)
        self._base = quote(address.path, safe=SAFE) + PREFIX
        root = f"{address.scheme}://{address.netloc}"
        self._connection = connection or HttpConnection(root, seconds=seconds)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def get(self, path: str, **query: str | int) -> Row:
        """Return the document at a path.

        Raises:
            UnreachableError: no answer, or the server is not a Tidemark that has this path.
            AuthenticationError: the server denies us.
            CollectError: the server reports another error.
        """
        document = self.find(path, **query)
        if document is None:
            message = f"{self.server} has no {PREFIX}/{path}: an older Tidemark?"
            raise UnreachableError(message)
        return document

    def find(self, path: str, **query: str | int) -> Row | None:
        """Return the document at a path, None if there is none; errors are those of `get`."""
        try:
            return self._check_answer("GET", self._send("GET", path, query=query)).document
        except NotThereError:
            return None

    def observe(self, path: str) -> Answer:
        """Return the document at a path with its ETag.

        Raises:
            NotThereError: there is none; other errors are those of `get`.
        """
        return self._check_answer("GET", self._send("GET", path))

    def change(
        self, method: str, path: str, body: Row | None = None, *, etag: str | None = None
    ) -> Answer:
        """Change the resource at a path; a POST takes effect once, even if it is sent twice.

        Raises:
            NotThereError: there is no such resource.
            ConflictError: the current state does not allow it, or `etag` is out of date.
            RequestError: the server rejects the body.
            UnreachableError: no answer; the change may have been made all the same.
        """
        headers = {} if etag is None else {"If-Match": etag}
        if method != "POST":
            return self._check_answer(method, self._send(method, path, body, headers=headers))
        headers["Idempotency-Key"] = os.urandom(16).hex()
        try:
            answer = self._send(method, path, body, headers=headers)
        except UnreachableError:
            answer = self._send(method, path, body, headers=headers)
        return self._check_answer(method, answer)

    def pages(self, path: str, **query: str | int) -> Iterator[Row]:
        """Yield all pages of a list; errors are those of `get`."""
        cursor: dict[str, str] = {}
        for _ in range(MAX_PAGES):
            page = self.get(path, **{"limit": LIMIT, **query, **cursor})
            yield page
            if not page.get("next"):
                return
            cursor = {"cursor": page["next"]}
        raise CollectError(f"{self.server} has more than {MAX_PAGES} pages of {path}")

    def _check_answer(self, method: str, answer: HttpAnswer) -> Answer:
        if answer.status // 100 == 2:
            is_done = answer.status == HTTPStatus.NO_CONTENT and method == "DELETE"
            return Answer({} if is_done else self._document(answer), answer.headers.get("etag"))
        problem = self._problem(answer)
        if answer.status in DENIED:
            raise self._denied(problem)
        if answer.status == HTTPStatus.NOT_FOUND:
            raise NotThereError(problem)
        if answer.status in CONFLICTS:
            raise ConflictError(problem)
        if answer.status in UNREADABLE:
            raise RequestError(problem)
        raise CollectError(f"{self.server} cannot answer: {problem}")

    def _send(
        self,
        method: str,
        path: str,
        body: Row | None = None,
        *,
        query: Mapping[str, str | int] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> HttpAnswer:
        """Return the answer to a request; what is quoted in `path` already stays so."""
        target = f"{self._base}/{quote(path, safe=SAFE)}" + (
            f"?{urlencode(query)}" if query else ""
        )
        content = None if body is None else _json_bytes(body)
        kind = {} if content is None else {"Content-Type": "application/json"}
        sent = {**self._headers, **kind, **(headers or {})}
        return self._connection.send(method, target, headers=sent, body=content)

    def _json(self, answer: HttpAnswer) -> Any:
        try:
            return json.loads(answer.body, object_hook=partial(Document, self.server))
        except (ValueError, RecursionError):
            return None

    def _document(self, answer: HttpAnswer) -> Row:
        document = self._json(answer)
        if isinstance(document, dict) and document.keys() >= STAMP:
            return document
        raise self._not_tidemark(answer)

    def _problem(self, answer: HttpAnswer) -> str:
        """Return the detail of Tidemark's problem document."""
        document = self._json(answer) if _media_type(answer) == PROBLEM else None
        if isinstance(document, dict) and isinstance(document.get("detail"), str):
            return str(document["detail"])
        if answer.status in DENIED:
            return _phrase(answer)  # of a proxy before it: a token may still help
        raise self._not_tidemark(answer)

    def _denied(self, detail: str) -> AuthenticationError:
        what = "another token" if self._headers else "--token-file with a token"
        return AuthenticationError(
            f"{self.server} denies us: {detail} Try {what} of scope {self._scope} "
            f"(`tidemark token create NAME --scope {self._scope}`)."
        )

    def _not_tidemark(self, answer: HttpAnswer) -> UnreachableError:
        if answer.status in OF_PROXIES:
            return UnreachableError(
                f"a proxy answers at {self.server}, and Tidemark behind it does not: {_phrase(answer)}"
            )
        target = _redirect_of(answer)
        what = f"redirects to {target}" if target else _media_type(answer) or "no content type"
        return UnreachableError(
            f"{self.server} is not a Tidemark: it answers {_phrase(answer)}, {what}"
        )


def _json_bytes(document: Row) -> bytes:
    return json.dumps(dict(document), ensure_ascii=False, separators=(",", ":")).encode()


def _redirect_of(answer: HttpAnswer) -> str | None:
    """Return where a redirect leads, without the query, which may hold a secret; None if it is none."""
    location = answer.headers.get("location") if answer.status // 100 == 3 else None
    return location and printable(location.partition("?")[0])


def _media_type(answer: HttpAnswer) -> str:
    return str(answer.headers.get("content-type", "")).partition(";")[0].strip().lower()


def _phrase(answer: HttpAnswer) -> str:
    return f"{answer.status} {answer.reason}".strip()
