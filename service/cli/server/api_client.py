"""What a running Tidemark says over HTTP, asked by commands as by any other client.

Everything that can go wrong is an error whose text names the server and what to do; a token is
never part of it. What answers in another form than Tidemark does is none, whatever its status.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from types import TracebackType
from typing import Any, Final, Self
from urllib.parse import urlsplit

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

LOOPBACK: Final = frozenset({"127.0.0.1", "::1", "localhost"})
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
NOT_AS_THINGS_STAND: Final = (HTTPStatus.CONFLICT, HTTPStatus.PRECONDITION_FAILED)

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back of a request."""

    document: Row  # empty where nothing had to be said
    etag: str | None  # of what can be edited


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
        """`server` is the address, without the path of the API; `scope` is what is needed there."""
        self.server = server.rstrip("/")
        self._scope = scope
        self._has_token = token is not None
        self._client = httpx2.Client(
            base_url=self.server + PREFIX,
            timeout=seconds,
            transport=transport,
            headers={} if token is None else {"Authorization": f"Bearer {token}"},
            # A proxy does not lead to this machine's own loopback interface.
            trust_env=urlsplit(server).hostname not in LOOPBACK,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close its connections."""
        self._client.close()

    def get(self, path: str, **query: str | int) -> Row:
        """Return what is at a path.

        Raises:
            UnreachableError: nobody answers, or what answers is no Tidemark that has this path.
            AuthenticationError: it denies us.
            CollectError: it cannot tell soon like this.
        """
        found = self.find(path, **query)
        if found is None:
            told = f"{self.server} has no {PREFIX}/{path}: an older Tidemark?"
            raise UnreachableError(told)
        return found

    def find(self, path: str, **query: str | int) -> Row | None:
        """Return what is at a path, None if it says that there is nothing; else as `get`."""
        try:
            return self._answered(self._sent("GET", path, params=query)).document
        except NotThereError:
            return None

    def observe(self, path: str) -> Answer:
        """Return what is at a path with its ETag.

        Raises:
            NotThereError: there is nothing; other errors are those of `get`.
        """
        return self._answered(self._sent("GET", path))

    def change(
        self, method: str, path: str, body: Row | None = None, *, etag: str | None = None
    ) -> Answer:
        """Change what is at a path; a POST is done once, however often it has to be sent.

        Raises:
            NotThereError: there is nothing.
            ConflictError: not as things stand; `etag` is not that of now.
            RequestError: the body cannot be read.
            UnreachableError: nobody answers; it may have been done all the same.
        """
        headers = {} if etag is None else {"If-Match": etag}
        content = {} if body is None else {"json": dict(body)}
        if method != "POST":
            return self._answered(self._sent(method, path, headers=headers, **content))
        headers["Idempotency-Key"] = uuid.uuid4().hex
        try:
            answer = self._sent(method, path, headers=headers, **content)
        except UnreachableError:
            answer = self._sent(method, path, headers=headers, **content)
        return self._answered(answer)

    def pages(self, path: str, **query: str | int) -> Iterator[Row]:
        """Give all pages of a list; errors are those of `get`."""
        cursor: dict[str, str] = {}
        for _ in range(MAX_PAGES):
            page = self.get(path, **{"limit": LIMIT, **query, **cursor})
            yield page
            if not page.get("next"):
                return
            cursor = {"cursor": page["next"]}
        raise CollectError(f"{self.server} has more than {MAX_PAGES} pages of {path}")

    def _answered(self, answer: httpx2.Response) -> Answer:
        if answer.is_success:
            is_empty = answer.status_code == HTTPStatus.NO_CONTENT
            is_done = is_empty and answer.request.method == "DELETE"
            return Answer({} if is_done else self._document(answer), answer.headers.get("etag"))
        problem = self._problem(answer)
        if answer.status_code in DENIED:
            raise self._denied(problem)
        if answer.status_code == HTTPStatus.NOT_FOUND:
            raise NotThereError(problem)
        if answer.status_code in NOT_AS_THINGS_STAND:
            raise ConflictError(problem)
        if answer.status_code in UNREADABLE:
            raise RequestError(problem)
        raise CollectError(f"{self.server} cannot tell: {problem}")

    def _sent(self, method: str, path: str, **sent: Any) -> httpx2.Response:
        try:
            return self._client.request(method, path, **sent)
        except httpx2.TimeoutException as exc:
            raise UnreachableError(f"{self.server} gives no answer in time") from exc
        except (httpx2.HTTPError, httpx2.InvalidURL) as exc:
            why = str(exc) or type(exc).__name__
            raise UnreachableError(
                f"{self.server} cannot be reached: {why}; is `tidemark serve` running there? "
                "--server says where to ask"
            ) from exc

    def _document(self, answer: httpx2.Response) -> Row:
        found = _json(answer)
        if isinstance(found, dict) and found.keys() >= STAMP:
            return found
        raise self._stranger(answer)

    def _problem(self, answer: httpx2.Response) -> str:
        """Return what Tidemark says about an error of its own."""
        found = _json(answer) if _media_type(answer) == PROBLEM else None
        if isinstance(found, dict) and isinstance(found.get("detail"), str):
            return str(found["detail"])
        if answer.status_code in DENIED:
            return _phrase(answer)  # of a proxy before it: a token may still help
        raise self._stranger(answer)

    def _denied(self, detail: str) -> AuthenticationError:
        what = "another token" if self._has_token else "--token-file with a token"
        return AuthenticationError(
            f"{self.server} denies us: {detail} Try {what} of scope {self._scope} "
            f"(`tidemark token create NAME --scope {self._scope}`)."
        )

    def _stranger(self, answer: httpx2.Response) -> UnreachableError:
        kind = _media_type(answer) or "no content type"
        return UnreachableError(
            f"{self.server} is no Tidemark: it answers {_phrase(answer)}, {kind}"
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
