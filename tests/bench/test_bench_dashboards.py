"""What graphs cost a Prometheus that scrapes 10,000 partitions x 1,001 groups, as scraped and as recorded.

Processor time, since it is that of one query after the other. BENCH_MINUTES is how much is shown.
"""

from __future__ import annotations

import math
import os
from collections import defaultdict
from pathlib import Path

from tests.bench.filled_prometheus import RULES, Filled, filled_prometheus
from tests.bench.large import INTERVAL_SECONDS, TITLE
from tests.unit.dashboards.given_dashboards import (
    every_target,
    recorded_expressions,
    with_values,
)

MINUTES = int(os.environ.get("BENCH_MINUTES", "10"))
BEFORE_ROUNDS = 12  # so that the first point has all that it needs
POINTS = 900  # of a graph at most, about one per pixel
CHOSEN = {"cluster": "c", "topic": "topic-000", "partition": "0", "group": "group-0000"}


def test_graphs_as_scraped_and_as_recorded(folder: Path) -> None:
    rounds = MINUTES * 60 // INTERVAL_SECONDS + BEFORE_ROUNDS
    with filled_prometheus(folder, rounds=rounds) as filled:
        print(f"\n{TITLE}, {MINUTES} minutes, a point every {_step()} s: processor seconds")
        _print_graphs(filled)
        _print_others(filled)
        _print_rules(filled)


def _print_graphs(filled: Filled) -> None:
    scraped: dict[str, float] = defaultdict(float)
    recorded: dict[str, float] = defaultdict(float)
    for name, expressions in recorded_expressions().items():
        seconds = [_range_seconds(filled, expression) for expression in expressions]
        print(f"  {name:<58} {seconds[0]:7.2f}  recorded {seconds[1]:7.2f}")
        uid = name.partition("/")[0]
        scraped[uid] += seconds[0]
        recorded[uid] += seconds[1]
    for uid, seconds_scraped in scraped.items():
        print(f"  {uid:<58} {seconds_scraped:7.2f}  recorded {recorded[uid]:7.2f}")


def _print_others(filled: Filled) -> None:
    """Print what is asked either way: numbers and tables at once, other graphs over the time."""
    sums: dict[str, float] = defaultdict(float)
    for shown, target in every_target():
        name = f"{shown.name} {target['refId']}"
        if "expr" in target and name not in recorded_expressions():
            if target.get("instant"):
                seconds = _instant_seconds(filled, target["expr"])
            else:
                seconds = _range_seconds(filled, target["expr"])
            kind = "numbers and tables" if target.get("instant") else "other graphs"
            sums[f"{shown.uid}, {kind}"] += seconds
    for name, seconds in sums.items():
        print(f"  {name:<58} {seconds:7.2f}")


def _print_rules(filled: Filled) -> None:
    seconds = sum(_instant_seconds(filled, rule.expr) for rule in RULES.values())
    print(f"  {'all recording rules, once':<58} {seconds:7.2f}")


def _step() -> int:
    return max(INTERVAL_SECONDS, math.ceil(MINUTES * 60 / POINTS))


def _as_sent(expression: str) -> str:
    rate = max(_step() + INTERVAL_SECONDS, 4 * INTERVAL_SECONDS)
    ranges = {"$__rate_interval": f"{rate}s", "$__range": f"{MINUTES}m"}
    return with_values(expression, CHOSEN, ranges)


def _range_seconds(filled: Filled, expression: str) -> float:
    start = filled.end - MINUTES * 60
    return _seconds(
        filled, "/api/v1/query_range", expression, start=start, end=filled.end, step=_step()
    )


def _instant_seconds(filled: Filled, expression: str) -> float:
    return _seconds(filled, "/api/v1/query", expression, time=filled.end)


def _seconds(filled: Filled, path: str, expression: str, **times: int) -> float:
    before = filled.cpu_seconds()
    texts = {name: str(time) for name, time in times.items()}
    filled.server.ask(path, query=_as_sent(expression), **texts)
    return filled.cpu_seconds() - before
