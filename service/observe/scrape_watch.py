"""Scrapes metrics of brokers and clients on its own schedule, so that no round waits for an endpoint.

Each endpoint is scraped once per interval, concurrently and spread over it. Counters are compared here,
over many scrapes; a round takes the latest facts, with their age. Endpoints that failed twice in a row share
a few places of their own, so that a hundred dead ones delay no other: neither one that failed once nor, for
some minutes, one that is restarting. If the files that list targets are on a mount that hangs, the targets
of the last read go on being scraped.
"""

from __future__ import annotations

import asyncio
import threading
import zlib
from collections.abc import Awaitable, Callable, Mapping
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
from service.runtime.clock import STEP_TOLERANCE, set_within
from service.runtime.events import Event
from service.runtime.log import Log
from service.runtime.threads import in_thread

FRESH_INTERVALS: Final = 3  # that an answer is used: one may be late, and one may fail
TICK_SECONDS: Final = 1.0  # at most, from one observation of what is due to the next
LEAST_SECONDS: Final = 0.05
AT_ONCE: Final = 32  # endpoints that are scraped concurrently
FAILED_AT_ONCE: Final = 8  # likewise, of those that gave nothing `FAILURES` times or more
FAILURES: Final = 2  # in a row: one may be by chance
LATELY_INTERVALS: Final = 20  # after an answer an endpoint may be back, and has places apart
MAX_CRC: Final = 2.0**32
LISTS_SECONDS: Final = 10.0  # then it is reported that reading the lists takes long
LISTS_HANG: Final = ScrapeFailure(
    cause=GapCause.TIMEOUT,
    why=f"the files of targets were not read within {LISTS_SECONDS:g} s: the targets of the last "
    "read go on being scraped",
)
UNREAD: Final = Listed(endpoints=(), is_known=False)

T = TypeVar("T")


class OffLoop(Protocol):
    """Calls a function outside of the event loop."""

    def __call__(self, function: Callable[[], T], /) -> Awaitable[T]:
        """Return what the function returns, or raise what it raises."""


class Scraper(Protocol):
    """Scrapes endpoints."""

    async def scrape(self, endpoint: Endpoint) -> Body | ScrapeFailure:
        """Scrape an endpoint."""

    def read(self, body: Body) -> Samples:
        """Parse a body."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScrapePace:
    """How often endpoints are scraped, and how much is kept."""

    interval_seconds: float
    timeout_seconds: float  # that one observation takes at most
    max_series: int  # of one endpoint

    @property
    def fresh_us(self) -> int:
        """Return how long an answer is used."""
        return round((FRESH_INTERVALS * self.interval_seconds + self.timeout_seconds) * SECOND_US)


@dataclass(frozen=True, slots=True)
class _Facts:
    """The facts of an endpoint, and the offset of the wall clock that they are timed by."""

    readings: Readings
    ahead_us: int  # that clock was ahead of the monotonic one

    def by(self, ahead_us: int) -> _Facts:
        """Return the facts, timed by the wall clock as it is now."""
        if ahead_us == self.ahead_us:
            return self
        moved = timedelta(microseconds=ahead_us - self.ahead_us)
        return _Facts(self.readings.moved(moved), ahead_us)


@dataclass(slots=True)
class _Watched:
    """One endpoint, and when it is due."""

    tracker: Tracker
    due: float  # on the monotonic clock
    is_queried: bool = False  # now
    observations: int = 0
    facts: _Facts = field(default_factory=lambda: _Facts(Readings(), 0))


class ScrapeWatch:
    """Observes endpoints until the service stops; `scrapes` may be called at any time."""

    def __init__(  # noqa: PLR0913 - two clocks and the log beside the endpoints
        self,
        scraper: Scraper,
        lists: Callable[[], Listed],
        pace: ScrapePace,
        *,
        utc_now: Callable[[], datetime],
        monotonic: Callable[[], float],
        stop: asyncio.Event,
        log: Log,
        listed: Listed = UNREAD,
        off_loop: OffLoop = in_thread,
        broker_ids: Mapping[str, int] | None = None,
    ) -> None:
        """`listed` is scraped until the lists are read; `off_loop` makes calls that take time.

        `broker_ids` are the configured brokers of addresses and names of processes.
        """
        self._broker_ids = broker_ids or {}
        self._scraper = scraper
        self._lists = lists
        self._pace = pace
        self._utc_now = utc_now
        self._monotonic = monotonic
        self._stop = stop
        self._log = log
        self._off_loop = off_loop
        self._lock = threading.Lock()  # held to change what is below, never while one waits
        self._watched = {
            endpoint: self._new(endpoint, monotonic()) for endpoint in listed.endpoints
        }
        self._listed = listed
        self._ahead_us = self._ahead()
        self._places = asyncio.Semaphore(AT_ONCE)
        self._lately_places = asyncio.Semaphore(FAILED_AT_ONCE)
        self._dead_places = asyncio.Semaphore(FAILED_AT_ONCE)

    def scrapes(self) -> Scrapes:
        """Return the facts of all endpoints, each as of its latest answer."""
        with self._lock:
            ahead_us, states = self._follow_clock(), self._states(self._uptime_us())
            listed, watched = self._listed, list(self._watched.values())
            facts_before = [endpoint.facts for endpoint in watched]
        # Not under the lock: where the clock was set it takes seconds, and the event loop wants it.
        facts_now = [fact.by(ahead_us) for fact in facts_before]
        with self._lock:
            for endpoint, before, after in zip(watched, facts_before, facts_now, strict=True):
                if endpoint.facts is before:
                    endpoint.facts = after
        facts = [fact.readings for fact in facts_now]
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
            broker_ids=self._broker_ids,
        )

    def endpoints(self) -> tuple[EndpointState, ...]:
        """Return the state of each endpoint."""
        with self._lock:
            return self._states(self._uptime_us())

    def _states(self, now_us: int) -> tuple[EndpointState, ...]:
        watched = self._watched.values()
        return tuple(endpoint.tracker.state(self._ahead_us, now_us) for endpoint in watched)

    def _follow_clock(self) -> int:
        """Return by how much the wall clock is ahead; small steps are not followed.

        When it is set, all times move along: scrapes are timed by the monotonic clock.
        """
        ahead = self._ahead()
        if abs(ahead - self._ahead_us) > STEP_TOLERANCE.total_seconds() * SECOND_US:
            self._ahead_us = ahead
        return self._ahead_us

    async def run(self) -> None:
        """Scrape again and again until the service stops."""
        for watched in self._watched.values():  # an earlier run may have died
            watched.is_queried = False
        async with asyncio.TaskGroup() as group:
            tasks = {group.create_task(self._follow_lists(), name="scrape_lists")}
            while not self._stop.is_set():
                for endpoint in self._begin_due():
                    task = group.create_task(self._observe(endpoint), name="scrape")
                    tasks.add(task)
                    task.add_done_callback(tasks.discard)
                await set_within(self._stop, self._wait_seconds())
            for task in tasks:
                task.cancel()

    async def _follow_lists(self) -> None:
        while not self._stop.is_set():
            await self._read_lists()
            await set_within(self._stop, self._pace.interval_seconds)

    async def _read_lists(self) -> None:
        """Read the lists; a read that takes long is reported and still awaited: a thread cannot be ended."""
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
        self._log_list_failures(listed)
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
        for endpoint, watched in self._watched.items():
            if watched.is_queried or watched.due > now:
                continue
            # The second scrape spreads the endpoints over an interval; then each keeps its slot.
            spread = 0.5 + zlib.crc32(endpoint.url.encode()) / MAX_CRC
            watched.due = now + interval * (1.0 if watched.observations else spread)
            watched.is_queried, watched.observations = True, watched.observations + 1
            begun.append(endpoint)
        return begun

    def _wait_seconds(self) -> float:
        """Return how long nothing is due."""
        idle = (watched.due for watched in self._watched.values() if not watched.is_queried)
        next_due = min(idle, default=float("inf"))
        return min(max(next_due - self._monotonic(), LEAST_SECONDS), TICK_SECONDS)

    async def _observe(self, endpoint: Endpoint) -> None:
        watched = self._watched.get(endpoint)
        if watched is None:
            return
        try:
            async with self._places_for(watched.tracker):
                await self._scrape(endpoint, watched)
        finally:
            watched.is_queried = False

    def _places_for(self, tracker: Tracker) -> asyncio.Semaphore:
        if tracker.failed_attempts < FAILURES:
            return self._places
        lately = LATELY_INTERVALS * self._pace.interval_seconds
        if tracker.answered_within(lately, self._uptime_us()):
            return self._lately_places
        return self._dead_places

    async def _scrape(self, endpoint: Endpoint, watched: _Watched) -> None:
        began_us, had_failed = self._uptime_us(), watched.tracker.failed
        body = await self._scraper.scrape(endpoint)
        now = ScrapeTime(began_us, self._uptime_us())
        if isinstance(body, ScrapeFailure):
            with self._lock:
                watched.tracker.note_failed(body, now)
        else:
            await self._off_loop(lambda: self._take(watched, body, now))
        self._log_change(endpoint, watched, had_failed=had_failed)

    def _take(self, watched: _Watched, body: Body, now: ScrapeTime) -> None:
        """Read an answer; its facts are computed before the lock is taken, for a round may need it."""
        samples = self._scraper.read(body)
        with self._lock:
            watched.tracker.note(samples, now)
            ahead_us = self._ahead_us
        readings = watched.tracker.readings(ahead_us, now.ended_us)
        with self._lock:
            watched.facts = _Facts(readings, ahead_us)

    def _log_change(self, endpoint: Endpoint, watched: _Watched, *, had_failed: bool) -> None:
        if watched.tracker.failed and not had_failed:
            why = watched.tracker.failures[0].why
            self._log.warning(Event.ENDPOINT_AWAY, endpoint=endpoint.name, why=why)
        elif had_failed and not watched.tracker.failed:
            self._log.info(Event.ENDPOINT_BACK, endpoint=endpoint.name)

    def _log_list_failures(self, listed: Listed) -> None:
        for failure in set(listed.failures) - set(self._listed.failures):
            self._log.warning(Event.ENDPOINT_LIST, why=failure.why)

    def _uptime_us(self) -> int:
        return round(self._monotonic() * SECOND_US)

    def _ahead(self) -> int:
        """Return by how much the wall clock is ahead of the monotonic one."""
        return microseconds(self._utc_now()) - self._uptime_us()
