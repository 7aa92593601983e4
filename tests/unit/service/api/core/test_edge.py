"""Requests that are rejected after a pause in which they hold no place, or when the server stops."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from itertools import count
from typing import Any

import pytest
from httpx2 import Response
from starlette.testclient import TestClient
from starlette.types import Message, Receive, Scope, Send

from service.api.core.edge import PauseRejections, Stamp
from service.api.core.problems import OverloadError, ProblemError, not_found
from tests.unit.service.api.given import World

LIMIT = 2


def pausing(error: ProblemError, seconds: float) -> PauseRejections:
    """Return the middleware above an application that raises an error."""

    async def app(_scope: Scope, _receive: Receive, _send: Send) -> None:
        raise error

    return PauseRejections(app, seconds=seconds, limit=LIMIT)


async def end_of(middleware: PauseRejections, order: list[int], number: int) -> None:
    """Send a request, and note when it was rejected."""
    with pytest.raises(ProblemError):
        await middleware({}, _receive, _send)
    order.append(number)


async def _receive() -> Message:
    raise AssertionError


async def _send(_message: Message) -> None:
    raise AssertionError


def test_rejections_are_held_back_and_of_very_many_only_some() -> None:
    middleware, order = pausing(OverloadError("too many"), 0.05), list[int]()

    async def scenario() -> None:
        await asyncio.gather(*(end_of(middleware, order, number) for number in range(LIMIT + 2)))
        await end_of(middleware, order, 7)

    asyncio.run(scenario())
    assert order == [LIMIT, LIMIT + 1, *range(LIMIT), 7]


def test_other_errors_are_answered_at_once() -> None:
    middleware, order = pausing(not_found("nothing here"), 3600.0), list[int]()
    asyncio.run(asyncio.wait_for(end_of(middleware, order, 1), 60))
    assert order == [1]


def test_what_is_held_back_in_a_route_holds_no_place(monkeypatch: pytest.MonkeyPatch) -> None:
    others: list[Response] = []
    calls = count()

    async def pause(_self: PauseRejections) -> None:
        others.append(client.get("/api/v1/findings"))

    async def first_is_too_many(function: Callable[[], Any], /) -> Any:
        if next(calls) == 0:
            raise OverloadError("too many requests wait for the list")
        return function()

    monkeypatch.setattr(PauseRejections, "_pause", pause)
    world = World()
    world.in_thread = first_is_too_many
    client = TestClient(world.app(limit=1), base_url="http://localhost")
    answer = client.get("/api/v1/findings")
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "10")
    assert answer.json()["detail"] == "too many requests wait for the list"
    assert [other.status_code for other in others] == [200]


def test_a_request_that_the_stopping_server_cancels_is_answered() -> None:
    sent: list[Message] = []
    begun = asyncio.Event()

    async def hangs(_scope: Scope, _receive: Receive, _send: Send) -> None:
        begun.set()
        await asyncio.Event().wait()

    async def send(message: Message) -> None:
        sent.append(message)

    async def scenario() -> None:
        scope = {"type": "http", "path": "/api/v1/groups", "headers": []}
        request = asyncio.create_task(Stamp(hangs)(scope, _receive, send))
        await begun.wait()
        request.cancel()
        await request

    asyncio.run(scenario())
    assert sent[0]["status"] == 503
    assert b"Tidemark is stopping" in sent[1]["body"]
