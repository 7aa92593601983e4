"""A whole night as `tidemark nightly run` makes it, cold: Java and Spark start, one night, publishing.

Polls every 30 s; all rings of all states are full, as after five weeks. Series are copies of some that
are simulated. NIGHTLY_SERIES=4000,100000 sets the sizes.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import date, timedelta
from pathlib import Path
from typing import Final

import numpy as np
import psutil
import pytest
from numpy.typing import NDArray

from rules.baseline.baseline_run import BaselineRun
from rules.baseline.blocks import METRICS, BaselineBlock, DayBlock
from rules.baseline.civil import civil_day
from rules.baseline.daily_step import advance
from rules.baseline.layout import RUN_FILE, bucket_file, day_folder, run_folder
from rules.baseline.policy import BaselineSettings
from rules.baseline.series import Series
from rules.baseline.state import StateBlock
from service.history.blocks import Block
from service.history.days import write_bucket
from service.history.dictionary import Dictionary
from service.history.folder import Described, Folder, open_folder
from service.runtime.clock import monotonic, utc_now
from spark.places import Place
from spark.writing import run_rows, writing_run
from tests.bench.test_bench_baseline import PARTS, SERIES, made

CLUSTER: Final = "bench"
BUCKETS: Final = 32
NIGHTS: Final = 35
SIZES: Final = [int(one) for one in os.environ.get("NIGHTLY_SERIES", "2000,8000,32000").split(",")]
MORE_DAYS: Final = 60
GIGABYTE: Final = 1 << 30


@dataclass(frozen=True, slots=True, kw_only=True)
class Learnt:
    """Some series after five weeks, and one day more."""

    day: DayBlock
    states: StateBlock
    baselines: BaselineBlock


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """One run of the command."""

    stats: dict[str, float]
    seconds: float
    cpu_seconds: float  # of all processes: what matters on a machine that does other things too
    peak: dict[str, int]  # bytes by kind of process, now when their sum was greatest


@pytest.fixture(scope="module")
def learnt() -> Learnt:
    draw = np.random.default_rng(3)
    states = StateBlock.new(SERIES)
    baselines: BaselineBlock | None = None
    for back in range(NIGHTS, 0, -1):
        calendar = civil_day(last_day() - timedelta(days=back), "UTC")
        states, baselines = advance(states, made(calendar, draw), calendar, BaselineSettings())
    assert baselines is not None
    day = made(civil_day(last_day(), "UTC"), draw)
    return Learnt(day=day, states=states, baselines=baselines)


def last_day() -> date:
    return utc_now().date() - timedelta(days=1)


@pytest.mark.timeout(7200)
def test_a_cold_night_by_size(folder: Path, learnt: Learnt) -> None:
    print("\nall parts of the formulas are on:", *PARTS, sep="\n  ")
    for size in SIZES:
        history = folder / f"h{size}"
        write_history(history, learnt, size)
        tell(f"{size:7} series", size, measure(history, folder / f"d{size}"))


@pytest.mark.timeout(3600)
def test_a_night_takes_no_longer_where_more_days_are_kept(folder: Path, learnt: Learnt) -> None:
    size, history = SIZES[0], folder / "many"
    write_history(history, learnt, size)
    newest = history / day_folder(last_day())
    for back in range(1, MORE_DAYS):
        older = history / day_folder(last_day() - timedelta(days=back))
        older.mkdir()
        for file in newest.iterdir():
            os.link(file, older / file.name)
    tell(f"{MORE_DAYS} days of {size}", size, measure(history, folder / "d"))


def write_history(path: Path, learnt: Learnt, size: int) -> None:
    """Write one day of so many series, and the run of the day before."""
    new = Described(cluster=CLUSTER, time_zone="UTC", buckets=BUCKETS)
    history = open_folder(str(path), new)
    labels = [
        Series(
            cluster=CLUSTER,
            metric=METRICS[int(learnt.day.metric[place % SERIES])],
            topic=f"topic-{place // SERIES}",
            partition=place % SERIES,
        )
        for place in range(size)
    ]
    ids = np.array([one.series_id for one in labels], np.int64)
    Dictionary(history).add(dict(zip(ids.tolist(), labels, strict=True)), 0)
    order = np.argsort(ids)
    day, place = last_day() - timedelta(days=1), Place(str(path))
    told = []
    for bucket in range(BUCKETS):
        mine = order[ids[order] % BUCKETS == bucket]
        _write_samples(history, bucket, learnt, ids[mine], mine % SERIES)
        with writing_run(place, f"{run_folder(day, 'before')}/{bucket_file(bucket)}") as writer:
            for some in np.array_split(mine, max(1, len(mine) // 256)):
                baselines = learnt.baselines.take(some % SERIES)
                rows = run_rows(
                    learnt.states.take(some % SERIES), replace(baselines, series_id=ids[some])
                )
                writer.add(rows)
            told.append(writer.reported(bucket, None))
    run = BaselineRun(id="before", day=day, zone="UTC", previous=None, buckets=tuple(told))
    place.write(f"{run_folder(day, 'before')}/{RUN_FILE}", run.to_json().encode())


def _write_samples(
    history: Folder,
    bucket: int,
    learnt: Learnt,
    ids: NDArray[np.int64],
    rows: NDArray[np.int64],
) -> None:
    block = Block(
        series_id=ids,
        metric=learnt.day.metric[rows],
        start_ms=civil_day(last_day(), "UTC").start_ms,
        step_ms=learnt.day.step_ms,
        values=learnt.day.values[rows],
    )
    write_bucket(history, last_day(), bucket, [block])


def measure(history: Path, data_directory: Path) -> Measured:
    """Run the command as a user does; the database is there, and nothing of Spark is."""
    words = (sys.executable, "-m", "service")
    own = ("--data-dir", str(data_directory))
    subprocess.run([*words, "db", "upgrade", *own], check=True, stdout=subprocess.DEVNULL)
    begun = monotonic()
    run = subprocess.Popen(
        [*words, "nightly", "run", "-o", "json", "--history", str(history), *own],
        stdout=subprocess.PIPE,
        text=True,
    )
    over, peaks, used = threading.Event(), [dict[str, int]()], dict[int, float]()
    watcher = threading.Thread(target=_watch, args=(run.pid, over, peaks, used))
    watcher.start()
    out, _ = run.communicate()
    seconds = monotonic() - begun
    over.set()
    watcher.join()
    assert run.returncode == 0, out
    events = [json.loads(line) for line in out.splitlines()]
    night = next(one for one in events if one.get("event") == "baseline_run")
    published = next(one for one in events if one.get("event") == "published")
    stats = night["seconds"] | {"publish": published["seconds"], "series": night["series"]}
    return Measured(stats=stats, seconds=seconds, cpu_seconds=sum(used.values()), peak=peaks[0])


def _watch(
    pid: int, over: threading.Event, peaks: list[dict[str, int]], used: dict[int, float]
) -> None:
    """Keep the greatest sum of resident memory of the command and all that it started.

    `used` gets the processor time of each process, as far as it was seen.
    """
    while not over.wait(0.2):
        found: dict[str, int] = {}
        for one in _family(pid):
            with suppress(psutil.NoSuchProcess):
                name = one.name()
                kind = "python" if name.startswith(("python", "tidemark")) else name
                found[kind] = found.get(kind, 0) + one.memory_info().rss
                times = one.cpu_times()
                used[one.pid] = times.user + times.system
        peaks[0] = max(peaks[0], found, key=lambda sizes: sum(sizes.values()))


def _family(pid: int) -> list[psutil.Process]:
    with suppress(psutil.NoSuchProcess):
        command = psutil.Process(pid)
        return [command, *command.children(recursive=True)]
    return []


def tell(name: str, size: int, measured: Measured) -> None:
    assert measured.stats["series"] == size
    stages = ", ".join(
        f"{stage} {measured.stats.get(stage, 0):.1f}"
        for stage in ("inputs", "start", "tasks", "publish", "read", "advance", "write")
    )
    memory = ", ".join(f"{kind} {size / GIGABYTE:.2f}" for kind, size in measured.peak.items())
    print(
        f"{name}: {measured.seconds:6.1f} s, {size / measured.seconds:6.0f} series-days/s, "
        f"{measured.cpu_seconds:.1f} s of cores; "
        f"seconds: {stages} (the last three of cores); peak GB {memory}, "
        f"sum {sum(measured.peak.values()) / GIGABYTE:.2f}",
        flush=True,
    )
