"""The process of `tidemark serve`: starts in dependency order, ends in reverse, each with a limit.

SIGTERM or Ctrl-C: no new round begins, the one under way is finished and stored, storing of waiting
rounds is tried once more, notifications under way end, the HTTP server answers to the last, and
everything is closed. A second signal, or the end of the drain limit, skips the rest; what was not stored
then is judged again after the next start.
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

from service.rounds.persistence import PersistenceState
from service.rounds.pipeline import Pipeline
from service.runtime.events import Event
from service.runtime.log import Log
from service.runtime.supervisor import OnDeath, Supervisor, Task
from service.runtime.threads import in_thread

SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)
LAST_SECONDS: Final = 2.0  # to close what is open, also when the drain limit was used up


class HttpPort(Protocol):
    """The HTTP server."""

    async def run(self) -> None:
        """Answer until `stop` was called."""

    def stop(self) -> None:
        """Finish the requests under way, and end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """The parts of the process."""

    pipeline: Pipeline
    rounds: Task
    others: Sequence[Task]  # ended when the service stops
    finishing: Sequence[Task] = ()  # end by themselves then, and are waited for
    http: HttpPort
    supervisor: Supervisor
    stop: asyncio.Event
    log: Log
    close: Callable[[], None]  # whatever is still open; blocks
    starting: dict[str, object]  # fields of the first event


class Service:
    """Runs until a signal comes, or a task dies that it cannot do without."""

    def __init__(
        self, parts: Parts, *, drain_seconds: float, last_seconds: float = LAST_SECONDS
    ) -> None:
        self._parts = parts
        self._drain_seconds = drain_seconds
        self._last_seconds = last_seconds
        self._hurry = asyncio.Event()
        self._deadline: float | None = None  # set when the service begins to stop

    async def run(self) -> bool:
        """Run until the end; return True if a signal ended it.

        Raises:
            StoreError: at the start: the database rejects us, and no later try can succeed.
        """
        parts = self._parts
        loop = asyncio.get_running_loop()
        for number in SIGNALS:
            loop.add_signal_handler(number, self._request_stop)
        try:
            parts.log.info(Event.STARTING, **parts.starting)
            await self._serve()
        finally:
            try:
                await self._close()
            finally:
                for number in SIGNALS:
                    loop.remove_signal_handler(number)
        return parts.supervisor.failed is None

    def _request_stop(self) -> None:
        if self._parts.stop.is_set():
            self._hurry.set()
        self._parts.stop.set()

    async def _load(self) -> None:
        """Read the stored state; a signal meanwhile waits for it no longer than for a round."""
        parts = self._parts
        load = in_thread(lambda: parts.pipeline.load(is_start=True), name="load")
        loading, stopping = asyncio.ensure_future(load), asyncio.ensure_future(parts.stop.wait())
        await asyncio.wait((loading, stopping), return_when=asyncio.FIRST_COMPLETED)
        stopping.cancel()
        if await self._done_in_time(loading) and loading.result():
            parts.log.info(Event.MEMORY_LOADED, open_findings=parts.pipeline.open_findings)

    async def _serve(self) -> None:
        """Answer probes from the start: reading the stored state may take a minute."""
        task = Task(name="http", run=self._parts.http.run, on_death=OnDeath.STOP)
        answering = asyncio.create_task(self._parts.supervisor.keep(task))
        try:
            await self._load()
            await self._run_tasks(answering)
        finally:
            self._parts.stop.set()
            answering.cancel()
            await asyncio.gather(answering, return_exceptions=True)

    async def _run_tasks(self, answering: asyncio.Task[None]) -> None:
        parts, keep = self._parts, self._parts.supervisor.keep
        if not parts.stop.is_set():
            parts.log.info(Event.STARTED)
        rounds = asyncio.create_task(keep(parts.rounds))
        others = [asyncio.create_task(keep(task)) for task in parts.others]
        finishing = [asyncio.create_task(keep(task)) for task in parts.finishing]
        await parts.stop.wait()
        parts.log.info(Event.STOPPING, drain_seconds=self._drain_seconds)
        draining = asyncio.ensure_future(self._drain(rounds, answering, finishing))
        try:
            if await self._done_in_time(draining):
                draining.result()
        finally:
            for task in (rounds, *others, *finishing):
                task.cancel()
            await asyncio.gather(rounds, *others, *finishing, return_exceptions=True)

    async def _drain(
        self,
        rounds: asyncio.Task[None],
        answering: asyncio.Task[None],
        finishing: Sequence[asyncio.Task[None]],
    ) -> None:
        await rounds
        status = await in_thread(self._parts.pipeline.close, name="flush")
        if status.state is not PersistenceState.STORED:
            self._parts.log.warning(
                Event.STORE_UNAVAILABLE, why=status.error, waiting_rounds=status.waiting_rounds
            )
        if finishing:
            await asyncio.wait(finishing)
        self._parts.http.stop()
        await answering

    async def _close(self) -> None:
        """Close everything; a second signal waits for that too, but not for long."""
        closing = asyncio.ensure_future(in_thread(self._parts.close, name="close"))
        limit = self._last_seconds if self._hurry.is_set() else self._seconds_left()
        await asyncio.wait((closing,), timeout=limit)
        if closing.done():
            closing.result()
        else:
            self._gave_up(closing)
        failed = self._parts.supervisor.failed
        self._parts.log.info(Event.STOPPED, **({"because": failed} if failed else {}))

    def _seconds_left(self) -> float:
        now = asyncio.get_running_loop().time()
        if self._deadline is None:
            self._deadline = now + self._drain_seconds
        return max(self._deadline - now, self._last_seconds)

    async def _done_in_time(self, doing: asyncio.Future[Any]) -> bool:
        """Wait for work until the drain limit or a second signal; return whether it is done."""
        if doing.done():
            return True
        hurry = asyncio.ensure_future(self._hurry.wait())
        await asyncio.wait(
            (doing, hurry), timeout=self._seconds_left(), return_when=asyncio.FIRST_COMPLETED
        )
        hurry.cancel()
        if not doing.done():
            self._gave_up(doing)
            return False
        return True

    def _gave_up(self, doing: asyncio.Future[Any]) -> None:
        doing.cancel()
        self._parts.log.warning(Event.DRAIN_LIMIT, hurried=self._hurry.is_set())
