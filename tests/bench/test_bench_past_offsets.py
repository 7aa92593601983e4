"""How long a past time takes to read, and how many bytes its offsets cost: 14 days of rounds."""

from __future__ import annotations

import time
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import numpy as np

from rules.facts.column import Column
from service.history.offset_writer import OffsetWriter, offset_files
from service.history.past_offsets import PastOffsets
from tests.factories import at as second
from tests.factories import commits, group, offsets, partitions, snapshot
from tests.unit.service.runtime.recorded_log import RecordedLog

PARTITIONS, DAYS, STEP = 500, 14, 15
ROUNDS = DAYS * 86_400 // STEP


def test_any_second_of_fourteen_days(tmp_path: Path) -> None:
    draw = np.random.default_rng(7)
    rates = draw.gamma(2.0, 100.0, PARTITIONS)
    ends = draw.integers(10**6, 10**10, PARTITIONS)
    seen = snapshot(
        partitions=partitions({"orders": PARTITIONS}),
        groups=(group("billing"), group("audit"), group("search")),
        commits=commits(*((g, row, 0) for g in range(3) for row in range(PARTITIONS))),
        offsets=offsets(PARTITIONS),
    )
    writer = OffsetWriter(tmp_path, RecordedLog().log)
    began = time.perf_counter()
    for number in range(ROUNDS):
        ends = ends + draw.poisson(rates * STEP)
        high = ends - draw.integers(0, 3, PARTITIONS)
        stable = high - draw.poisson(20, PARTITIONS)
        lag = draw.poisson(50, 3 * PARTITIONS)
        known = {
            "log_start_offset": Column.known(np.full(PARTITIONS, 1000)),
            "last_stable_offset": Column.known(stable),
            "high_watermark": Column.known(high),
            "log_end_offset": Column.known(ends),
        }
        committed = stable[seen.commits.row] - lag
        writer.append(
            replace(
                seen,
                taken_at=second(STEP * number),
                offsets=replace(seen.offsets, **known),
                commits=replace(seen.commits, committed_offset=committed),
            )
        )
    writer.close()
    took = (time.perf_counter() - began) / ROUNDS
    size = sum(path.stat().st_size for _, path in offset_files(tmp_path))
    past = PastOffsets(tmp_path, timedelta(seconds=STEP))
    times = []
    for chosen in draw.integers(0, ROUNDS * STEP, 50).tolist():
        began = time.perf_counter()
        found = past.at(second(chosen))
        times.append(time.perf_counter() - began)
        assert found.offsets is not None
    numbers = ROUNDS * PARTITIONS * 7
    print(
        f"\n{PARTITIONS} partitions, {3 * PARTITIONS} commits, {DAYS} days: {size / DAYS / 1e6:.1f} MB "
        f"a day, {size / numbers:.2f} bytes per offset; a round is written in {took * 1000:.2f} ms; "
        f"a time is read in {np.median(times) * 1000:.0f} ms, {max(times) * 1000:.0f} ms at most"
    )
