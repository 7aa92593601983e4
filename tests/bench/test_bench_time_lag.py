"""Time lags of 10,000 partitions that all move and 31,590 commits, for so long that observations are thinned."""

from __future__ import annotations

import io
import statistics

from rules.time_lag import EndHistory, TimeLags, advance, time_lags
from rules.time_lag.thinning import Bounds
from service.history.ends_format import read_ends, write_ends
from service.runtime.clock import monotonic
from tests.bench.large import INTERVAL_SECONDS, TITLE, moving

OBSERVATIONS = 1_800  # over seven hours
BEHIND = 1_300  # observations: over five hours
INTERVAL_US = INTERVAL_SECONDS * 10**6
BAR_MS, MOST_MB = 100.0, 110.0


def test_time_lags_of_a_large_cluster() -> None:
    history: EndHistory | None = None
    spent: dict[str, list[float]] = {"remember": [], "near the end": [], "hours behind": []}
    for number in range(OBSERVATIONS):
        seen = moving(number)
        begin = monotonic()
        history = advance(
            history,
            cluster_id=seen.cluster_id,
            partitions=seen.partitions,
            offsets=seen.offsets,
            now_us=number * INTERVAL_US,
        )
        spent["remember"].append(monotonic() - begin)
        if number % 50 == 0:
            _timed(spent["near the end"], history, number)
    assert history is not None
    for _ in range(5):
        lags = _timed(
            spent["hours behind"], history, OBSERVATIONS - 1, committed_at=OBSERVATIONS - 1 - BEHIND
        )
        assert lags.read_committed.lag_us.valid.all()
        assert (lags.read_committed.within_us <= INTERVAL_US).all()
    _print(history, spent)
    assert statistics.median(spent["remember"] + spent["near the end"]) * 1000 < BAR_MS
    assert history.size_bytes / 1e6 < MOST_MB


def _timed(
    into: list[float], history: EndHistory, number: int, committed_at: int | None = None
) -> TimeLags:
    seen = moving(number, committed_at=committed_at)
    begin = monotonic()
    found = time_lags(history, seen)
    into.append(monotonic() - begin)
    return found


def _print(history: EndHistory, spent: dict[str, list[float]]) -> None:
    print(f"\ntime lags: {TITLE}, {OBSERVATIONS:,} observations {INTERVAL_SECONDS} s apart")
    for what, took in spent.items():
        print(
            f"  {what:<14} median {statistics.median(took) * 1000:6.1f} ms, "
            f"max {max(took) * 1000:6.1f} ms"
        )
    file = io.BytesIO()
    begin = monotonic()
    write_ends(history, file)
    written = monotonic() - begin
    begin = monotonic()
    read_ends(file, Bounds())
    print(
        f"  memory         {history.size_bytes / 1e6:6.1f} MB in {len(history.blocks)} blocks"
        f"\n  file           {len(file.getvalue()) / 1e6:6.1f} MB, written in {written:.2f} s, "
        f"read in {monotonic() - begin:.2f} s"
    )
