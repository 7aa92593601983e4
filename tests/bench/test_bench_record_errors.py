"""What series by client cost: in each round, and in the nightly run, at the bound of a cluster; stats are printed.

Only processor time counts, so that other work on the machine matters little.
"""

from __future__ import annotations

import statistics
import time
from dataclasses import replace
from datetime import timedelta

import numpy as np

from rules.baseline.blocks import METRIC_CODES, DayBlock
from rules.baseline.civil import civil_day
from rules.baseline.daily_step import advance as advance_day
from rules.baseline.policy import BaselineSettings
from rules.baseline.series import Metric
from rules.baseline.state import StateBlock
from rules.facts.memory import Memory, advance
from rules.facts.scrapes import Scrapes
from rules.record_errors.listing import list_record_errors
from rules.record_errors.series import MAX_PER_CLUSTER
from service.history.extraction import Extraction, JudgedRound
from service.runtime.clock import utc_now
from tests.bench.large import INTERVAL_SECONDS, TITLE, moving
from tests.scraped import client_reading, counted, scrapes

CLIENTS = 10_000  # clients of topics, with an id of their own in every process
TOPICS = 200
ROUNDS = 12
NIGHTS = 8
STEP_MS = 15_000
SERIES = 2 * MAX_PER_CLUSTER


def of_round(number: int) -> Scrapes:
    """Return the metrics of a round: of every client some records were sent again."""
    retries = counted(total=1 + number, rate=1 / INTERVAL_SECONDS, increase=1)
    return scrapes(
        *(
            client_reading(
                f"producer-{place}",
                topic=f"topic-{place % TOPICS:03}",
                address=f"app-{place}:8081",
                retries=retries,
            )
            for place in range(CLIENTS)
        )
    )


def took_by_round(metrics: list[Scrapes]) -> tuple[list[float], int]:
    """Return the seconds that the samples of each round took, and how many series the last one had."""
    extraction = Extraction("c", interval_seconds=INTERVAL_SECONDS)
    memory: Memory | None = None
    took, count = [], 0
    for number, seen in enumerate(metrics):
        snapshot = replace(moving(number), scrapes=seen)
        begin = time.process_time()
        count = len(extraction.samples(JudgedRound(snapshot=snapshot, before=memory)))
        took.append(time.process_time() - begin)
        memory = advance(snapshot, memory)
    return took, count


def test_what_clients_cost_a_round() -> None:
    without, base = took_by_round([Scrapes.unread()] * ROUNDS)
    seen = [of_round(number) for number in range(ROUNDS)]
    with_clients, count = took_by_round(seen)
    print(f"\n{TITLE}; {CLIENTS:,} clients of {TOPICS} topics, all of which retry")
    print(f"  series: {base:,} without, {count - base:,} more by clients, their rests and topics")
    for what, took in (("without", without), ("with", with_clients)):
        print(f"  samples of a round {what}: median {1000 * statistics.median(took[1:]):.1f} ms")
    begin = time.process_time()
    listed = list_record_errors(seen[-1])
    print(
        f"  the list of {len(listed.clients):,} clients: {1000 * (time.process_time() - begin):.0f} ms"
    )
    assert count - base <= 2 * (MAX_PER_CLUSTER + TOPICS) + TOPICS


def test_what_clients_cost_a_night() -> None:
    draw = np.random.default_rng(3)
    codes = np.full(SERIES, METRIC_CODES[Metric.CLIENT_RECORD_RETRY_RATE], np.uint8)
    states, took, learnt = StateBlock.new(SERIES), 0.0, 0
    for back in range(NIGHTS, 0, -1):
        calendar = civil_day(utc_now().date() - timedelta(days=back), "UTC")
        shape = (SERIES, (calendar.end_ms - calendar.start_ms) // STEP_MS)
        values = draw.poisson(0.05, shape).astype(np.float32) / np.float32(INTERVAL_SECONDS)
        day = DayBlock(series_id=np.arange(SERIES), metric=codes, step_ms=STEP_MS, values=values)
        begin = time.process_time()
        states, baselines = advance_day(states, day, calendar, BaselineSettings())
        took, learnt = time.process_time() - begin, len(baselines)
    print(
        f"\n{SERIES:,} series of clients, a night at {STEP_MS // 1000} s: {took:.2f} s on one core"
    )
    assert learnt == SERIES
