"""A tracker of one endpoint that is given answers and silences, 15 s apart."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from collectors.scrapes.answer import Samples
from collectors.scrapes.counting import ScrapeTime
from collectors.scrapes.endpoints import Endpoint, page_at, server_at
from collectors.scrapes.readings import Readings
from collectors.scrapes.selection import series_of
from collectors.scrapes.tracking import Tracker
from rules.facts.gap import GapCause
from rules.facts.scrapes import ClientReading, Counted, EndpointState, Rise, ScrapeFailure
from rules.facts.times import SECOND_US
from tests.factories import NOON, at

PAGE: Final = page_at("http://app-1:8081/metrics")
SERVER: Final = server_at("http://prometheus:9090")
AHEAD_US: Final = round(NOON.timestamp() * SECOND_US)  # the monotonic clock shows 0 at noon
EVERY: Final = 15.0  # seconds from observation to observation
LATE: Final = 60.0
SILENT: Final = ScrapeFailure(cause=GapCause.TIMEOUT, why="no whole answer within 5 s")
CUT: Final = ScrapeFailure(cause=GapCause.LIMIT, why="more than are kept")

ERRORS: Final = "kafka_producer_topic_record_error_total"
RETRIES: Final = "kafka_producer_topic_record_retry_total"
RATE: Final = "kafka_producer_topic_record_error_rate"
Labelled = tuple[str, Mapping[str, str]]


def labelled(name: str = ERRORS, **labels: str) -> Labelled:
    return name, {"client_id": "payments", "topic": "orders", **labels}


class ObservedRounds:
    """A tracker that is given answers every 15 s; each takes a second."""

    def __init__(self, endpoint: Endpoint = PAGE, *, max_series: int = 100) -> None:
        fresh_us = round(50 * SECOND_US)
        self.tracker = Tracker(endpoint, fresh_us=fresh_us, max_series=max_series)
        self.now = -EVERY

    def timestamp(self, after: float) -> ScrapeTime:
        self.now += after
        return ScrapeTime(round(self.now * SECOND_US), round((self.now + 1) * SECOND_US))

    def answer(
        self,
        *found: tuple[Labelled, float],
        after: float = EVERY,
        is_whole: bool = True,
    ) -> ObservedRounds:
        values = {series_of(*name): value for name, value in found}
        known = {series: value for series, value in values.items() if series is not None}
        failures = () if is_whole else (CUT,)
        samples = Samples(values=known, is_whole=is_whole, failures=failures)
        self.tracker.note(samples, self.timestamp(after))
        return self

    def says(self, *values: float) -> ObservedRounds:
        """Give one answer per value of the one counter."""
        for value in values:
            self.answer((labelled(), value))
        return self

    def silence(self, observations: int = 1) -> ObservedRounds:
        for _ in range(observations):
            self.tracker.note_failed(SILENT, self.timestamp(EVERY))
        return self

    @property
    def readings(self) -> Readings:
        return self.tracker.readings(AHEAD_US, round((self.now + 1) * SECOND_US))

    @property
    def client(self) -> ClientReading:
        (one,) = self.readings.clients
        return one

    @property
    def errors(self) -> Counted:
        assert self.client.errors is not None
        return self.client.errors

    def state(self, after: float = 1.0) -> EndpointState:
        return self.tracker.state(AHEAD_US, round((self.now + after) * SECOND_US))


def mine_of(seen: ObservedRounds) -> ClientReading:
    """Return the reading of the client that tests are about, among others."""
    return next(one for one in seen.readings.clients if one.client_id == "payments")


def rise(since: float, until: float, count: int | None) -> Rise:
    return Rise(since=at(since), until=at(until), count=count)
