"""The program of `test_bench_memory`: the memory of a whole service that keeps history and time lag.

The service of `whole_service`, which also writes history. It begins with what an earlier process
remembered of ends, as a restart does; `prepare` makes that, and the other hours of the day, in a
process of its own.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Final

from rules.baseline.layout import HOURS, hour_folder
from rules.facts.last_observation import microseconds
from rules.time_lag import EndHistory
from rules.time_lag import advance as advance_ends
from service.history.ahead import HOUR_MS
from service.history.days import RowGroups
from service.history.ends_format import write_ends
from service.history.extraction import Extraction
from service.history.folder import Folder
from service.history.folding import fold_due
from service.history.hours import hour_at
from service.history.kept_ends import KeptEnds
from service.history.recorder import Recorder
from service.history.shipping import Shipper
from service.observe.watch import Remembered
from service.rounds.history import History
from service.runtime.allocator import give_back, keep_memory_small
from service.runtime.clock import monotonic
from tests.bench.large import INTERVAL_SECONDS, TITLE, moving
from tests.bench.memory import forget_peak, weights
from tests.bench.whole_service import NAME, Parts, build, timed_round
from tests.factories import NOON
from tests.packed import history_folder, write_by_bucket
from tests.unit.service.runtime.recorded_log import RecordedLog

ROUNDS: Final = 3600 // INTERVAL_SECONDS  # of an hour
OBSERVATIONS: Final = 1_800  # remembered of ends: over seven hours, so that they are thinned
BUCKETS: Final = 32
ENDS: Final = "time-lag.npz"


def run(folder: Path) -> Iterator[str]:
    """Make the rounds of two hours, ship them, fold a day; say what each took and held."""
    kept = make_kept(folder)
    yield f"memory with history and time lag: {TITLE}, a round in {INTERVAL_SECONDS} s"
    yield told("Python's modules", 0.0)
    parts = build(
        folder / "data", history=kept.history, remembered=Remembered(ends=kept.ends.load())
    )
    with closing(parts.store):
        parts.pipeline.load(is_start=True)
        kept.ends.current = lambda: parts.watcher.remembered.ends
        yield told("built, ends of seven hours read", 0.0)
        yield timed("the first round", partial(rounds, parts, kept, 1))
        yield timed("rounds until the hour is over", partial(rounds, parts, kept, ROUNDS))
        yield timed("ends are saved", kept.ends.save)
        yield timed("the first hour is shipped", kept.shipper.ship)
        yield timed("rounds of another hour", partial(rounds, parts, kept, ROUNDS))
        yield timed("that hour is shipped", kept.shipper.ship)
        in_child("day", folder)
        history, over = opened(folder), NOON.date() + timedelta(days=1)
        fold = partial(fold_due, history, before=over, lock=folder / "lock")
        yield timed("a day is folded", fold)
        yield timed("what is free is given back", give_back)


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """What keeps history."""

    recorder: Recorder
    shipper: Shipper
    history: History
    ends: KeptEnds


def make_kept(folder: Path) -> Kept:
    """Build what keeps history as the wiring does."""
    log, stop = RecordedLog().log, asyncio.Event()
    recorder = Recorder(
        folder / "ahead",
        Extraction(NAME, interval_seconds=INTERVAL_SECONDS),
        interval_seconds=INTERVAL_SECONDS,
        monotonic=monotonic,
        log=log,
    )
    shipper = Shipper(
        folder / "ahead",
        lambda: opened(folder),
        current=lambda: recorder.current,
        on_labels_lost=recorder.write_labels_again,
        log=log,
    )
    return Kept(
        recorder=recorder,
        shipper=shipper,
        history=History(recorder, shipper, stop=stop),
        ends=KeptEnds(folder / ENDS, stop=stop, log=log),
    )


def rounds(parts: Parts, kept: Kept, count: int) -> None:
    """Make so many rounds, each written ahead."""
    for _ in range(count):
        timed_round(parts)
        kept.recorder.write_waiting()


def timed(what: str, work: Callable[[], object]) -> str:
    """Do something; say how long it took, and the most that was held meanwhile."""
    forget_peak()
    begin = monotonic()
    work()
    return told(what, monotonic() - begin)


def told(what: str, seconds: float) -> str:
    """Say what is held now and was held at most."""
    now, most = weights()
    return f"  {what:<32} {seconds:6.2f} s, holds {now:4.0f} MiB, at most {most:4.0f} MiB"


def opened(folder: Path) -> Folder:
    """Open the folder of history."""
    return history_folder(folder / "history", buckets=BUCKETS)


def in_child(mode: str, folder: Path) -> None:
    """Run another part of this program in a process of its own."""
    subprocess.run([sys.executable, "-m", __spec__.name, mode, str(folder)], check=True)


def prepare(folder: Path) -> None:
    """Make what an earlier process left of ends."""
    history: EndHistory | None = None
    for number in range(-OBSERVATIONS, 0):
        seen = moving(number)
        history = advance_ends(
            history,
            cluster_id=seen.cluster_id,
            partitions=seen.partitions,
            offsets=seen.offsets,
            now_us=microseconds(seen.taken_at),
        )
    assert history is not None
    with (folder / ENDS).open("wb") as file:
        write_ends(history, file)


def day(folder: Path) -> None:
    """Make a day of hours like the first one."""
    history = opened(folder)
    hour = history.names(HOURS)[0]
    (part,) = history.names(f"{HOURS}/{hour}")
    file = RowGroups(history, f"{HOURS}/{hour}/{part}")
    blocks = [block for group in range(len(file)) for block in file.blocks(group)]
    for one in history.names(HOURS):
        history.remove_folder(f"{HOURS}/{one}")
    first = blocks[0].start_ms // HOUR_MS // 24 * 24
    for place in range(first, first + 24):
        by_ms = place * HOUR_MS - blocks[0].start_ms
        moved = [replace(block, start_ms=block.start_ms + by_ms) for block in blocks]
        write = partial(write_by_bucket, blocks=moved, buckets=BUCKETS)
        history.write(f"{hour_folder(hour_at(place))}/part-0.parquet", write)


def main() -> None:
    """Do what is asked for; by default print the stats."""
    mode, folder = sys.argv[1], Path(sys.argv[2])
    if mode == "prepare":
        prepare(folder)
    elif mode == "day":
        day(folder)
    else:
        folder.mkdir(parents=True, exist_ok=True)
        in_child("prepare", folder)
        keep_memory_small()
        for line in run(folder):
            print(line, flush=True)


if __name__ == "__main__":
    main()
