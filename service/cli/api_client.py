"""What a running Tidemark says over HTTP, asked by commands as by any other client.

Everything that can go wrong is an error whose text names the server and what to do; a token is
never part of it. What answers in another form than Tidemark does is none, whatever its status.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from http import HTTPStatus
from types import TracebackType
from typing import Any, Final, Self
from urllib.parse import urlsplit

import httpx2

from rules.errors import AuthenticationError, CollectError, UnreachableError

LOOPBACK: Final = frozenset({"127.0.0.1", "::1", "localhost"})
TIMEOUT_SECONDS: Final = 10.0
LIMIT: Final = 1000  # items of a page
MAX_PAGES: Final = 1000
PREFIX: Final = "/api/v1"
PROBLEM: Final = "application/problem+json"
STAMP: Final = frozenset({"as_of", "is_current"})  # every answer about a cluster has it
REFUSED: Final = (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN)

Row = Mapping[str, Any]


class ApiClient:
    """A client of one Tidemark."""

    def __init__(
        self,
        server: str,
        *,
        token: str | None = None,
        seconds: float = TIMEOUT_SECONDS,
        transport: httpx2.BaseTransport | None = None,
    ) -> None:
        """`server` is the address, without the path of the API."""
        self.server = server.rstrip("/")
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
            AuthenticationError: it refuses us.
            CollectError: it cannot tell in a moment like this.
        """
        found = self.find(path, **query)
        if found is None:
            told = f"{self.server} has no {PREFIX}/{path}: an older Tidemark?"
            raise UnreachableError(told)
        return found

    def find(self, path: str, **query: str | int) -> Row | None:
        """Return what is at a path, None if it says that there is nothing; else as `get`."""
        answer = self._asked(path, query)
        if answer.is_success:
            return self._document(answer)
        problem = self._problem(answer)
        if answer.status_code in REFUSED:
            raise self._refused(problem)
        if answer.status_code == HTTPStatus.NOT_FOUND:
            return None
        raise CollectError(f"{self.server} cannot tell: {problem}")

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

    def _asked(self, path: str, query: Row) -> httpx2.Response:
        try:
            return self._client.get(path, params=query)
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
        if answer.status_code in REFUSED:
            return _phrase(answer)  # of a proxy before it: a token may still help
        raise self._stranger(answer)

    def _refused(self, detail: str) -> AuthenticationError:
        what = "another token" if self._has_token else "--token-file with a token"
        return AuthenticationError(
            f"{self.server} refuses us: {detail} Try {what} of scope read "
            "(`tidemark token create NAME --scope read`)."
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
