"""Publishing a night's run of 100,000 series: seconds, rows, and bytes in the database; stats are printed.

Half of the series have a weekly profile, the others a daily one; the server runs on this machine, as a
user's does who sets none.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import numpy as np
import psutil
import pyarrow as pa
import pytest
from sqlalchemy import text

from rules.baseline.layout import SERIES
from service.runtime.clock import monotonic
from service.storage.baselines.publishing import Publishing, publish
from service.storage.database import schema
from service.storage.database.engine import Database, open_database
from spark.schemas import RUN
from tests.baseline_run_files import DAY, DICTIONARY, write_tables
from tests.factories import at

SERIES_COUNT = 100_000
MEGABYTE = 1 << 20


@pytest.fixture
def database(folder: Path) -> Iterator[Database]:
    made = open_database(None, folder)
    schema.upgrade(made.engine)
    yield made
    made.close()


def _dictionary(ids: np.ndarray) -> pa.Table:
    number = np.arange(ids.size)
    names = [
        pa.array(ids),
        pa.array(["main"] * ids.size),
        pa.array(["read_committed_lag"] * ids.size),
        pa.array([f"topic-{one}" for one in (number // 64).tolist()]),
        pa.array((number % 16).astype(np.int32)),
        pa.array([f"group-{one}" for one in (number // 16 % 4).tolist()]),
        pa.array(np.zeros(ids.size, np.int64)),
    ]
    return pa.table(names, schema=DICTIONARY)


def _run(ids: np.ndarray, seed: int) -> pa.Table:
    random = np.random.default_rng(seed)
    slots = np.where(np.arange(ids.size) % 2, 336, 48).astype(np.int32)
    offsets = np.concatenate([[0], np.cumsum(slots, dtype=np.int32) * 4]).astype(np.int32)

    def blocks() -> pa.Array:
        values = random.gamma(2.0, 30.0, int(slots.sum())).astype("<f4")
        buffers = [None, pa.py_buffer(offsets), pa.py_buffer(values)]
        return pa.Array.from_buffers(pa.binary(), ids.size, buffers)

    known = {
        "series_id": pa.array(ids),
        "metric": pa.array(["read_committed_lag"] * ids.size),
        "outcome": pa.array(["banded"] * ids.size),
        "reason": pa.array(["learnt"] * ids.size),
        "profile": pa.array(np.where(slots == 336, "weekly", "daily").tolist()),
        "slots": pa.array(slots),
        "threshold_below": pa.array(np.full(ids.size, 3, np.float32)),
        "drift_threshold": pa.array(np.full(ids.size, 3, np.float32)),
        "fall_share": pa.array(np.zeros(ids.size, np.float32)),
        "threshold_by": pa.array(["least"] * ids.size),
        "changed_at_ms": pa.nulls(ids.size, pa.int64()),
        "days": pa.array(np.full(ids.size, 30, np.int32)),
        "state": pa.array([b""] * ids.size, pa.binary()),
    }
    columns = []
    for one in RUN:
        if one.name in known:
            columns.append(known[one.name])
        elif one.type == pa.binary():
            columns.append(blocks())
        else:
            columns.append(pa.array(random.random(ids.size).astype(np.float32)))
    return pa.table(columns, schema=RUN)


def test_publishing_a_run(database: Database, tmp_path: Path) -> None:
    ids = np.sort(np.random.default_rng(1).integers(0, 2**63 - 1, SERIES_COUNT))
    (tmp_path / SERIES).mkdir()
    pa.parquet.write_table(_dictionary(ids), tmp_path / SERIES / "0001.parquet")
    before = psutil.Process().memory_info().rss
    for night in range(4):
        day = DAY + timedelta(days=night)
        run = _run(ids, night)
        place = write_tables(tmp_path, run, day=day, run_id=f"r{night}", buckets=32)
        del run
        begin, used = monotonic(), psutil.Process().cpu_times().user
        published = publish(database.engine, place, cluster="main", now=at(night))
        took = monotonic() - begin
        assert published.outcome is Publishing.PUBLISHED
        assert (published.series, published.unlabelled) == (SERIES_COUNT, 0)
        print(f"\nnight {night}: {SERIES_COUNT:,} series published in {took:.1f} s", end="")
        used = psutil.Process().cpu_times().user - used
        print(f", {SERIES_COUNT / took:,.0f} series/s, {used:.1f} s of it this process's", end="")
        print(f"; dropped {published.dropped}", end="")
    with database.engine.connect() as connection:
        size = connection.execute(text("SELECT pg_total_relation_size('baselines_run_4')"))
        print(f"\none run takes {size.scalar_one() / MEGABYTE:.0f} MB in the database", end="")
        begin = monotonic()
        found = connection.execute(
            text("SELECT mid[1] FROM current_baselines WHERE topic = 'topic-7' AND partition = 3")
        ).all()
        print(f"; {len(found)} series of a partition read in {monotonic() - begin:.4f} s")
    print(f"memory: {(psutil.Process().memory_info().rss - before) / MEGABYTE:.0f} MB more")
