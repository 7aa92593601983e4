"""What history costs: writing a round of a large cluster, an hour, folding a day; stats are printed.

The values are those of queues: Poisson arrivals with a daily cycle, polls some milliseconds late,
lags, lags in seconds, and spans that are mostly zero.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from datetime import UTC, date, datetime
from functools import partial
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from rules.baseline.series import Metric
from rules.facts.memory import Memory, advance
from service.history.ahead import HOUR_MS, segment_paths
from service.history.blocks import CODE_OF, Block
from service.history.days import DayReader
from service.history.extraction import Extraction, JudgedRound
from service.history.folding import fold_due
from service.history.recorder import Recorder
from service.history.shipping import Shipper
from service.runtime.clock import monotonic
from tests.bench.large import INTERVAL_SECONDS, TITLE, moving
from tests.bench.memory import weighed
from tests.packed import history_folder, write_by_bucket
from tests.unit.service.runtime.recorded_log import RecordedLog

ROUNDS: Final = 20
STEP_MS: Final = 30_000
PER_HOUR: Final = HOUR_MS // STEP_MS
PARTITIONS: Final = 2_500  # with eight series each
DAY: Final = date(2026, 3, 2)
START_MS: Final = int(datetime(2026, 3, 2, tzinfo=UTC).timestamp() * 1000)
KINDS: Final = (
    Metric.PRODUCE_RATE,
    Metric.CONSUME_RATE,
    Metric.READ_COMMITTED_LAG,
    Metric.READ_UNCOMMITTED_LAG,
    Metric.READ_COMMITTED_LAG_SECONDS,
    Metric.READ_UNCOMMITTED_LAG_SECONDS,
    Metric.OPEN_SPAN,
    Metric.UNREPLICATED_SPAN,
)


def test_what_a_round_costs(folder: Path) -> None:
    recorder = Recorder(
        folder / "ahead",
        Extraction("c", interval_seconds=INTERVAL_SECONDS),
        interval_seconds=INTERVAL_SECONDS,
        monotonic=monotonic,
        log=RecordedLog().log,
    )
    memory: Memory | None = None
    took: list[float] = []
    for number in range(ROUNDS):
        seen = moving(number)
        recorder.take(JudgedRound(snapshot=seen, before=memory))
        begin = monotonic()
        recorder.write_waiting()
        took.append(monotonic() - begin)
        memory = advance(seen, memory)
    series = recorder.stats.series
    recorder.close()
    (segment,) = segment_paths(folder / "ahead")
    print(f"\n{TITLE}: {series:,} series")
    print(f"  first round, which makes their ids: {took[0]:.2f} s")
    print(f"  a round, median {statistics.median(took[1:]):.3f} s, at most {max(took[1:]):.3f} s")
    print(f"  that is {statistics.median(took[1:]) / series * 1e5:.3f} s per 100,000 series")
    print(f"  write-ahead: {segment.stat().st_size / ROUNDS / series:.2f} bytes per sample")
    shipper = Shipper(
        folder / "ahead",
        lambda: history_folder(folder / "history", buckets=32),
        current=lambda: None,
        on_labels_lost=lambda: None,
        log=RecordedLog().log,
    )
    begin = monotonic()
    shipper.ship()
    print(f"  shipped in {monotonic() - begin:.2f} s; {weighed()}")
    assert recorder.stats.rounds == ROUNDS


def test_what_a_day_costs(folder: Path) -> None:
    history = history_folder(folder / "history", buckets=32)
    kept: dict[int, NDArray[np.float32]] = {}
    written = 0
    for hour, block in enumerate(hours()):
        path = f"hours/hour={DAY.isoformat()}T{hour:02d}/part-0.parquet"
        history.write(path, partial(write_by_bucket, blocks=[block], buckets=32))
        written += history.size(path) or 0
        kept[hour] = block.values[::997].copy()
    samples = len(block) * PER_HOUR * 24
    print(f"\n{len(block):,} series, a day at {STEP_MS / 1000:g} s: {samples:,} samples")
    print(f"  hours: {written / samples:.2f} bytes per sample; {weighed()}")
    begin = monotonic()
    folded = fold_due(history, before=date(2026, 3, 3), lock=folder / "lock")
    took = monotonic() - begin
    print(f"  folded: {folded.bytes / samples:.2f} bytes per sample, in {took:.1f} s; {weighed()}")
    begin = monotonic()
    reader, read = DayReader(history, DAY), 0
    chosen = block.series_id[::997].tolist()
    whole = np.concatenate([kept[hour] for hour in range(24)], axis=1)
    for bucket in reader.buckets():
        for one in reader.blocks(bucket):
            read += one.values.size
            for row in np.flatnonzero(np.isin(one.series_id, chosen)).tolist():
                place = chosen.index(int(one.series_id[row]))
                np.testing.assert_array_equal(one.values[row], whole[place])
    print(f"  read back, equal, in {monotonic() - begin:.1f} s")
    assert read == samples


def hours() -> Iterator[Block]:
    """Give the hours of a day."""
    draw = np.random.default_rng(7)
    rate = draw.lognormal(3, 1.5, PARTITIONS)[:, None]  # offsets per second
    is_transactional = draw.random(PARTITIONS) < 0.3
    ids = draw.integers(0, 2**62, PARTITIONS * len(KINDS))
    for hour in range(24):
        seconds = (hour * PER_HOUR + np.arange(PER_HOUR)) * STEP_MS / 1000
        now = rate * (1 + 0.6 * np.sin(2 * np.pi * seconds / 86_400))
        late = (STEP_MS + draw.integers(-4, 5, PER_HOUR)) / 1000
        made = draw.poisson(now * STEP_MS / 1000)
        lag = draw.poisson(now * 2)
        read = np.maximum(made + np.diff(lag, axis=1, prepend=lag[:, :1]), 0)
        behind = lag / now * draw.random(lag.shape) * 2
        open_span = np.where(is_transactional[:, None], draw.poisson(now), 0)
        unreplicated = np.where(draw.random(lag.shape) < 0.01, draw.poisson(now), 0)
        per_kind = [made / late, read / late, lag, lag, behind, behind, open_span, unreplicated]
        yield Block(
            series_id=ids,
            metric=np.repeat([CODE_OF[kind] for kind in KINDS], PARTITIONS).astype(np.uint8),
            start_ms=START_MS + hour * HOUR_MS,
            step_ms=STEP_MS,
            values=np.concatenate(per_kind).astype(np.float32),
        )
