"""The metrics text of 10,000 partitions x 1,001 groups; figures are printed.

One group has committed nearly every partition, the others 20 or 30 each: 31,590 commits.
"""

from __future__ import annotations

import gzip
import random
import statistics
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np

from rules.facts.column import Column, Int64s
from rules.facts.groups import Commits, Group
from rules.facts.snapshot import Snapshot
from rules.verdict import Verdict
from service.clock import monotonic
from service.metrics.exposition import Exposition
from service.metrics.totals import SelfMetrics
from tests.factories import at, commits, group, offsets, partitions, snapshot

TOPICS = 200
PARTITIONS_PER_TOPIC = 50
SMALL_GROUPS = 1000
WIDE_COMMITS = 9_990
COMMITS_OF_SMALL_GROUPS = 21_600
ROUNDS = 15
OPENMETRICS = "application/openmetrics-text; version=1.0.0"


def test_exposition() -> None:
    totals = SelfMetrics(version="0.1.0", findings={("log_stuck", Verdict.OK): 10_000})
    rounds = [_moved(_large_snapshot(), number) for number in range(ROUNDS)]
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


def _one_round(exposition: Exposition, seen: Snapshot, totals: SelfMetrics) -> None:
    exposition.update(seen, totals)
    exposition.body(None, gzip=False)


def _seconds(action: Callable[[], object]) -> float:
    begin = monotonic()
    action()
    return monotonic() - begin


def _large_snapshot() -> Snapshot:
    placed = partitions({f"load-{number:03}": PARTITIONS_PER_TOPIC for number in range(TOPICS)})
    groups: tuple[Group, ...] = (
        *(group(f"group-{number:04}") for number in range(SMALL_GROUPS)),
        group("wide"),
    )
    return snapshot(partitions=placed, groups=groups, commits=_commits(len(placed)))


def _commits(rows: int) -> Commits:
    draw = random.Random(7)
    per_group = np.full(SMALL_GROUPS, 20)
    per_group[: (COMMITS_OF_SMALL_GROUPS - 20 * SMALL_GROUPS) // 10] += 10
    small = [
        (position, row, 0)
        for position, count in enumerate(per_group.tolist())
        for row in sorted(draw.sample(range(rows), count))
    ]
    return commits(*small, *((SMALL_GROUPS, row, 0) for row in range(WIDE_COMMITS)))


def _moved(seen: Snapshot, number: int) -> Snapshot:
    """Return the snapshot with new offsets of up to 10 digits and as many new commits."""
    draw = np.random.default_rng(number)
    ends: Int64s = draw.integers(10**6, 10**10, len(seen.partitions))
    behind = ends[seen.commits.row] - draw.integers(0, 10**5, len(seen.commits))
    column = ends.tolist()
    moved = offsets(
        len(ends), last_stable_offset=column, high_watermark=column, log_end_offset=column
    )
    asked = Column.known(draw.integers(0, 2, len(seen.commits))).where(
        draw.random(len(seen.commits)) < 0.01
    )
    read = replace(seen.commits, committed_offset=behind, nothing_to_read=asked)
    return replace(seen, offsets=moved, commits=read, taken_at=at(5 * number))
