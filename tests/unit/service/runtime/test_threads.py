"""Blocking calls in threads: results, errors, and callers that are gone."""

from __future__ import annotations

import asyncio
import threading

import pytest

from service.runtime import clock
from service.runtime.threads import OneAtATime, begin, in_thread

LONG = 10.0  # seconds; nothing waits for so long


def test_the_result_arrives_from_a_daemon_thread_of_that_name() -> None:
    def work() -> tuple[str, bool]:
        return threading.current_thread().name, threading.current_thread().daemon

    assert asyncio.run(in_thread(work, name="round")) == ("round", True)


def test_the_loop_goes_on_while_a_function_blocks() -> None:
    async def body() -> str:
        released = threading.Event()
        answer = asyncio.ensure_future(in_thread(lambda: released.wait(5)))
        await asyncio.sleep(0)
        assert not answer.done()
        released.set()
        return "released" if await answer else "stuck"

    assert asyncio.run(body()) == "released"


@pytest.mark.parametrize("error", [ValueError("no"), OSError(28, "full"), GeneratorExit()])
def test_what_a_function_raises_is_raised_where_it_is_awaited(error: BaseException) -> None:
    def work() -> None:
        raise error

    with pytest.raises(type(error)) as raised:
        asyncio.run(in_thread(work))
    assert raised.value is error


def test_a_stray_stop_iteration_is_an_error_and_no_endless_wait() -> None:
    def work() -> int:
        return next(iter(()))

    async def body() -> None:
        async with asyncio.timeout(5):
            await in_thread(work)

    with pytest.raises(RuntimeError, match="StopIteration") as raised:
        asyncio.run(body())
    assert isinstance(raised.value.__cause__, StopIteration)


@pytest.mark.parametrize("fails", [False, True])
def test_what_comes_after_the_caller_was_cancelled_is_dropped(fails: bool) -> None:  # noqa: FBT001
    released, ended = threading.Event(), threading.Event()
    errors: list[object] = []

    def work() -> None:
        released.wait(5)
        ended.set()
        if fails:
            raise ValueError("nobody is there to see it")

    async def body() -> None:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, context: errors.append(context))
        waiting = asyncio.ensure_future(in_thread(work))
        await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        released.set()
        await in_thread(lambda: ended.wait(5))
        await asyncio.sleep(0)

    asyncio.run(body())
    assert errors == []


@pytest.mark.parametrize("fails", [False, True])
def test_a_thread_that_outlives_the_loop_ends_quietly(fails: bool) -> None:  # noqa: FBT001
    released = threading.Event()
    threads: list[threading.Thread] = []

    def work() -> None:
        threads.append(threading.current_thread())
        released.wait(5)
        if fails:
            raise ValueError("the loop is gone")

    async def body() -> None:
        waiting = asyncio.ensure_future(in_thread(work))
        await asyncio.sleep(0)
        waiting.cancel()

    asyncio.run(body())
    released.set()
    threads[0].join(5)
    assert not threads[0].is_alive(), "and pytest turns an exception in a thread into a failure"


def test_a_call_in_time_returns_or_raises() -> None:
    calls = OneAtATime("test")
    assert calls.call(lambda: 7, LONG) == 7

    def fail() -> int:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        calls.call(fail, LONG)
    assert calls.call(lambda: 8, LONG) == 8


def test_a_call_that_hangs_is_given_up_and_nothing_else_is_begun_until_it_ends() -> None:
    calls, release, begun = OneAtATime("test"), threading.Event(), threading.Event()

    def hang() -> None:
        begun.set()
        release.wait(LONG)

    with pytest.raises(TimeoutError, match="no answer within"):
        calls.call(hang, 0.01)
    assert begun.wait(LONG)
    with pytest.raises(TimeoutError, match="an earlier call"):
        calls.call(lambda: 1, LONG)
    release.set()
    assert clock.wait_until(lambda: again(calls), timeout_seconds=LONG, poll_seconds=0.001)


def again(calls: OneAtATime) -> bool:
    try:
        return calls.call(lambda: True, LONG)
    except TimeoutError:
        return False


def test_a_timeout_of_the_function_itself_is_its_own() -> None:
    def late() -> None:
        raise TimeoutError("the function's")

    with pytest.raises(TimeoutError, match="the function's"):
        OneAtATime("test").call(late, LONG)


@pytest.mark.parametrize("fails", [False, True])
def test_what_was_begun_ends_with_its_outcome_before_it_is_reported(fails: bool) -> None:  # noqa: FBT001
    ended = threading.Event()

    def work() -> str:
        if fails:
            raise ValueError("no")
        return threading.current_thread().name

    outcome = begin(work, ended.set, name="refresh")
    assert ended.wait(30)
    assert outcome.done()
    if fails:
        with pytest.raises(ValueError, match="no"):
            outcome.result()
    else:
        assert outcome.result() == "refresh"
