"""Reads metrics of brokers and clients in its own time, so that no round waits for an endpoint.

Each endpoint is asked once per interval, all of them side by side and spread over it. What they say
is counted here, over many observations; a round takes what there is, with its age. Those that gave nothing
twice wait for each other and not for the rest, so that a hundred dead ones delay nobody: neither one
that failed once nor, for some minutes, one that is restarted. Nor does a mount that hangs under the
files that list them: what is known goes on being asked.
"""

from __future__ import annotations

import asyncio
import threading
import zlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Final, Protocol, TypeVar

from collectors.scrapes.answer import Samples
from collectors.scrapes.counting import ScrapeTime
from collectors.scrapes.endpoints import Endpoint
from collectors.scrapes.listing import Listed
from collectors.scrapes.readings import Readings
from collectors.scrapes.scraping import Body
from collectors.scrapes.tracking import Tracker
from rules.facts.gap import GapCause
from rules.facts.last_observation import microseconds
from rules.facts.scrapes import EndpointState, ScrapeFailure, Scrapes
from rules.facts.times import SECOND_US
from service.runtime.clock import STEP_TOLERANCE
from service.runtime.events import Event
from service.runtime.log import Log
from service.runtime.threads import in_thread

FRESH_INTERVALS: Final = 3  # that an answer is used: one may be late, and one may fail
TICK_SECONDS: Final = 1.0  # at most, from one observation of what is due to the next
LEAST_SECONDS: Final = 0.05
AT_ONCE: Final = 32  # endpoints that are asked side by side
FAILED_AT_ONCE: Final = 8  # likewise, of those that gave nothing `FAILURES` times or more
FAILURES: Final = 2  # in a row: one may be by chance
LATELY_INTERVALS: Final = 20  # after an answer an endpoint may be back, and has places apart
MAX_CRC: Final = 2.0**32
LISTS_SECONDS: Final = 10.0  # then it is told that reading the lists takes long
LISTS_HANG: Final = ScrapeFailure(
    cause=GapCause.TIMEOUT,
    why=f"the files of targets were not read within {LISTS_SECONDS:g} s: what was known is asked on",
)
UNREAD: Final = Listed(endpoints=(), is_known=False)

T = TypeVar("T")


class OffLoop(Protocol):
    """Whatever calls a function outside of the event loop."""

    def __call__(self, function: Callable[[], T], /) -> Awaitable[T]:
        """Return what the function returns, or raise what it raises."""


class Asker(Protocol):
    """Whatever asks endpoints."""

    async def ask(self, endpoint: Endpoint) -> Body | ScrapeFailure:
        """Return what an endpoint sends now."""

    def read(self, body: Body) -> Samples:
        """Read what an endpoint sent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScrapePace:
    """How often, and how much is kept."""

    interval_seconds: float
    timeout_seconds: float  # that one observation takes at most
    max_series: int  # of one endpoint

    @property
    def fresh_us(self) -> int:
        """Return how long an answer is used."""
        return round((FRESH_INTERVALS * self.interval_seconds + self.timeout_seconds) * SECOND_US)


@dataclass(frozen=True, slots=True)
class _Made:
    """The facts of an endpoint, and by which wall clock they were made."""

    readings: Readings
    ahead_us: int  # that clock was ahead of the monotonic one

    def by(self, ahead_us: int) -> _Made:
        """Return the facts by the wall clock as it is now."""
        if ahead_us == self.ahead_us:
            return self
        moved = timedelta(microseconds=ahead_us - self.ahead_us)
        return _Made(self.readings.moved(moved), ahead_us)


@dataclass(slots=True)
class _Watched:
    """One endpoint, and when it is due."""

    tracker: Tracker
    due: float  # on the monotonic clock
    is_queried: bool = False  # now
    observations: int = 0
    made: _Made = field(default_factory=lambda: _Made(Readings(), 0))


class ScrapeWatch:
    """Observes endpoints until the service stops; `scrapes` may be called at any time."""

    def __init__(  # noqa: PLR0913 - two clocks and the log beside what is asked
        self,
        asker: Asker,
        lists: Callable[[], Listed],
        pace: ScrapePace,
        *,
        utc_now: Callable[[], datetime],
        monotonic: Callable[[], float],
        stop: asyncio.Event,
        log: Log,
        known: Listed = UNREAD,
        off_loop: OffLoop = in_thread,
    ) -> None:
        """`known` is asked before the lists are read; `off_loop` calls whatever takes time."""
        self._asker = asker
        self._lists = lists
        self._pace = pace
        self._utc_now = utc_now
        self._monotonic = monotonic
        self._stop = stop
        self._log = log
        self._off_loop = off_loop
        self._lock = threading.Lock()  # held to change what is below, never while one waits
        self._watched = {endpoint: self._new(endpoint, monotonic()) for endpoint in known.endpoints}
        self._listed = known
        self._ahead_us = self._ahead()
        self._places = asyncio.Semaphore(AT_ONCE)
        self._lately_places = asyncio.Semaphore(FAILED_AT_ONCE)
        self._dead_places = asyncio.Semaphore(FAILED_AT_ONCE)

    # -------------------------------------------------------------- for the round
    def scrapes(self) -> Scrapes:
        """Return what all endpoints said so far, each as of its latest answer."""
        with self._lock:
            ahead_us, states = self._follow_clock(), self._states(self._uptime_us())
            listed, watched = self._listed, list(self._watched.values())
            made = [one.made for one in watched]
        # Not under the lock: where the clock was set it takes seconds, and the event loop wants it.
        told = [one.by(ahead_us) for one in made]
        with self._lock:
            for one, before, after in zip(watched, made, told, strict=True):
                if one.made is before:
                    one.made = after
        facts = [one.readings for one in told]
        return Scrapes(
            is_read=True,
            endpoints=states,
            clients=tuple(client for each in facts for client in each.clients),
            request_errors=tuple(error for each in facts for error in each.request_errors),
            unclean_elections=tuple(
                election for each in facts for election in each.unclean_elections
            ),
            failures=listed.failures,
            lists_known=listed.is_known,
        )

    def endpoints(self) -> tuple[EndpointState, ...]:
        """Return how each endpoint is."""
        with self._lock:
            return self._states(self._uptime_us())

    def _states(self, now_us: int) -> tuple[EndpointState, ...]:
        watched = self._watched.values()
        return tuple(one.tracker.state(self._ahead_us, now_us) for one in watched)

    def _follow_clock(self) -> int:
        """Return by how much the wall clock is ahead; small steps are not followed.

        All times are moved along where it was set: observations are timed by the other clock.
        """
        ahead = self._ahead()
        if abs(ahead - self._ahead_us) > STEP_TOLERANCE.total_seconds() * SECOND_US:
            self._ahead_us = ahead
        return self._ahead_us

    # -------------------------------------------------------------- between rounds
    async def run(self) -> None:
        """Observation again and again until the service stops."""
        for one in self._watched.values():  # an earlier run may have died
            one.is_queried = False
        async with asyncio.TaskGroup() as group:
            tasks = {group.create_task(self._follow_lists(), name="scrape_lists")}
            while not self._stop.is_set():
                for endpoint in self._begin_due():
                    task = group.create_task(self._observe(endpoint), name="scrape")
                    tasks.add(task)
                    task.add_done_callback(tasks.discard)
                await self._stopped_within(self._wait_seconds())
            for task in tasks:
                task.cancel()

    async def _follow_lists(self) -> None:
        while not self._stop.is_set():
            await self._read_lists()
            await self._stopped_within(self._pace.interval_seconds)

    async def _read_lists(self) -> None:
        """Read the lists; if that takes long it is told, and awaited: a thread cannot be ended."""
        reading = asyncio.ensure_future(self._off_loop(self._lists))
        try:
            await asyncio.wait({reading}, timeout=LISTS_SECONDS)
            if not reading.done():
                failures = (*self._listed.failures, LISTS_HANG)
                self._take_lists(replace(self._listed, failures=failures))
            self._take_lists(await reading)
        finally:
            reading.cancel()

    def _take_lists(self, listed: Listed) -> None:
        now = self._monotonic()
        self._tell_lists(listed)
        with self._lock:
            self._listed = listed
            self._watched = {
                endpoint: self._watched.get(endpoint) or self._new(endpoint, now)
                for endpoint in listed.endpoints
            }

    def _new(self, endpoint: Endpoint, now: float) -> _Watched:
        pace = self._pace
        tracker = Tracker(endpoint, fresh_us=pace.fresh_us, max_series=pace.max_series)
        return _Watched(tracker, due=now)

    def _begin_due(self) -> list[Endpoint]:
        """Return the endpoints that are due, and set when they are due again."""
        now, interval = self._monotonic(), self._pace.interval_seconds
        begun = []
        for endpoint, one in self._watched.items():
            if one.is_queried or one.due > now:
                continue
            # The second observation spreads the endpoints over an interval; then each keeps its place.
            spread = 0.5 + zlib.crc32(endpoint.url.encode()) / MAX_CRC
            one.due = now + interval * (1.0 if one.observations else spread)
            one.is_queried, one.observations = True, one.observations + 1
            begun.append(endpoint)
        return begun

    def _wait_seconds(self) -> float:
        """Return how long nothing is due."""
        idle = (one.due for one in self._watched.values() if not one.is_queried)
        next_due = min(idle, default=float("inf"))
        return min(max(next_due - self._monotonic(), LEAST_SECONDS), TICK_SECONDS)

    async def _observe(self, endpoint: Endpoint) -> None:
        one = self._watched.get(endpoint)
        if one is None:
            return
        try:
            async with self._places_for(one.tracker):
                await self._ask(endpoint, one)
        finally:
            one.is_queried = False

    def _places_for(self, tracker: Tracker) -> asyncio.Semaphore:
        if tracker.failed_attempts < FAILURES:
            return self._places
        lately = LATELY_INTERVALS * self._pace.interval_seconds
        if tracker.answered_within(lately, self._uptime_us()):
            return self._lately_places
        return self._dead_places

    async def _ask(self, endpoint: Endpoint, one: _Watched) -> None:
        began_us, had_failed = self._uptime_us(), one.tracker.failed
        body = await self._asker.ask(endpoint)
        now = ScrapeTime(began_us, self._uptime_us())
        if isinstance(body, ScrapeFailure):
            with self._lock:
                one.tracker.note_failed(body, now)
        else:
            await self._off_loop(lambda: self._take(one, body, now))
        self._tell(endpoint, one, had_failed=had_failed)

    def _take(self, one: _Watched, body: Body, now: ScrapeTime) -> None:
        """Read an answer; facts are made before the lock is taken, for a round may want it."""
        samples = self._asker.read(body)
        with self._lock:
            one.tracker.note(samples, now)
            ahead_us = self._ahead_us
        readings = one.tracker.readings(ahead_us, now.ended_us)
        with self._lock:
            one.made = _Made(readings, ahead_us)

    # -------------------------------------------------------------- what is told
    def _tell(self, endpoint: Endpoint, one: _Watched, *, had_failed: bool) -> None:
        if one.tracker.failed and not had_failed:
            why = one.tracker.failures[0].why
            self._log.warning(Event.ENDPOINT_AWAY, endpoint=endpoint.name, why=why)
        elif had_failed and not one.tracker.failed:
            self._log.info(Event.ENDPOINT_BACK, endpoint=endpoint.name)

    def _tell_lists(self, listed: Listed) -> None:
        for failure in set(listed.failures) - set(self._listed.failures):
            self._log.warning(Event.ENDPOINT_LIST, why=failure.why)

    # -------------------------------------------------------------- time
    def _uptime_us(self) -> int:
        return round(self._monotonic() * SECOND_US)

    def _ahead(self) -> int:
        """Return by how much the wall clock is ahead of the monotonic one."""
        return microseconds(self._utc_now()) - self._uptime_us()

    async def _stopped_within(self, seconds: float) -> None:
        try:
            async with asyncio.timeout(seconds):
                await self._stop.wait()
        except TimeoutError:
            return
