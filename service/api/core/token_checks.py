"""Queries about API tokens: one at a time, for all requests that wait.

So whoever sends wrong secrets, however many, delays a valid one by a query at most.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping

from rules.errors import StoreError
from service.api.core.few_at_once import InThread
from service.api.core.ports import TokenChecker
from service.api.core.problems import ProblemError
from service.storage.tokens.tokens import ApiToken

# Called with the hashes of a query and the valid tokens among them; None: the database gave no answer.
Note = Callable[[Collection[str], Mapping[str, ApiToken] | None], None]


class TokenChecks:
    """Verifies tokens by the hashes of their secrets, in a thread."""

    def __init__(self, checker: TokenChecker, in_thread: InThread, note: Note) -> None:
        self._checker = checker
        self._in_thread = in_thread
        self._note = note
        self._running: dict[str, asyncio.Future[bool]] = {}  # in the query under way
        self._next: dict[str, asyncio.Future[bool]] = {}
        self._task: asyncio.Task[None] | None = None

    def check(self, digest: str, *, is_fresh: bool) -> asyncio.Future[bool]:
        """Return whether the database answers about a hash; its answer is noted before.

        A fresh check takes no query that is under way: the token may have been revoked since it began.
        """
        if not is_fresh and digest in self._running:
            return self._running[digest]
        check = self._next.get(digest)
        if check is None:
            check = self._next[digest] = asyncio.get_running_loop().create_future()
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._run(), name="tokens")
        return check

    async def _run(self) -> None:
        """Query until nothing waits."""
        while self._next:
            self._running, self._next = self._next, {}
            is_answered = False
            try:
                is_answered = await self._query(tuple(self._running))
            finally:
                for check in self._running.values():
                    check.set_result(is_answered)
                self._running = {}

    async def _query(self, hashes: Collection[str]) -> bool:
        try:
            tokens = await self._in_thread(lambda: self._checker.verify(hashes))
        except (StoreError, ProblemError):
            self._note(hashes, None)
            return False
        self._note(hashes, tokens)
        return True
