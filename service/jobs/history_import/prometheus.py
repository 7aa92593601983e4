"""Range queries to a Prometheus server, with bounds on the time and the size of an answer."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Final, Self

import httpx2
import numpy as np
from numpy.typing import NDArray

from rules.errors import AuthenticationError, CollectError, RequestError

TIMEOUT_SECONDS: Final = 60.0
MOST_BYTES: Final = 32 << 20  # of one answer
TOO_MUCH: Final = (
    "exceeded maximum resolution",
    "too many samples",
    "query timed out",
    "timeout",
    "deadline exceeded",
)
DENIED: Final = (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN)
CLIENT_ERROR: Final = 400
SERVER_ERROR: Final = 500


class TooMuchError(Exception):
    """An answer is too large, or takes too long: a shorter range may succeed."""


class NotAnsweredError(Exception):
    """The server does not answer now."""


@dataclass(frozen=True, slots=True, eq=False)
class Answered:
    """One series of an answer."""

    labels: Mapping[str, str]
    at_ms: NDArray[np.int64]
    values: NDArray[np.float64]  # NaN where Prometheus says so


@dataclass(frozen=True, slots=True, eq=False)
class Answer:
    """All series of an answer."""

    series: Sequence[Answered]
    warnings: tuple[str, ...] = ()  # such as that a part of a federation did not answer


class PrometheusClient:
    """A client of one server; a token is never part of an error's text."""

    def __init__(
        self,
        address: str,
        *,
        token: str | None = None,
        options: Mapping[str, Any] | None = None,
        seconds: float = TIMEOUT_SECONDS,
        transport: httpx2.BaseTransport | None = None,
    ) -> None:
        """`address` is checked already; `options` are those of the HTTP client for it."""
        self.address = address.rstrip("/")
        self._seconds = seconds
        self._client = httpx2.Client(
            timeout=seconds,
            transport=transport,
            headers={} if token is None else {"Authorization": f"Bearer {token}"},
            **(options or {}),
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._client.close()

    def query_range(self, query: str, start_s: float, end_s: float, step_s: float) -> Answer:
        """Return the series of a query between two times, both included.

        Raises:
            TooMuchError: a shorter range may succeed.
            NotAnsweredError: the server does not answer now.
            AuthenticationError: the token is missing or rejected.
            RequestError: the server cannot read the query.
        """
        fields = {"query": query, "start": start_s, "end": end_s, "step": step_s}
        return _answer_of(self._data("query_range", fields), "matrix", "values")

    def query(self, query: str, at_s: float) -> Answer:
        """Return the series of a query at one time; errors are those of `query_range`."""
        return _answer_of(self._data("query", {"query": query, "time": at_s}), "vector", "value")

    def _data(self, path: str, fields: Mapping[str, object]) -> Mapping[str, Any]:
        data = {name: str(value) for name, value in fields.items()} | {
            "timeout": f"{self._seconds:g}s"
        }
        try:
            with self._client.stream("POST", f"{self.address}/api/v1/{path}", data=data) as answer:
                body = _read(answer)
        except httpx2.TimeoutException as exc:
            raise TooMuchError(f"no answer within {self._seconds:g} s") from exc
        except (httpx2.HTTPError, httpx2.InvalidURL) as exc:
            raise NotAnsweredError(str(exc) or type(exc).__name__) from exc
        return self._check(answer.status_code, body)

    def _check(self, status: int, body: bytes) -> Mapping[str, Any]:
        if status in DENIED:
            raise AuthenticationError(
                f"{self.address} rejects the request ({status}): --bearer-token-file names a token"
            )
        try:
            document = json.loads(body)
            is_success = document["status"] == "success"
        except (ValueError, TypeError, KeyError) as exc:
            if status >= SERVER_ERROR or status == HTTPStatus.TOO_MANY_REQUESTS:
                raise NotAnsweredError(f"status {status}") from exc
            raise CollectError(
                f"{self.address} does not answer as a Prometheus ({status})"
            ) from exc
        if is_success:
            return dict(document)
        error = str(document.get("error", f"status {status}"))
        if any(words in error.lower() for words in TOO_MUCH):
            raise TooMuchError(error)
        if status >= SERVER_ERROR or status == HTTPStatus.TOO_MANY_REQUESTS:
            raise NotAnsweredError(error)
        raise RequestError(f"{self.address} cannot answer the query: {error}")


def _read(answer: httpx2.Response) -> bytes:
    body = bytearray()
    for chunk in answer.iter_bytes():
        body += chunk
        if len(body) > MOST_BYTES:
            raise TooMuchError(f"an answer of more than {MOST_BYTES >> 20} MiB")
    return bytes(body)


def _answer_of(document: Mapping[str, Any], kind: str, values: str) -> Answer:
    try:
        data = document["data"]
        if data["resultType"] != kind:
            raise RequestError(f"the query gives a {data['resultType']}, and series are needed")
        series = [_series(row["metric"], row[values]) for row in data["result"]]
    except (KeyError, TypeError, ValueError, IndexError) as exc:
        raise CollectError("a Prometheus' answer cannot be read") from exc
    return Answer(series, tuple(map(str, document.get("warnings") or ())))


def _series(labels: Mapping[str, str], pairs: Sequence[Any]) -> Answered:
    rows = pairs if pairs and isinstance(pairs[0], list) else [pairs]
    times = np.array([row[0] for row in rows], np.float64)
    numbers = np.array([float(row[1]) for row in rows], np.float64)
    return Answered(dict(labels), np.rint(times * 1000).astype(np.int64), numbers)
