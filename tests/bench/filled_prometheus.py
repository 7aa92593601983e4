"""A Prometheus with some time of a large cluster in it, as if it had scraped that every 15 seconds.

It scrapes rounds of the past as fast as it can: pages have the timestamps of their rounds. promtool makes the
recorded series of them.
"""

from __future__ import annotations

import http.server
import json
import re
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import numpy as np

from dashboards.prometheus.recording import RECORDING, RecordedAggregation
from dashboards.prometheus.rule import RecordingRule
from rules.facts.column import Column, Int64s
from rules.facts.snapshot import Snapshot
from rules.time_lag import EndHistory, advance, time_lags
from service.metrics.exposition import Exposition
from service.metrics.open_transactions import OpenTransactions
from service.metrics.totals import SelfMetrics
from service.runtime.clock import utc_now, wait_until
from tests import loopback
from tests.bench.large import COMMITS, GROUPS, INTERVAL_SECONDS, ROWS, WIDE_COMMITS, ends, moving
from tests.integration.serve.scraping import Prometheus, job, program, prometheus

RULES: Final = {rule.record: rule for rule in RECORDING.rules if isinstance(rule, RecordingRule)}
RECORD: Final = re.compile(r"\w+:\w+:\w+")
HELD: Final = 100  # partitions whose LSO does not advance
FILL_SECONDS: Final = 4 * 3600.0
EVALUATION: Final = "30s"  # as the rules
# Samples that are up to half as old are taken.
BLOCKS: Final = ("--storage.tsdb.min-block-duration=24h", "--storage.tsdb.max-block-duration=24h")


@dataclass(frozen=True, slots=True, kw_only=True)
class Filled:
    """The server, and the time that it has, in seconds since 1970-01-01 UTC."""

    server: Prometheus
    start: int
    end: int

    def cpu_seconds(self) -> float:
        """Return the processor time that the server has taken so far, in hundredths."""
        with loopback.client() as client:
            page = client.get(f"{self.server.address}/metrics").text
        [value] = (
            line.split()[1]
            for line in page.splitlines()
            if line.startswith("process_cpu_seconds_total ")
        )
        return float(value)


@contextmanager
def filled_prometheus(folder: Path, *, rounds: int) -> Iterator[Filled]:
    """Run a server that has so many rounds, the last one a moment ago, and what is recorded of them."""
    end = int(utc_now().timestamp()) // INTERVAL_SECONDS * INTERVAL_SECONDS
    start = end - (rounds - 1) * INTERVAL_SECONDS
    with (
        _pages(start, rounds) as (address, are_scraped),
        prometheus(folder, [job("tidemark", address)], options=BLOCKS) as server,
    ):
        assert are_scraped.wait(FILL_SECONDS)
        filled = Filled(server=server, start=start, end=end)
        _record(filled, folder)
        yield filled


@contextmanager
def _pages(start: int, rounds: int) -> Iterator[tuple[str, threading.Event]]:
    """Serve a round at each scrape, and say when all were; a scrape that is broken off gets the same again."""
    pages = (
        _with_time(page, start + number * INTERVAL_SECONDS) for number, page in _rounds(rounds)
    )
    waiting, are_scraped = [next(pages)], threading.Event()

    class Page(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/plain; version=0.0.4")
            self.end_headers()
            self.wfile.write(waiting[0])
            waiting[0] = next(pages, b"")
            if not waiting[0]:
                are_scraped.set()

        def log_message(self, *_arguments: object) -> None:
            """Say nothing."""

    with http.server.HTTPServer(("127.0.0.1", 0), Page) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}", are_scraped
        finally:
            server.shutdown()
            thread.join()


def _rounds(rounds: int) -> Iterator[tuple[int, bytes]]:
    exposition, totals = Exposition(), SelfMetrics(version="0.1.0")
    history: EndHistory | None = None
    for number in range(rounds):
        seen = _whole_topics(number)
        history = advance(
            history,
            cluster_id=seen.cluster_id,
            partitions=seen.partitions,
            offsets=seen.offsets,
            now_us=number * INTERVAL_SECONDS * 10**6,
        )
        exposition.update(seen, totals, _held(number), time_lags(history, seen))
        yield number, exposition.body(None, gzip=False)[0]


def _pairs() -> Int64s:
    """Return (group, row) of every commit: each small group has 20 or 30 partitions of one topic."""
    small = GROUPS - 1
    with_more = (COMMITS - WIDE_COMMITS - 20 * small) // 10
    of_one_topic = (
        (place, place % 200 * 50 + row)
        for place in range(small)
        for row in range(30 if place < with_more else 20)
    )
    return np.array([*of_one_topic, *((small, row) for row in range(WIDE_COMMITS))], np.int64)


_PAIRS: Final = _pairs()


def _whole_topics(number: int) -> Snapshot:
    """Return a round in which groups read topics, and not partitions here and there."""
    seen = moving(number)
    group, row = _PAIRS.T.copy()
    behind = ends(number)[seen.commits.row] - seen.commits.committed_offset
    commits = replace(
        seen.commits, group=group, row=row, committed_offset=ends(number)[row] - behind
    )
    return replace(seen, commits=commits)


def _held(number: int) -> OpenTransactions:
    """Return open transactions that hold back a hundred partitions, each round for longer."""
    held_ms = Column.known(np.full(ROWS, number * INTERVAL_SECONDS * 1000, np.int64))
    return OpenTransactions(held_ms=held_ms.where(np.arange(ROWS) < HELD))


def _with_time(page: bytes, seconds: int) -> bytes:
    """Return the samples of a page with a time, without comments."""
    samples = (line for line in page.splitlines() if not line.startswith(b"#"))
    return b"".join(b"%b %d\n" % (line, seconds * 1000) for line in samples)


def _record(filled: Filled, folder: Path) -> None:
    """Make the recorded series of what was scraped, each of every partition's."""
    rules = [rule for rule in RULES.values() if isinstance(rule, RecordedAggregation)]
    document = [{"record": rule.record, "expr": _at_once(rule)} for rule in rules]
    path = folder / "backfill.yml"  # JSON is YAML
    path.write_text(json.dumps({"groups": [{"name": "all", "rules": document}]}), encoding="utf-8")
    command = [
        *(program("promtool"), "tsdb", "create-blocks-from", "rules", str(path)),
        *("--start", str(filled.start), "--end", str(filled.end), "--eval-interval", EVALUATION),
        *("--url", filled.server.address, "--output-dir", str(folder / "tsdb")),
    ]
    subprocess.run(command, check=True, capture_output=True)
    is_loaded = wait_until(
        lambda: all(_has(filled, rule.record) for rule in rules), timeout_seconds=300
    )
    assert is_loaded, "the server reads new blocks once a minute"


def _has(filled: Filled, record: str) -> bool:
    answer = filled.server.ask("/api/v1/query", query=f"count({record})", time=str(filled.end))
    return bool(answer["result"])


def _at_once(rule: RecordingRule) -> str:
    """Return the expression of a rule from what was scraped: promtool makes none from recorded series."""
    expr = rule.expr
    while (record := RECORD.search(expr)) is not None:
        expr = expr.replace(record[0], f"({RULES[record[0]].expr})")
    return expr
