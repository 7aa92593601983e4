"""Few calls of the database run at a time, and an error passes through."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import TypeVar

import pytest

from rules.errors import StoreError
from service.web.ports import FewAtOnce
from tests.unit.service.web.given import AWAY, at_once

T = TypeVar("T")


class Counting:
    """Stands in for threads, and counts how many run at once."""

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
