"""When endpoints are asked, what a round is given of their answers, and what is logged."""

from __future__ import annotations

import asyncio
import contextlib
import sys
import threading
from collections.abc import Callable
from datetime import datetime, timedelta
from itertools import pairwise
from types import FrameType
from typing import Any, TypeVar

import pytest

from collectors.scrapes import readings
from collectors.scrapes.answer import Samples
from collectors.scrapes.endpoints import Endpoint, page_at
from collectors.scrapes.listing import Listed
from collectors.scrapes.scraping import Body
from collectors.scrapes.selection import Series, series_of
from rules.facts.gap import GapCause
from rules.facts.scrapes import EndpointKind, ScrapeFailure
from service.observe.scrape_watch import AT_ONCE, FAILED_AT_ONCE, ScrapePace, ScrapeWatch
from service.runtime.events import Event
from service.runtime.supervisor import Supervisor, Task
from tests.factories import NOON
from tests.instant import now, run_instantly
from tests.unit.service.runtime.recorded_log import RecordedLog

PACE = ScrapePace(interval_seconds=15.0, timeout_seconds=5.0, max_series=100)
APP = page_at("http://app-1:8081/metrics")
OTHER = page_at("http://app-2:8081/metrics")
SILENT = ScrapeFailure(cause=GapCause.TIMEOUT, why="no whole answer within 5 s")
DEAD = [page_at(f"http://dead-{number}/metrics") for number in range(300)]

T = TypeVar("T")


def counter(client_id: str = "payments") -> Series:
    labels = {"client_id": client_id, "topic": "orders"}
    series = series_of("kafka_producer_topic_record_error_total", labels)
    assert series is not None
    return series


class Endpoints:
    """Answers for every endpoint, in the time that a test sets."""

    def __init__(self) -> None:
        self.seconds: dict[Endpoint, float] = {}
        self.dead: set[Endpoint] = set()
        self.value = 0.0
        self.queries: list[tuple[Endpoint, float]] = []
        self.side_by_side = 0
        self.most_side_by_side = 0
        self.defect: Exception | None = None
        self.failing: dict[Endpoint, range] = {}  # the observations that fail

    def fail(self, endpoint: Endpoint, *, after: int, times: int) -> None:
        """Let some observes an endpoint give nothing."""
        self.failing[endpoint] = range(after + 1, after + times + 1)

    async def scrape(self, endpoint: Endpoint) -> Body | ScrapeFailure:
        """Answer after some time."""
        self.queries.append((endpoint, now()))
        self.side_by_side += 1
        self.most_side_by_side = max(self.most_side_by_side, self.side_by_side)
        try:
            await asyncio.sleep(self.seconds.get(endpoint, 0.1))
        finally:
            self.side_by_side -= 1
        number = len(self.times(endpoint))
        if endpoint in self.dead or number in self.failing.get(endpoint, ()):
            return SILENT
        return Body(kind=EndpointKind.PAGE, content=b"")

    def read(self, _body: Body) -> Samples:
        """Return what the body would hold."""
        if self.defect is not None:
            defect, self.defect = self.defect, None
            raise defect
        return Samples(values={counter(): self.value})

    def times(self, endpoint: Endpoint) -> list[float]:
        """Return when it was asked."""
        return [round(timestamp, 3) for one, timestamp in self.queries if one == endpoint]


class Watched:
    """A watch over endpoints that a test answers for; it lives on the loop's clock."""

    def __init__(self, *endpoints: Endpoint) -> None:
        self.endpoints = Endpoints()
        self.listed = Listed(endpoints=endpoints)
        self.lists_take = 0.0  # seconds
        self.reported = RecordedLog()
        self.stop = asyncio.Event()
        self.clock_set_by = timedelta(0)
        self.supervisor = Supervisor(self.reported.log, self.stop, monotonic=now)
        self.watch = ScrapeWatch(
            self.endpoints,
            self._lists,
            PACE,
            utc_now=self._utc_now,
            monotonic=now,
            stop=self.stop,
            log=self.reported.log,
            listed=Listed(endpoints=endpoints, is_known=False),
            off_loop=self._off_loop,  # a thread and the loop's clock know nothing of each other
        )

    def _lists(self) -> Listed:
        return self.listed

    async def _off_loop(self, function: Callable[[], T]) -> T:
        if function == self._lists and self.lists_take:
            await asyncio.sleep(self.lists_take)
        return function()

    def _utc_now(self) -> datetime:
        return NOON + timedelta(seconds=now()) + self.clock_set_by

    async def run(self, seconds: float, *then: Callable[[], None]) -> None:
        """Let it run so long, and as long again after each thing that is done then."""
        task = Task(name="scrapes", run=self.watch.run)
        running = asyncio.create_task(self.supervisor.keep(task))
        await asyncio.sleep(seconds)
        for done in then:
            done()
            await asyncio.sleep(seconds)
        self.stop.set()
        await running


def test_each_endpoint_is_asked_at_once_and_then_once_per_interval_at_its_own_time() -> None:
    async def test() -> Endpoints:
        watched = Watched(APP, OTHER)
        await watched.run(100)
        return watched.endpoints

    found = run_instantly(test)
    seconds: list[float] = []
    for endpoint in (APP, OTHER):
        first, second, *later = found.times(endpoint)
        assert first < 1
        assert 7.5 <= second - first < 24
        gaps = [b - a for a, b in pairwise([second, *later])]
        assert gaps, "it was asked again"
        assert all(14.99 <= gap < 16.1 for gap in gaps)
        seconds.append(second)
    assert abs(seconds[0] - seconds[1]) > 1, "they do not come together again"


def test_a_round_is_given_what_was_said_with_its_time() -> None:
    async def test() -> None:
        watched = Watched(APP)
        before = watched.watch.scrapes()
        assert (before.is_read, before.fresh, before.is_complete) == (True, frozenset(), False)

        def rise() -> None:
            watched.endpoints.value = 3.0

        await watched.run(30, rise)
        seen = watched.watch.scrapes()
        assert seen.is_complete
        assert seen.fresh == {APP.name}
        (client,) = seen.clients
        assert client.errors is not None
        assert [one.count for one in client.errors.rises] == [3]
        assert NOON < client.seen_at < NOON + timedelta(seconds=61)
        assert watched.watch.endpoints() == seen.endpoints

    run_instantly(test)


def test_an_endpoint_that_hangs_delays_no_other() -> None:
    async def test() -> Endpoints:
        watched = Watched(*DEAD, APP)
        watched.endpoints.dead = set(DEAD)
        watched.endpoints.seconds = dict.fromkeys(DEAD, 5.0)
        await watched.run(150)
        return watched.endpoints

    found = run_instantly(test)
    times = [timestamp for timestamp in found.times(APP) if timestamp > 50]
    gaps = [b - a for a, b in pairwise(times)]
    assert len(gaps) >= 4
    assert max(gaps) < 17, "it does not wait for those that are dead"
    assert found.most_side_by_side <= AT_ONCE + 2 * FAILED_AT_ONCE


@pytest.mark.parametrize("failures", [1, 4], ids=["rejected once", "started again"])
def test_one_that_answered_lately_waits_for_none_that_are_dead(failures: int) -> None:
    async def test() -> Endpoints:
        watched = Watched(*DEAD, APP)
        watched.endpoints.dead = set(DEAD)
        watched.endpoints.seconds = dict.fromkeys(DEAD, 5.0)
        watched.endpoints.fail(APP, after=5, times=failures)
        await watched.run(400)
        return watched.endpoints

    found = run_instantly(test)
    gaps = [b - a for a, b in pairwise(found.times(APP)[3:])]
    assert len(gaps) > 15
    assert max(gaps) < 17


def test_an_endpoint_is_not_asked_again_while_it_is_being_asked() -> None:
    async def test() -> Endpoints:
        watched = Watched(APP)
        watched.endpoints.seconds = {APP: 40.0}
        await watched.run(130)
        return watched.endpoints

    found = run_instantly(test)
    assert found.most_side_by_side == 1
    gaps = [b - a for a, b in pairwise(found.times(APP))]
    assert len(gaps) == 3
    assert all(40 <= gap <= 41 for gap in gaps)


def test_failing_and_coming_back_are_told_once_each() -> None:
    async def test() -> list[dict[str, Any]]:
        watched = Watched(APP)
        watched.endpoints.dead = {APP}
        await watched.run(60, watched.endpoints.dead.clear)
        return watched.reported.events

    away, back = run_instantly(test)
    assert (away["event"], back["event"]) == (Event.ENDPOINT_AWAY, Event.ENDPOINT_BACK)
    assert (away["endpoint"], away["why"], away["level"]) == (APP.name, SILENT.why, "warning")
    assert back["endpoint"] == APP.name


def test_an_answer_that_is_too_old_is_not_fresh_any_more() -> None:
    async def test() -> None:
        watched = Watched(APP)

        def die() -> None:
            watched.endpoints.dead = {APP}

        await watched.run(40, die)
        assert watched.watch.scrapes().fresh == {APP.name}
        await asyncio.sleep(40)
        seen = watched.watch.scrapes()
        assert seen.fresh == frozenset()
        assert [one.why for one in seen.gaps()] == [SILENT.why]
        assert len(seen.clients) == 1, "it is still known who is not heard"

    run_instantly(test)


def test_lists_are_read_again_and_what_is_no_longer_listed_is_forgotten() -> None:
    async def test() -> None:
        watched = Watched(APP)
        broken = ScrapeFailure(cause=GapCause.UNREADABLE, why="targets.json is not JSON in UTF-8")

        def change() -> None:
            watched.listed = Listed(endpoints=(OTHER,), failures=(broken,))

        await watched.run(40, change)
        seen = watched.watch.scrapes()
        assert [one.name for one in seen.endpoints] == [OTHER.name]
        assert len(seen.clients) == 1
        assert [one.why for one in seen.gaps()] == [broken.why]
        assert watched.reported.names == [Event.ENDPOINT_LIST]

    run_instantly(test)


def test_lists_that_hang_stop_no_endpoint_and_are_told() -> None:
    async def test() -> None:
        watched = Watched(APP)

        def hang() -> None:
            watched.lists_take = 1000.0
            watched.listed = Listed(endpoints=(OTHER,))

        await watched.run(120, hang)
        seen = watched.watch.scrapes()
        assert seen.fresh == {APP.name}, "what they said last is asked on"
        assert [one.cause for one in seen.gaps()] == [GapCause.TIMEOUT]
        assert watched.reported.names == [Event.ENDPOINT_LIST]
        assert len(watched.endpoints.times(APP)) > 200 / PACE.interval_seconds
        assert now() < 241, "nor does the end of the service wait for them"

    run_instantly(test)


def test_lists_that_are_late_are_taken_all_the_same() -> None:
    async def test() -> None:
        watched = Watched(APP)
        watched.lists_take = 40.0
        watched.listed = Listed(endpoints=(OTHER,))

        def early() -> None:
            seen = watched.watch.scrapes()
            assert (seen.fresh, seen.lists_known) == (frozenset({APP.name}), False)
            assert [one.cause for one in seen.gaps()] == [GapCause.TIMEOUT]

        await watched.run(30, early)
        seen = watched.watch.scrapes()
        assert (seen.fresh, seen.lists_known) == (frozenset({OTHER.name}), True)
        assert list(seen.gaps()) == []

    run_instantly(test)


def test_times_follow_a_wall_clock_that_was_set() -> None:
    async def test() -> None:
        watched = Watched(APP)
        await watched.run(40)
        (before,) = watched.watch.scrapes().clients
        watched.clock_set_by = timedelta(hours=-1)
        seen = watched.watch.scrapes()
        (after,) = seen.clients
        assert after.seen_at == before.seen_at - timedelta(hours=1)
        (endpoint,) = seen.endpoints
        assert endpoint.answered_at is not None
        assert endpoint.answered_at <= after.seen_at
        assert endpoint.is_fresh

    run_instantly(test)


def test_the_event_loop_is_not_kept_waiting_while_times_are_moved() -> None:
    def is_free(watch: ScrapeWatch) -> bool:
        def ask() -> None:
            with contextlib.suppress(RuntimeError):  # it got as far as asking for a clock
                watch.endpoints()

        thread = threading.Thread(target=ask, daemon=True)
        thread.start()
        thread.join(5.0)  # a lock that is held now is held until we return
        return not thread.is_alive()

    async def test() -> list[bool]:
        watched, found = Watched(APP), list[bool]()
        await watched.run(40)
        watched.clock_set_by = timedelta(hours=-1)

        def called(frame: FrameType, event: str, _argument: object) -> None:
            if event == "call" and frame.f_code.co_filename == readings.__file__:
                found.append(is_free(watched.watch))

        sys.setprofile(called)
        try:
            watched.watch.scrapes()
        finally:
            sys.setprofile(None)
        return found

    found = run_instantly(test)
    assert set(found) == {True}


def test_times_that_were_moved_are_moved_from_there() -> None:
    async def test() -> None:
        watched = Watched(APP)
        await watched.run(40)
        (before,) = watched.watch.scrapes().clients
        for hours in (5, 5, 0):
            watched.clock_set_by = timedelta(hours=hours)
            (client,) = watched.watch.scrapes().clients
            assert client.seen_at == before.seen_at + timedelta(hours=hours)
        assert watched.watch.scrapes().clients == (before,)

    run_instantly(test)


def test_a_defect_ends_no_watch_and_loses_nothing_that_was_said() -> None:
    async def test() -> Watched:
        watched = Watched(APP)

        def break_() -> None:
            watched.endpoints.defect = RuntimeError("a defect")
            watched.endpoints.value = 4.0

        await watched.run(40, break_)
        assert watched.supervisor.restarts == {"scrapes": 1}
        (client,) = watched.watch.scrapes().clients
        assert client.errors is not None
        assert [one.count for one in client.errors.rises] == [4]
        return watched

    run_instantly(test)


@pytest.mark.parametrize("seconds", [0.05, 3.0])
def test_it_ends_at_once_though_an_endpoint_is_being_asked(seconds: float) -> None:
    async def test() -> float:
        watched = Watched(APP)
        watched.endpoints.seconds = {APP: 1000.0}
        await watched.run(seconds)
        assert watched.endpoints.side_by_side == 0
        return now()

    assert run_instantly(test) < seconds + 1
