"""Few calls of the database run at a time, few wait, none for long, and an error passes through."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from typing import TypeVar

import pytest

from rules.errors import StoreError
from service.api.core.few_at_once import FewAtOnce
from service.api.core.problems import ProblemError, TooLateError
from tests.unit.service.api.given import AWAY, at_once

T = TypeVar("T")


class Counting:
    """Is in for threads, and counts how many run at once."""

    def __init__(self) -> None:
        self.running = 0
        self.most = 0

    async def __call__(self, function: Callable[[], T], /) -> T:
        self.running += 1
        self.most = max(self.most, self.running)
        await asyncio.sleep(0)
        self.running -= 1
        return function()


def test_few_calls_run_at_once_and_all_are_answered() -> None:
    counting = Counting()

    async def scenario() -> list[int]:
        few = FewAtOnce(counting, 2)
        return await asyncio.gather(*(few(partial(int, n)) for n in range(7)))

    assert asyncio.run(scenario()) == list(range(7))
    assert counting.most == 2


def test_an_error_frees_its_place() -> None:
    def fails() -> int:
        raise AWAY

    async def scenario() -> int:
        few = FewAtOnce(at_once, 1)
        with pytest.raises(StoreError):
            await few(fails)
        return await few(lambda: 7)

    assert asyncio.run(scenario()) == 7


class Hanging:
    """Is in for threads that end when they may."""

    def __init__(self) -> None:
        self.may_end = asyncio.Event()
        self.begun = 0

    async def __call__(self, function: Callable[[], T], /) -> T:
        self.begun += 1
        await self.may_end.wait()
        return function()


async def begun(calls: int, few: FewAtOnce) -> list[asyncio.Task[int]]:
    made = [asyncio.create_task(few(lambda: 7)) for _ in range(calls)]
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    return made


def test_who_comes_when_too_many_wait_is_told_so_at_once() -> None:
    async def scenario() -> None:
        hanging = Hanging()
        few = FewAtOnce(hanging, 2, queue=3)
        calls = await begun(5, few)
        with pytest.raises(ProblemError, match="too many requests wait") as caught:
            await few(lambda: 7)
        assert caught.value.status == 503
        hanging.may_end.set()
        assert await asyncio.gather(*calls) == [7] * 5
        assert await few(lambda: 8) == 8

    asyncio.run(scenario())


def test_a_call_that_hangs_is_given_up_in_time_and_keeps_its_place() -> None:
    async def scenario() -> None:
        hanging = Hanging()
        few = FewAtOnce(hanging, 1, seconds=0.02)
        for _ in range(3):
            with pytest.raises(TooLateError, match="did not answer in time"):
                await few(lambda: 7)
        assert hanging.begun == 1, "the others would each have been one more thread"
        hanging.may_end.set()
        await asyncio.sleep(0)
        assert await few(lambda: 8) == 8

    asyncio.run(scenario())


def test_an_error_that_nobody_waits_for_any_more_is_not_logged_as_a_defect() -> None:
    def fails() -> int:
        raise AWAY

    async def scenario() -> list[object]:
        logged: list[object] = []
        asyncio.get_running_loop().set_exception_handler(lambda _, found: logged.append(found))
        hanging = Hanging()
        with pytest.raises(TooLateError):
            await FewAtOnce(hanging, 1, seconds=0.02)(fails)
        hanging.may_end.set()
        await asyncio.sleep(0.01)
        gc.collect()
        return logged

    assert asyncio.run(scenario()) == []


def test_calls_that_compute_are_followed_by_a_rest_of_as_long_as_they_took() -> None:
    times: list[tuple[float, float]] = []

    async def timed(function: Callable[[], T], /) -> T:
        loop = asyncio.get_running_loop()
        began = loop.time()
        await asyncio.sleep(0.02)
        times.append((began, loop.time()))
        return function()

    async def scenario() -> None:
        few = FewAtOnce(timed, 1, rests=True)
        assert await asyncio.gather(*(few(lambda: 7) for _ in range(3))) == [7] * 3

    asyncio.run(scenario())
    for (began, ended), (next_began, _) in pairwise(times):
        assert next_began - ended >= 0.9 * (ended - began)
