"""A connection without a network: a function answers each request, in httpx2's types."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import httpx2

from service.cli.server.http_connection import HttpAnswer


@dataclass(frozen=True, slots=True)
class MockConnection:
    """A `Connection` to a server that is a function; errors of that are its own."""

    answer: Callable[[httpx2.Request], httpx2.Response]
    server: str

    def send(
        self, method: str, target: str, *, headers: Mapping[str, str], body: bytes | None
    ) -> HttpAnswer:
        url = self.server + target
        answer = self.answer(httpx2.Request(method, url, headers=dict(headers), content=body))
        return HttpAnswer(
            status=answer.status_code,
            reason=answer.reason_phrase,
            headers=dict(answer.headers),
            body=answer.content,
        )

    def close(self) -> None:
        """Close nothing."""
