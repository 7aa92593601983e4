"""The metrics text of 10,000 partitions x 1,001 groups; stats are printed."""

from __future__ import annotations

import asyncio
import gzip
import statistics
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from http.client import HTTPConnection

import numpy as np
from starlette.applications import Starlette

from rules.facts.column import Column
from rules.facts.memory import advance
from rules.facts.snapshot import Snapshot
from rules.facts.transaction_log import TransactionLog
from rules.transactions.classes import TransactionClass
from rules.verdict import Verdict
from rules.view import View
from service.api.core.server import HttpServer, bind
from service.api.status.metrics import metrics_routes
from service.metrics.ended_transactions import EndedTransactions
from service.metrics.exposition import Exposition
from service.metrics.open_transactions import OpenTransactions
from service.metrics.totals import SelfMetrics
from service.rounds.latest import Latest, ServiceState
from service.runtime.clock import monotonic, utc_now
from service.runtime.threads import in_thread
from tests.bench.large import COMMITS, ROWS, moving
from tests.factories import ended, open_producer, producers, transaction, transactions

ROUNDS = 15
OPEN, HELD, ENDED = 5_000, 1_000, 15_000
OPENMETRICS = "application/openmetrics-text; version=1.0.0"


def test_exposition() -> None:
    totals = SelfMetrics(version="0.1.0", verdicts={("log_stuck", Verdict.OK): 10_000})
    rounds = [_round(number) for number in range(ROUNDS)]
    cold = [_seconds(lambda: Exposition().update(rounds[0], totals)) for _ in range(5)]
    exposition = Exposition()
    exposition.update(rounds[0], totals)
    warm = [_seconds(partial(_one_round, exposition, seen, totals)) for seen in rounds]
    other = _seconds(lambda: exposition.body(OPENMETRICS, gzip=False))
    zipping = _seconds(lambda: exposition.body(None, gzip=True))
    text, _ = exposition.body(None, gzip=False)
    zipped, _ = exposition.body(None, gzip=True)
    series = sum(not line.startswith(b"#") for line in text.splitlines())
    print(
        f"\n{series:,} series, {len(text) / 1e6:.1f} MB, gzip {len(zipped) / 1e6:.2f} MB"
        f"\n  first round, labels written   median {statistics.median(cold) * 1000:6.1f} ms"
        f"\n  next rounds, labels kept      median {statistics.median(warm) * 1000:6.1f} ms, "
        f"max {max(warm) * 1000:.1f} ms (bar: well under 200 ms)"
        f"\n  OpenMetrics body of the same round  {other * 1000:6.1f} ms"
        f"\n  gzip level 1, once per round        {zipping * 1000:6.1f} ms"
    )
    assert gzip.decompress(zipped) == text


def test_serving() -> None:
    """One scraper, and four at once, of a round that nobody has scraped yet and of one that was."""
    exposition, totals = Exposition(), SelfMetrics(version="0.1.0")
    state = ServiceState(cluster="c", version="0.1.0", started_at=utc_now(), interval_seconds=15.0)
    routes = metrics_routes(exposition, Latest(state, monotonic=monotonic), in_thread)
    for encoding in ("identity", "gzip"):
        with _serving(Starlette(routes=routes)) as port, ThreadPoolExecutor(4) as scrapers:
            for count in (1, 4):
                exposition.update(_round(0), totals)
                for when in ("first of a round", "later"):
                    waits = list(scrapers.map(partial(_scrape, port), [encoding] * count))
                    took = ", ".join(f"{seconds * 1000:.1f}" for seconds, _ in waits)
                    assert len({size for _, size in waits}) == 1
                    print(f"  {encoding:8} {count} at once, {when:16} {took} ms")


@contextmanager
def _serving(app: Starlette) -> Iterator[int]:
    """Serve on a port of the loopback, in a thread."""
    listener = bind("127.0.0.1", 0)
    server = HttpServer(app, listener, max_connections=256)
    port: int = listener.getsockname()[1]
    with ThreadPoolExecutor(1) as threads:
        running = threads.submit(lambda: asyncio.run(server.run()))
        yield port
        server.stop()
        running.result()


def _scrape(port: int, encoding: str) -> tuple[float, int]:
    """Return the seconds from the request to the last byte, and the size of the body."""
    connection = HTTPConnection("127.0.0.1", port)
    connection.connect()
    begin = monotonic()
    connection.request("GET", "/metrics", headers={"Accept-Encoding": encoding})
    size = len(connection.getresponse().read())
    took = monotonic() - begin
    connection.close()
    return took, size


def test_transactions() -> None:
    """5,000 open transactions, 1,000 partitions held, 15,000 ended since the last round."""
    observations = [_transactional(number) for number in range(2)]
    before = advance(observations[0])
    last, memory = observations[1], advance(observations[1], before)
    view = View(snapshot=last, memory=memory, before=before, now=last.taken_at)
    opened = [_seconds(lambda: OpenTransactions.of(view)) for _ in range(ROUNDS)]
    start, log = EndedTransactions(), last.transaction_log
    counted = [_seconds(lambda: start.after(log)) for _ in range(ROUNDS)]
    exposition, found = Exposition(), OpenTransactions.of(view)
    totals = SelfMetrics(version="0.1.0", ended=start.after(log))
    written = [_seconds(lambda: exposition.update(last, totals, found)) for _ in range(ROUNDS)]
    print(
        f"\n{OPEN:,} transactions open, {HELD:,} partitions held, {ENDED:,} ended since last round"
        f"\n  what is open, by class        median {statistics.median(opened) * 1000:6.1f} ms"
        f"\n  what ended is counted         median {statistics.median(counted) * 1000:6.1f} ms"
        f"\n  text, labels kept             median {statistics.median(written) * 1000:6.1f} ms"
    )
    assert found.counts[TransactionClass.OPEN] == OPEN
    assert found.counts[TransactionClass.HANGING] == HELD
    assert int(found.held_ms.valid.sum()) == HELD


def _transactional(number: int) -> Snapshot:
    """Return a round in which transactions are open, hang and ended."""
    seen = moving(number)
    level = seen.offsets.high_watermark.values
    is_held = np.arange(ROWS) < HELD
    stable = np.where(is_held, 5, level)
    listed = [
        transaction(f"id-{place}", producer_id=place, started_at=seen.taken_at)
        for place in range(OPEN)
    ]
    hanging = [
        open_producer(row=row, producer_id=OPEN + row, start_offset=5) for row in range(HELD)
    ]
    numbers = frozenset(one.producer_id for one in hanging)
    return replace(
        seen,
        offsets=replace(seen.offsets, last_stable_offset=Column.known(stable)),
        transactions=transactions(*listed, resolved=numbers),
        producers=producers(*hanging, rows=ROWS),
        transaction_log=TransactionLog(is_read=True, ended=(ended(),) * ENDED),
    )


def _one_round(exposition: Exposition, seen: Snapshot, totals: SelfMetrics) -> None:
    exposition.update(seen, totals)
    exposition.body(None, gzip=False)


def _seconds(action: Callable[[], object]) -> float:
    begin = monotonic()
    action()
    return monotonic() - begin


def _round(number: int) -> Snapshot:
    """Return a round in which some commits were observed closer."""
    draw = np.random.default_rng(number)
    seen = moving(number)
    asked = Column.known(draw.integers(0, 2, COMMITS)).where(draw.random(COMMITS) < 0.01)
    return replace(seen, commits=replace(seen.commits, nothing_to_read=asked))
