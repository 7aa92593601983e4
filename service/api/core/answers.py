"""Answers as JSON, made one at a time away from the event loop, which every probe and scrape needs.

An answer that depends on nothing but the state of the service is made once per round, however many request it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final, TypeVar

from fastapi import Response
from pydantic import BaseModel

from service.api.core.few_at_once import InThread
from service.api.core.paging import Pager
from service.api.core.problems import JSON
from service.rounds.latest import ServiceState

ANSWERS_AT_ONCE: Final = 1  # more would end no sooner, and delay probes and rounds more
ANSWER_SECONDS: Final = 30.0  # waiting included
MAX_KEPT: Final = (
    32 * 1024 * 1024
)  # bytes of answers of a round; thousands of losses have ten million

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class _Answer:
    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict)


class Answers:
    """Makes answers."""

    def __init__(self, in_thread: InThread) -> None:
        """`in_thread` calls one function at a time."""
        self._in_thread = in_thread
        self._state: ServiceState | None = None
        self._of_state: dict[str, asyncio.Task[_Answer]] = {}  # by the target of the request

    async def compute(self, function: Callable[[], T]) -> T:
        """Return what a function returns that computes for long."""
        return await self._in_thread(function)

    async def render(self, make: Callable[[], BaseModel], pager: Pager | None = None) -> Response:
        """Return an answer, with the header that `make` has the pager set."""
        return _response(await self._render(make, pager))

    async def render_once(
        self, state: ServiceState, make: Callable[[], BaseModel], pager: Pager
    ) -> Response:
        """Return an answer that is made of a state and the request alone."""
        if self._state is not state:
            self._state, self._of_state = state, {}
        target = pager.target
        task = self._of_state.get(target)
        if task is None:
            task = asyncio.create_task(self._render(make, pager), name="answer")
            self._of_state[target] = task
            task.add_done_callback(lambda done: self._keep(target, done))
        return _response(await asyncio.shield(task))

    async def _render(self, make: Callable[[], BaseModel], pager: Pager | None) -> _Answer:
        body = await self._in_thread(lambda: make().model_dump_json(by_alias=True).encode())
        return _Answer(body) if pager is None else _Answer(body, pager.headers)

    def _keep(self, target: str, done: asyncio.Task[_Answer]) -> None:
        """Keep an answer of the current state as far as there is space; forget an error."""
        is_failed = done.cancelled() or done.exception() is not None
        if self._of_state.get(target) is not done:
            return
        if is_failed:
            del self._of_state[target]
            return
        sizes = {
            key: len(task.result().body) for key, task in self._of_state.items() if task.done()
        }
        while sum(sizes.values()) > MAX_KEPT:
            oldest = next(iter(sizes))
            del sizes[oldest], self._of_state[oldest]


def _response(answer: _Answer) -> Response:
    return Response(answer.body, headers=dict(answer.headers), media_type=JSON)
