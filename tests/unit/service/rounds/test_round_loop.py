"""When rounds begin; none is cut off, and none overlaps another."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace

import pytest

from service.observe.watch import EARLY_SECONDS
from service.rounds.pipeline import Pipeline, RoundResult
from service.rounds.round_log import RoundLog
from service.rounds.round_loop import RoundLoop
from service.runtime.events import Event
from tests.instant import InstantLoop
from tests.unit.service.rounds.unseen import made_round, service_state
from tests.unit.service.runtime.recorded_log import RecordedLog

INTERVAL = 15.0


class FakePipeline(Pipeline):
    """Makes rounds that take as long as a test says, on the loop's clock."""

    def __init__(self, loop: InstantLoop) -> None:
        self.loop = loop
        self.begins: list[float] = []
        self.takes: Callable[[int], float] = lambda _: 0.0
        self.leaders_move_in: set[int] = set()  # rounds, counted from 1
        self.fails_in: set[int] = set()
        self.at_round: Callable[[int], None] = lambda _: None

    def make_round(self) -> RoundResult:
        self.begins.append(self.loop.time())
        number = len(self.begins)
        self.at_round(number)
        self.loop.jump(self.takes(number))
        if number in self.fails_in:
            raise ValueError("a defect of ours")
        made = made_round(replace(service_state(), rounds=number))
        moved = replace(made.watched, leaders_moved=number in self.leaders_move_in)
        return replace(made, watched=moved)


class Driven:
    """A loop of rounds that stops in its n-th round."""

    def __init__(self, *, rounds: int) -> None:
        self.loop = InstantLoop()
        self.reported = RecordedLog()
        self.pipeline = FakePipeline(self.loop)
        self.stop = asyncio.Event()
        self.pipeline.at_round = lambda number: self._stop_in(number, rounds)
        self.rounds = RoundLoop(
            self.pipeline,
            RoundLog(self.reported.log),
            interval_seconds=INTERVAL,
            monotonic=self.loop.time,
            stop=self.stop,
        )

    def run(self) -> list[float]:
        """Return when the rounds began."""
        with asyncio.Runner(loop_factory=lambda: self.loop) as runner:
            runner.run(self.rounds.run())
        return self.pipeline.begins

    def _stop_in(self, number: int, last: int) -> None:
        if number == last:
            self.loop.call_soon_threadsafe(self.stop.set)


def test_rounds_begin_at_once_and_every_interval_from_start_to_start() -> None:
    driven = Driven(rounds=3)
    driven.pipeline.takes = lambda number: 4.0 * number
    assert driven.run() == [0, INTERVAL, 2 * INTERVAL]


def test_a_round_that_takes_longer_than_the_interval_is_followed_at_once() -> None:
    driven = Driven(rounds=3)
    driven.pipeline.takes = lambda number: 40.0 if number == 1 else 0.0
    assert driven.run() == [0, 40, 55]


def test_a_round_is_early_after_a_leader_change() -> None:
    driven = Driven(rounds=3)
    driven.pipeline.takes = lambda _: 2.0
    driven.pipeline.leaders_move_in = {1}
    assert driven.run() == [0, 2 + EARLY_SECONDS, 2 + EARLY_SECONDS + INTERVAL]


def test_the_round_in_which_the_service_stops_is_finished_and_told() -> None:
    driven = Driven(rounds=1)
    driven.run()
    assert [event["number"] for event in driven.reported.of(Event.ROUND)] == [1]


def test_no_round_begins_once_the_service_stops() -> None:
    driven = Driven(rounds=1)
    driven.stop.set()
    assert driven.run() == []


def test_a_loop_that_was_started_again_keeps_the_interval() -> None:
    driven = Driven(rounds=2)
    driven.pipeline.fails_in = {1}
    with asyncio.Runner(loop_factory=lambda: driven.loop) as runner:
        with pytest.raises(ValueError, match="defect"):
            runner.run(driven.rounds.run())
        runner.run(driven.rounds.run())
    assert driven.pipeline.begins == [0, INTERVAL]


def test_waiting_for_the_next_round_ends_with_the_service() -> None:
    driven = Driven(rounds=99)

    async def body() -> float:
        running = asyncio.ensure_future(driven.rounds.run())
        await asyncio.sleep(INTERVAL + 1)
        driven.stop.set()
        await running
        return driven.loop.time()

    with asyncio.Runner(loop_factory=lambda: driven.loop) as runner:
        assert runner.run(body()) == pytest.approx(INTERVAL + 1)


def test_every_round_is_told_in_order() -> None:
    driven = Driven(rounds=4)
    driven.run()
    told = [event["number"] for event in driven.reported.of(Event.ROUND)]
    assert told == [1, 2, 3, 4]
