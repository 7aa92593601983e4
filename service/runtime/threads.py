"""The one place that moves blocking calls to threads: off the event loop, or ahead of a consumer.

A thread cannot be cancelled, so that every call made here needs a limit of its own. The threads are
daemons: one that is stuck does not keep the process from ending. Only the one of `one_ahead` is waited for.
"""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Final, Protocol, TypeVar

T = TypeVar("T")

# How long a thread computes while another waits for its turn; Python's own is 5 ms. An answer of the event
# loop takes some ten turns, each of which waits for a round, a list and log lines that are being parsed:
# under such a load a probe is answered twice as fast as with 5 ms, and rounds take no longer.
TURN_SECONDS: Final = 0.0005


def take_short_turns() -> None:
    """Let the event loop wait for threads that compute no longer than it has to."""
    sys.setswitchinterval(TURN_SECONDS)


async def in_thread(function: Callable[[], T], *, name: str = "blocking") -> T:
    """Call a function in a thread of its own and await what it returns or raises.

    When the caller is cancelled the function goes on, and nobody waits for it.
    """
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[T] = loop.create_future()

    def hand_over(settle: Callable[[], None]) -> None:
        try:
            loop.call_soon_threadsafe(lambda: None if answer.done() else settle())
        except RuntimeError:
            return  # the loop is closed: the process ends, and nothing waits

    def work() -> None:
        try:
            result = function()
        except BaseException as exc:  # noqa: BLE001 - not handled here: raised where it is awaited
            error = _awaitable(exc)
            hand_over(lambda: answer.set_exception(error))
        else:
            hand_over(lambda: answer.set_result(result))

    threading.Thread(target=work, name=name, daemon=True).start()
    return await answer


def _awaitable(error: BaseException) -> BaseException:
    """Return an error that a future accepts: it rejects StopIteration, and the caller would wait for ever."""
    if not isinstance(error, StopIteration):
        return error
    replacement = RuntimeError("StopIteration left a function that was called in a thread")
    replacement.__cause__ = error
    return replacement


class InTime(Protocol):
    """Calls a function that may hang."""

    def __call__(self, function: Callable[[], T], seconds: float, /) -> T:
        """Return what it returns; TimeoutError if it does not end in so many seconds."""


def without_limit(function: Callable[[], T], _seconds: float, /) -> T:
    """Call a function that does not hang."""
    return function()


class OneAtATime:
    """Runs calls that block, one at a time, and waits for each no longer than a limit.

    For callers in a thread of their own. A call that does not end in time goes on, and until it ends no
    other begins: it would only wait for the same thing.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._running: threading.Thread | None = None

    def call(self, function: Callable[[], T], seconds: float) -> T:
        """Return what the function returns, or raise what it raises.

        Raises:
            TimeoutError: it does not end in time, or an earlier one has not ended yet.
        """
        if self._running is not None and self._running.is_alive():
            raise TimeoutError("an earlier call still waits for its answer")
        outcome: Future[T] = Future()
        self._running = threading.Thread(
            target=_settle, args=(outcome, function), name=self._name, daemon=True
        )
        self._running.start()
        try:
            return outcome.result(seconds)
        except TimeoutError:
            if outcome.done():
                return outcome.result()  # the function's own, or it came at the last time
            raise TimeoutError(f"no answer within {seconds:.0f} s") from None


def one_ahead(items: Iterator[T]) -> Generator[T]:
    """Yield the same items, and raise the same exceptions; a thread makes each, one ahead.

    So two cores work instead of one. At most two items exist at once. A consumer that stops before the end
    waits for the item that is being made.
    """
    with ThreadPoolExecutor(1, thread_name_prefix="one-ahead") as maker:
        ahead = maker.submit(_next, items)
        while item := ahead.result():
            ahead = maker.submit(_next, items)
            yield item[0]


def _next(items: Iterator[T]) -> tuple[T] | None:
    for item in items:
        return (item,)
    return None


def _settle(outcome: Future[T], function: Callable[[], T]) -> None:
    try:
        outcome.set_result(function())
    except BaseException as exc:  # noqa: BLE001 - not handled here: raised where it is awaited
        outcome.set_exception(exc)


def begin(function: Callable[[], T], then: Callable[[], None], *, name: str) -> Future[T]:
    """Call a function in a thread of its own; return its outcome, and call `then` when there is one.

    The process may end before it does. `then` is called in that thread.
    """
    outcome: Future[T] = Future()

    def work() -> None:
        _settle(outcome, function)
        then()

    threading.Thread(target=work, name=name, daemon=True).start()
    return outcome
