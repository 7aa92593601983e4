"""The program of `test_bench_service`: a whole service over a large cluster without brokers.

Everything is real but the brokers and the waiting between rounds. Run as a process of its own,
so that its memory is the service's; PostgreSQL's processes are not counted.
"""

from __future__ import annotations

import statistics
import sys
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from rules.facts.snapshot import Snapshot
from rules.verdict import Verdict
from service.api.core.server import HttpServer, bind
from service.app.alerting import make_admin_services
from service.app.http import make_http_server
from service.metrics.exposition import Exposition
from service.observe.cluster_reader import Scope
from service.observe.log_inbox import LogInbox
from service.observe.watch import Remembered, Watcher
from service.rounds.alerting_step import Alerting
from service.rounds.latest import Latest, ServiceState
from service.rounds.persistence import PersistenceState, RoundWriter
from service.rounds.pipeline import HistoryPort, Pipeline, RoundResult
from service.runtime.allocator import keep_memory_small
from service.runtime.clock import monotonic, utc_now
from service.runtime.log import LineWriter, make_log
from service.runtime.open_files import allow_files
from service.runtime.threads import take_short_turns, without_limit
from service.settings import BrokerLogSettings, HttpSettings
from service.storage.database.engine import open_database
from service.storage.rounds.inbox import StoredInbox
from service.storage.rounds.store import PostgresStore
from tests.bench.large import INTERVAL_SECONDS, TITLE, moving, stuck
from tests.bench.memory import weighed
from tests.unit.service.api.given import FakeErrors, NoJobs

ROUNDS: Final = 500
SCRAPE_EVERY: Final = 10
WEIGHED_AFTER: Final = (50, 250, ROUNDS)
STUCK_ROWS: Final = 100
STUCK_AFTER: Final = (
    4  # of every ten rounds: they stand in the last five, and are level in the next
)
OPENMETRICS: Final = "application/openmetrics-text; version=1.0.0"
NAME: Final = "bench"


class Source:
    """Makes a fresh snapshot a round; in a part of the rounds some high watermarks stand."""

    def __init__(self) -> None:
        self._number = 0
        self.took_seconds = 0.0

    def read(self, scope: Scope) -> Snapshot:  # noqa: ARG002 - the port's argument
        begin = monotonic()
        number = self._number
        self._number += 1
        within = number % SCRAPE_EVERY
        found = (
            stuck(number, since=number - within + STUCK_AFTER, rows=STUCK_ROWS)
            if within > STUCK_AFTER
            else moving(number)
        )
        self.took_seconds = monotonic() - begin
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Took:
    """The seconds of one round, without making its snapshot."""

    storing: float
    whole: float

    @property
    def judging(self) -> float:
        """Judging, telling what changed, and the metrics text."""
        return self.whole - self.storing


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """A service that makes a round when it is told."""

    source: Source
    watcher: Watcher
    pipeline: Pipeline
    exposition: Exposition
    store: PostgresStore
    http: HttpServer
    address: tuple[str, int]


def build(
    folder: Path,
    *,
    history: HistoryPort | None = None,
    remembered: Remembered | None = None,
    source: Source | None = None,
    settings: HttpSettings | None = None,
    alerting: Alerting | None = None,
) -> Parts:
    """Build the service as the wiring does, and what answers HTTP and takes log lines too."""
    keep_memory_small()
    allow_files()
    take_short_turns()
    source, exposition = source or Source(), Exposition()
    listener = bind("127.0.0.1", 0)
    store = PostgresStore(lambda: open_database(None, folder))
    first = ServiceState(
        cluster=NAME, version="bench", started_at=utc_now(), interval_seconds=INTERVAL_SECONDS
    )
    latest = Latest(first)
    inbox = LogInbox(
        StoredInbox(lambda: store.engine, NAME),
        max_waiting=BrokerLogSettings().max_waiting_events,
        utc_now=utc_now,
        in_time=without_limit,
    )
    http = make_http_server(
        settings or HttpSettings(),
        listener,
        latest=latest,
        exposition=exposition,
        store=store,
        measured=None,
        inbox=inbox,
        application_errors=FakeErrors(),
        admin=make_admin_services(lambda: store.engine, NAME, jobs=NoJobs()),
        log=make_log(LineWriter(sys.stderr), as_json=True, level="info"),
    )
    watcher = Watcher(
        NAME,
        source,
        Scope(),
        utc_now=utc_now,
        monotonic=monotonic,
        remembered=remembered,
        feeds=[inbox],
    )
    round_writer = RoundWriter(store, NAME, monotonic=monotonic, waiting_rounds=240)
    pipeline = Pipeline(
        watcher=watcher,
        round_writer=round_writer,
        exposition=exposition,
        latest=latest,
        monotonic=monotonic,
        history=history,
        alerting=alerting,
    )
    return Parts(
        source=source,
        watcher=watcher,
        pipeline=pipeline,
        exposition=exposition,
        store=store,
        http=http,
        address=listener.getsockname(),
    )


def run(parts: Parts) -> Iterator[str]:
    """Make all rounds; say what they cost."""
    took: list[Took] = []
    bodies: list[float] = []
    opened = ended = 0
    yield f"{TITLE}, {ROUNDS} rounds back to back"
    yield f"  memory before the first round  {weighed()}"
    parts.pipeline.load(is_start=True)
    for number in range(1, ROUNDS + 1):
        made, spent = timed_round(parts)
        took.append(spent)
        moved = [change for change in made.changes if change.is_transition]
        opened += sum(change.after is Verdict.BREACH for change in moved)
        ended += sum(change.after is not Verdict.BREACH for change in moved)
        if number % SCRAPE_EVERY == 0:
            bodies.append(scrape(parts.exposition))
        if number in WEIGHED_AFTER:
            yield f"  memory after {number:3} rounds        {weighed()}"
    yield from told("rules + metrics text", [one.judging for one in took], "bar: 200 ms")
    yield from told("storing", [one.storing for one in took], "bar: 200 ms")
    yield from told("round without collecting", [one.whole for one in took], "")
    yield from told("three bodies of a round", bodies, "text, gzip, OpenMetrics")
    yield f"  {opened:,} findings opened, {ended:,} ended"


def timed_round(parts: Parts) -> tuple[RoundResult, Took]:
    """Make a round that is stored; making its snapshot is not counted."""
    begin = monotonic()
    made = parts.pipeline.make_round()
    whole = monotonic() - begin - parts.source.took_seconds
    persistence = made.state.persistence
    if persistence.state is not PersistenceState.STORED or persistence.took_seconds is None:
        raise SystemExit(f"round {made.state.rounds} was not stored: {persistence.error}")
    return made, Took(storing=persistence.took_seconds, whole=whole)


def scrape(exposition: Exposition) -> float:
    """Ask for the page in its three forms, as three scrapers would."""
    begin = monotonic()
    exposition.body(None, gzip=False)
    exposition.body(None, gzip=True)
    exposition.body(OPENMETRICS, gzip=False)
    return monotonic() - begin


def told(part: str, seconds: Sequence[float], bar: str) -> Iterator[str]:
    """Say median and maximum of one part."""
    yield (
        f"  {part:<25} median {statistics.median(seconds) * 1000:6.1f} ms, "
        f"max {max(seconds) * 1000:6.1f} ms{bar and f' ({bar})'}"
    )


def main() -> None:
    """Print the stats; the server that was started ends too."""
    parts = build(Path(sys.argv[1]))
    with closing(parts.store):
        for line in run(parts):
            print(line, flush=True)


if __name__ == "__main__":
    main()
