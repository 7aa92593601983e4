"""The process as a whole, of fakes: signals, the order of its end, and every limit on the way."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from collections.abc import Awaitable, Callable
from functools import partial

import pytest

from rules.errors import StoreError
from service.app.serve import Parts, Service
from service.rounds.persistence import PersistenceState, PersistenceStatus
from service.rounds.pipeline import Pipeline
from service.runtime.clock import monotonic, wait_until
from service.runtime.events import Event
from service.runtime.supervisor import OnDeath, Supervisor, Task
from service.runtime.threads import in_thread
from tests.unit.service.runtime.recorded_log import RecordedLog

REJECTED = StoreError("the database has schema 0099, unknown here", retryable=False)
LONG, SHORT = 30.0, 0.02  # seconds: never reached in a test that passes, and soon over


async def at_once() -> None:
    return


async def for_ever() -> None:
    await asyncio.Event().wait()


class FakePipeline(Pipeline):
    """Tells what was asked of it; its calls block until they are `released`."""

    def __init__(self, calls: list[str]) -> None:
        self.calls = calls
        self.load_error: StoreError | None = None
        self.close_error: Exception | None = None
        self.status = PersistenceStatus(state=PersistenceState.STORED)
        self.began = threading.Event()  # loading
        self.released = threading.Event()
        self.released.set()

    @property
    def open_findings(self) -> int:
        return 3

    def load(self, *, is_start: bool = False, at_once: bool = False) -> bool:
        del at_once
        self.calls.append("load at start" if is_start else "load")
        self.began.set()
        self.released.wait(LONG)
        if self.load_error is not None:
            raise self.load_error
        return True

    def close(self) -> PersistenceStatus:
        self.calls.append("flush")
        if self.close_error is not None:
            raise self.close_error
        return self.status


class FakeHttp:
    """Answers until it is stopped, or for ever."""

    def __init__(self, calls: list[str]) -> None:
        self.calls = calls
        self.error: Exception | None = None
        self.is_stuck = False
        self._stopped = asyncio.Event()

    async def run(self) -> None:
        self.calls.append("http begins")
        if self.error is not None:
            raise self.error
        await self._stopped.wait()
        self.calls.append("http ends")

    def stop(self) -> None:
        self.calls.append("http is stopped")
        if not self.is_stuck:
            self._stopped.set()


class Process:
    """A service of fakes, and what its parts did, in order."""

    def __init__(self, *, drain_seconds: float = LONG, last_seconds: float = LONG) -> None:
        self.calls: list[str] = []
        self.reported = RecordedLog()
        self.stop = asyncio.Event()
        self.is_up = asyncio.Event()
        self.finish: Callable[[], Awaitable[None]] = at_once
        self.deliver: Callable[[], Awaitable[None]] = at_once  # what is still under way
        self.pipeline, self.http = FakePipeline(self.calls), FakeHttp(self.calls)
        self.close_error: StoreError | None = None
        self.closing = threading.Event()  # blocks closing until set
        self.closing.set()
        self.closed = threading.Event()
        self.supervisor = Supervisor(self.reported.log, self.stop, monotonic=monotonic)
        self.service = Service(
            Parts(
                pipeline=self.pipeline,
                rounds=Task(name="rounds", run=self._rounds),
                others=[Task(name="retention", run=self._goes_on)],
                finishing=[Task(name="deliveries", run=self._deliveries)],
                http=self.http,
                supervisor=self.supervisor,
                stop=self.stop,
                log=self.reported.log,
                close=self._close,
                starting={"cluster": "default"},
            ),
            drain_seconds=drain_seconds,
            last_seconds=last_seconds,
        )

    def run(self, *acts: Callable[[], Awaitable[None]]) -> bool:
        """Run the service, and `acts` once it is up."""

        async def body() -> bool:
            running = asyncio.ensure_future(self.service.run())
            acting = asyncio.ensure_future(self._act(*acts))
            try:
                return await running
            finally:
                acting.cancel()

        return asyncio.run(body())

    async def queries(self, number: signal.Signals = signal.SIGTERM) -> None:
        """Send a signal to this very process, whose handler is the service's."""
        os.kill(os.getpid(), number)
        await asyncio.sleep(0)

    async def _act(self, *acts: Callable[[], Awaitable[None]]) -> None:
        await self.is_up.wait()
        for act in acts:
            await act()

    async def _rounds(self) -> None:
        self.calls.append("rounds begin")
        self.is_up.set()
        await self.stop.wait()
        await self.finish()
        self.calls.append("rounds end")

    async def _deliveries(self) -> None:
        await self.stop.wait()
        await self.deliver()

    async def _goes_on(self) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            self.calls.append("retention ends")

    def _close(self) -> None:
        self.calls.append("close")
        self.closing.wait(LONG)
        self.closed.set()
        if self.close_error is not None:
            raise self.close_error


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_everything_in_reverse_order(number: signal.Signals) -> None:
    process = Process()
    assert process.run(lambda: process.queries(number))
    assert set(process.calls[:2]) == {"http begins", "load at start"}, "probes do not wait for it"
    assert process.calls[2:] == [
        "rounds begin",
        "rounds end",
        "flush",
        "http is stopped",
        "http ends",
        "retention ends",
        "close",
    ]
    assert process.reported.names == [
        Event.STARTING,
        Event.MEMORY_LOADED,
        Event.STARTED,
        Event.STOPPING,
        Event.STOPPED,
    ]


def test_handlers_of_signals_are_gone_afterwards() -> None:
    before = [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)]
    process = Process()
    process.run(process.queries)
    after = [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)]
    assert after == before


def test_the_front_answers_while_the_last_round_is_finished() -> None:
    process = Process()

    async def finish() -> None:
        process.calls.append("the round goes on")
        assert "http is stopped" not in process.calls

    process.finish = finish
    assert process.run(process.queries)
    calls = process.calls
    assert calls.index("the round goes on") < calls.index("http is stopped")


def test_what_is_under_way_is_waited_for() -> None:
    process = Process()

    async def deliver() -> None:
        flushed = partial(wait_until, lambda: "flush" in process.calls, timeout_seconds=LONG)
        assert await in_thread(flushed)
        process.calls.append("delivered")

    process.deliver = deliver
    assert process.run(process.queries)
    calls = process.calls
    assert calls.index("delivered") < calls.index("http is stopped") < calls.index("close")


def test_what_is_under_way_is_not_waited_for_without_end() -> None:
    process = Process(drain_seconds=SHORT, last_seconds=SHORT)
    process.deliver = for_ever
    assert process.run(process.queries)
    assert Event.DRAIN_LIMIT in process.reported.names


def test_what_could_not_be_stored_at_the_end_is_told() -> None:
    process = Process()
    process.pipeline.status = PersistenceStatus(
        state=PersistenceState.WAITING, error="connection refused", waiting_rounds=3
    )
    assert process.run(process.queries)
    assert process.reported.of(Event.STORE_UNAVAILABLE) == [
        {"level": "warning", "why": "connection refused", "waiting_rounds": 3}
    ]


def test_the_drain_limit_leaves_the_rest_undone_and_closes() -> None:
    process = Process(drain_seconds=SHORT, last_seconds=SHORT)
    process.finish = for_ever
    assert process.run(process.queries)
    assert process.closed.wait(LONG)
    assert "flush" not in process.calls
    assert process.reported.of(Event.DRAIN_LIMIT)[0] == {"level": "warning", "hurried": False}
    assert process.reported.names[-1] == Event.STOPPED


def test_a_front_that_does_not_end_is_ended() -> None:
    process = Process(drain_seconds=SHORT, last_seconds=SHORT)
    process.http.is_stuck = True
    assert process.run(process.queries)
    assert "http ends" not in process.calls
    assert Event.DRAIN_LIMIT in process.reported.names


def test_a_second_signal_hurries_and_still_closes() -> None:
    process = Process()
    process.finish = for_ever
    process.closing.clear()

    async def hurried() -> None:
        await process.stop.wait()
        await process.queries()
        threading.Timer(SHORT, process.closing.set).start()  # closing takes a time

    assert process.run(process.queries, hurried)
    assert process.closed.is_set(), "what is open has been closed before the service says so"
    assert process.reported.of(Event.DRAIN_LIMIT) == [{"level": "warning", "hurried": True}]
    assert process.reported.names[-1] == Event.STOPPED


def test_who_hurries_does_not_wait_for_long_while_something_is_closed() -> None:
    process = Process(last_seconds=SHORT)
    process.finish = for_ever
    process.closing.clear()

    async def hurried() -> None:
        await process.stop.wait()
        await process.queries()

    assert process.run(process.queries, hurried)
    assert not process.closed.is_set()
    assert len(process.reported.of(Event.DRAIN_LIMIT)) == 2
    process.closing.set()


def test_a_rejection_at_the_start_is_raised_and_everything_closed() -> None:
    process = Process()
    process.pipeline.load_error = REJECTED
    with pytest.raises(StoreError, match="0099"):
        process.run()
    assert sorted(process.calls) == ["close", "http begins", "load at start"]
    assert process.calls[-1] == "close"
    assert process.reported.names == [Event.STARTING, Event.STOPPED]
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


def test_handlers_are_gone_also_when_closing_fails() -> None:
    process = Process()
    process.close_error = StoreError("the server does not stop", retryable=False)
    with pytest.raises(StoreError, match="does not stop"):
        process.run(process.queries)
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


def test_an_error_while_draining_leaves_no_task_behind() -> None:
    process = Process()
    process.pipeline.close_error = ValueError("a defect of ours")
    left: list[asyncio.Task[None]] = []

    async def body() -> None:
        running = asyncio.ensure_future(process.service.run())
        await process.is_up.wait()
        await process.queries()
        with pytest.raises(ValueError, match="defect"):
            await running
        left.extend(asyncio.all_tasks() - {asyncio.current_task()})

    asyncio.run(body())
    assert left == []
    assert process.closed.is_set()


@pytest.mark.parametrize("signals", [1, 2])
def test_a_signal_ends_a_start_that_does_not_come_to_an_end(signals: int) -> None:
    limit = SHORT if signals == 1 else LONG
    process = Process(drain_seconds=limit, last_seconds=limit)
    process.pipeline.released.clear()

    async def body() -> bool:
        running = asyncio.ensure_future(process.service.run())
        await in_thread(lambda: process.pipeline.began.wait(LONG))
        for _ in range(signals):
            await process.queries()
        async with asyncio.timeout(LONG / 2):
            return await running

    assert asyncio.run(body())
    assert "rounds begin" not in process.calls
    assert process.closed.wait(LONG)
    process.pipeline.released.set()


def test_a_signal_during_a_start_that_ends_makes_no_round() -> None:
    process = Process()
    process.pipeline.released.clear()

    async def body() -> bool:
        running = asyncio.ensure_future(process.service.run())
        await in_thread(lambda: process.pipeline.began.wait(LONG))
        await process.queries()
        process.pipeline.released.set()
        return await running

    assert asyncio.run(body())
    assert "rounds begin" not in process.calls
    assert process.reported.names[-1] == Event.STOPPED


def test_the_death_of_the_front_ends_the_service_with_false() -> None:
    process = Process()
    process.http.error = OSError(98, "Address already in use")
    assert process.run() is False
    assert process.calls[-1] == "close"
    assert process.reported.of(Event.STOPPED) == [{"level": "info", "because": "http"}]


def test_the_death_of_a_task_that_may_die_ends_nothing() -> None:
    process = Process()

    async def dies_at_the_end() -> None:
        raise ValueError("while draining")

    process.finish = dies_at_the_end
    assert process.run(process.queries)
    assert process.supervisor.failed is None
    assert process.calls.index("flush") < process.calls.index("http ends")
    assert process.reported.of(Event.TASK_DIED)[0]["then"] == OnDeath.RESTART
