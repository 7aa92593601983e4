"""The metrics text of 10,000 partitions x 1,001 groups; figures are printed."""

from __future__ import annotations

import gzip
import statistics
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np

from rules.facts.column import Column
from rules.facts.snapshot import Snapshot
from rules.verdict import Verdict
from service.clock import monotonic
from service.metrics.exposition import Exposition
from service.metrics.totals import SelfMetrics
from tests.bench.large import COMMITS, moving

ROUNDS = 15
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


def _one_round(exposition: Exposition, seen: Snapshot, totals: SelfMetrics) -> None:
    exposition.update(seen, totals)
    exposition.body(None, gzip=False)


def _seconds(action: Callable[[], object]) -> float:
    begin = monotonic()
    action()
    return monotonic() - begin


def _round(number: int) -> Snapshot:
    """Return a round in which some commits were looked at closer."""
    draw = np.random.default_rng(number)
    seen = moving(number)
    asked = Column.known(draw.integers(0, 2, COMMITS)).where(draw.random(COMMITS) < 0.01)
    return replace(seen, commits=replace(seen.commits, nothing_to_read=asked))
