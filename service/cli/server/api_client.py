"""A client of the HTTP API of a running Tidemark, for the commands.

Each error's text names the server and what to do; a token is never part of it. A server whose answers
do not have Tidemark's format is not taken for one, whatever the status.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Final, Self

import httpx2

from rules.errors import (
    AuthenticationError,
    CollectError,
    ConflictError,
    NotThereError,
    RequestError,
    UnreachableError,
)
from service.api.core.prefix import PREFIX
from service.cli.server.connecting import client_options

TIMEOUT_SECONDS: Final = 10.0
LIMIT: Final = 1000  # items of a page
MAX_PAGES: Final = 1000
PROBLEM: Final = "application/problem+json"
STAMP: Final = frozenset({"as_of", "is_current"})  # every answer about a cluster has it
DENIED: Final = (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN)
UNREADABLE: Final = (
    HTTPStatus.BAD_REQUEST,
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
    HTTPStatus.UNPROCESSABLE_ENTITY,
)
CONFLICTS: Final = (HTTPStatus.CONFLICT, HTTPStatus.PRECONDITION_FAILED)

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to a request."""

    document: Row  # empty if the answer has no content
    etag: str | None  # of a resource that can be edited


class ApiClient:
    """A client of one Tidemark."""

    def __init__(
        self,
        server: str,
        *,
        token: str | None = None,
        scope: str = "read",
        seconds: float = TIMEOUT_SECONDS,
        transport: httpx2.BaseTransport | None = None,
    ) -> None:
        """`server` is the address, without the path of the API; `scope` is the one that is needed there."""
        self.server = server.rstrip("/")
        self._scope = scope
        self._has_token = token is not None
        self._client = httpx2.Client(
            base_url=self.server + PREFIX,
            timeout=seconds,
            transport=transport,
            headers={} if token is None else {"Authorization": f"Bearer {token}"},
            **client_options(server),
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

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
            return self._check_answer(self._send("GET", path, params=query)).document
        except NotThereError:
            return None

    def observe(self, path: str) -> Answer:
        """Return the document at a path with its ETag.

        Raises:
            NotThereError: there is none; other errors are those of `get`.
        """
        return self._check_answer(self._send("GET", path))

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
        content = {} if body is None else {"json": dict(body)}
        if method != "POST":
            return self._check_answer(self._send(method, path, headers=headers, **content))
        headers["Idempotency-Key"] = uuid.uuid4().hex
        try:
            answer = self._send(method, path, headers=headers, **content)
        except UnreachableError:
            answer = self._send(method, path, headers=headers, **content)
        return self._check_answer(answer)

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

    def _check_answer(self, answer: httpx2.Response) -> Answer:
        if answer.is_success:
            is_empty = answer.status_code == HTTPStatus.NO_CONTENT
            is_done = is_empty and answer.request.method == "DELETE"
            return Answer({} if is_done else self._document(answer), answer.headers.get("etag"))
        problem = self._problem(answer)
        if answer.status_code in DENIED:
            raise self._denied(problem)
        if answer.status_code == HTTPStatus.NOT_FOUND:
            raise NotThereError(problem)
        if answer.status_code in CONFLICTS:
            raise ConflictError(problem)
        if answer.status_code in UNREADABLE:
            raise RequestError(problem)
        raise CollectError(f"{self.server} cannot answer: {problem}")

    def _send(self, method: str, path: str, **sent: Any) -> httpx2.Response:
        try:
            return self._client.request(method, path, **sent)
        except httpx2.TimeoutException as exc:
            raise UnreachableError(f"{self.server} did not answer in time") from exc
        except (httpx2.HTTPError, httpx2.InvalidURL) as exc:
            why = str(exc) or type(exc).__name__
            raise UnreachableError(
                f"{self.server} cannot be reached: {why}; is `tidemark serve` running there? "
                "--server sets the address"
            ) from exc

    def _document(self, answer: httpx2.Response) -> Row:
        document = _json(answer)
        if isinstance(document, dict) and document.keys() >= STAMP:
            return document
        raise self._not_tidemark(answer)

    def _problem(self, answer: httpx2.Response) -> str:
        """Return the detail of Tidemark's problem document."""
        document = _json(answer) if _media_type(answer) == PROBLEM else None
        if isinstance(document, dict) and isinstance(document.get("detail"), str):
            return str(document["detail"])
        if answer.status_code in DENIED:
            return _phrase(answer)  # of a proxy before it: a token may still help
        raise self._not_tidemark(answer)

    def _denied(self, detail: str) -> AuthenticationError:
        what = "another token" if self._has_token else "--token-file with a token"
        return AuthenticationError(
            f"{self.server} denies us: {detail} Try {what} of scope {self._scope} "
            f"(`tidemark token create NAME --scope {self._scope}`)."
        )

    def _not_tidemark(self, answer: httpx2.Response) -> UnreachableError:
        kind = _media_type(answer) or "no content type"
        return UnreachableError(
            f"{self.server} is not a Tidemark: it answers {_phrase(answer)}, {kind}"
        )


def _json(answer: httpx2.Response) -> Any:
    try:
        return answer.json()
    except (ValueError, RecursionError):
        return None


def _media_type(answer: httpx2.Response) -> str:
    return str(answer.headers.get("content-type", "")).partition(";")[0].strip().lower()


def _phrase(answer: httpx2.Response) -> str:
    return f"{answer.status_code} {answer.reason_phrase}".strip()
