"""What reading metrics costs: pages as they are and as they should not be, counters, and the round.

Rounds run beside it, so that what matters is the time in which Python holds the interpreter.
"""

from __future__ import annotations

import asyncio
import statistics
from collections.abc import Callable

import pytest

from collectors.scrapes.answer import Samples
from collectors.scrapes.counting import ScrapeTime
from collectors.scrapes.endpoints import Endpoint, page_at
from collectors.scrapes.listing import Listed
from collectors.scrapes.page import read_page
from collectors.scrapes.scraping import Body
from collectors.scrapes.selection import Series, series_of
from collectors.scrapes.tracking import Tracker
from rules.catalogue import record_error_rate_high
from rules.facts.scrapes import EndpointKind, ScrapeFailure
from rules.facts.times import SECOND_US
from rules.remembering import view_of_round
from service.observe.scrape_watch import ScrapePace, ScrapeWatch
from service.runtime.clock import monotonic, utc_now
from tests.factories import snapshot
from tests.unit.service.runtime.recorded_log import RecordedLog

MEGABYTE = 1_000_000
BODY_BYTES = 16 * MEGABYTE
ENDPOINTS = 500


def timed(function: Callable[[], object], times: int = 5) -> float:
    """Return the median time of some calls, in milliseconds."""
    took = []
    for _ in range(times):
        began = monotonic()
        function()
        took.append(1000 * (monotonic() - began))
    return statistics.median(took)


def counter(client: int, topic: int, what: str = "error") -> str:
    labels = f'client_id="orders-writer-{client}",topic="orders.topic-{topic}"'
    return f"kafka_producer_producer_topic_metrics_record_{what}{{{labels}}} 12345.0\n"


def broker_line(number: int) -> str:
    labels = f'partition="{number % 100}",topic="orders.topic-{number // 100}"'
    return f"kafka_cluster_partition_laststableoffsetlag{{{labels}}} 0.0\n"


PAGES: dict[str, Callable[[], bytes]] = {
    "a producer, 5 topics": lambda: "".join(counter(1, n) for n in range(5)).encode(),
    "20,000 wanted series": lambda: "".join(counter(n // 5, n % 5) for n in range(20_000)).encode(),
    "16 MB of a broker": lambda: "".join(broker_line(n) for n in range(BODY_BYTES // 80)).encode()[
        :BODY_BYTES
    ],
    "16 MB of lines of 4 bytes": lambda: b"a 1\n" * (BODY_BYTES // 4),
    "16 MB of line feeds": lambda: b"\n" * BODY_BYTES,
    "16 MB in one line": lambda: b"kafka_producer_record_error_total{" + b"a" * BODY_BYTES,
    "16 MB of braces": lambda: b'{"' * (BODY_BYTES // 2),
    "16 MB of wanted lines that cannot be read": lambda: (
        b"up 1\n"
        + (
            (b'kafka_producer_record_error_total{client_id="' + b"\\" * 200 + b"\n")
            * (BODY_BYTES // 246)
        )
    ),
}


@pytest.mark.parametrize("made", PAGES.values(), ids=PAGES)
def test_a_page(made: Callable[[], bytes], request: pytest.FixtureRequest) -> None:
    body = made()
    found: list[Samples] = []
    took = timed(
        lambda: found.append(read_page(body, is_openmetrics=False, max_series=20_000)), times=3
    )
    print(
        f"\n{request.node.callspec.id}: {took:.1f} ms, {len(body) / took / 1000:.0f} MB/s, "
        f"{len(found[-1].values)} series"
    )


def series(count: int, endpoint: int = 0) -> list[Series]:
    name = "kafka_producer_producer_topic_metrics_record_error"
    found = [
        series_of(name, {"client_id": f"c{endpoint}-{number // 5}", "topic": f"t{number % 5}"})
        for number in range(count)
    ]
    return [one for one in found if one is not None]


def test_counters_of_one_large_endpoint() -> None:
    known = series(20_000)
    tracker = Tracker(page_at("http://app-1"), fresh_us=10**9, max_series=20_000)
    observations = iter(range(1000))

    def observe() -> None:
        number = next(observations)
        at_us = number * 15 * SECOND_US
        values = dict.fromkeys(known, float(number))  # every one of them rises
        tracker.note(Samples(values=values), ScrapeTime(at_us, at_us + 1000))

    for _ in range(60):
        observe()
    noted = timed(observe)
    read = timed(lambda: tracker.readings(0, 1000 * 15 * SECOND_US), times=3)
    print(
        f"\n20,000 counters, all rising: an observation {noted:.0f} ms, their facts {read:.0f} ms"
    )


class Instant:
    """Answers at once with some counters for each endpoint."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._values: dict[Endpoint, dict[Series, float]] = {}

    async def scrape(self, endpoint: Endpoint) -> Body | ScrapeFailure:
        """Answer."""
        return Body(kind=EndpointKind.PAGE, content=endpoint.url.encode())

    def read(self, body: Body) -> Samples:
        """Return counters of clients that no other endpoint has."""
        endpoint = page_at(body.content.decode())
        known = self._values.setdefault(
            endpoint, dict.fromkeys(series(self._count, hash(endpoint)), 0.0)
        )
        return Samples(values=dict(known))


def test_the_round_of_many_endpoints() -> None:
    endpoints = tuple(page_at(f"http://app-{number}:8081") for number in range(ENDPOINTS))
    stop = asyncio.Event()
    watch = ScrapeWatch(
        Instant(20),
        lambda: Listed(endpoints=endpoints),
        ScrapePace(interval_seconds=2.0, timeout_seconds=5.0, max_series=20_000),
        utc_now=utc_now,
        monotonic=monotonic,
        stop=stop,
        log=RecordedLog().log,
    )

    async def run() -> None:
        running = asyncio.ensure_future(watch.run())
        await asyncio.sleep(8)
        stop.set()
        await running

    asyncio.run(run())
    seen = watch.scrapes()
    taken = timed(watch.scrapes)
    view = view_of_round(snapshot(scrapes=seen), None)
    judged = timed(lambda: record_error_rate_high.judge(view))
    print(
        f"\n{len(seen.fresh)} endpoints, {len(seen.clients)} clients and topics: "
        f"taken by a round in {taken:.1f} ms, judged in {judged:.1f} ms"
    )
