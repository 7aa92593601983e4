"""Runs the areas of `make test` side by side, as many as keep the machine's cores busy.

`python -m tests.areas lint unit spark` reads from `tests/areas.toml` how long each area takes and how
many cores it keeps busy: more on a slow machine, where what waits for Kafka's time-outs waits no longer
but computes for longer. What is to be alone begins first, one area that waits for Kafka's time-outs
beside it, and then the longest that still fits. The output of an area is shown whole when
it has ended. On one core they run one after the other.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from service.runtime.clock import monotonic

TABLE: Final = Path("tests/areas.toml")
MAKE: Final = ("make", "--no-print-directory")
LOW_PRIORITY: Final = ("nice", "-n", "5")  # a third of the time that others get
# A little more than the machine has may begin: an area is not always as busy as on average. What gives
# way costs the others little where it is too much.
MORE: Final = 1.05
MORE_THAT_GIVES_WAY: Final = 1.5
# By how long additions take, a machine is compared with that of the table. There it is an estimate: where
# they took 0.135 s, the unit tests took 206 core-seconds instead of the table's machine's 145.
ADDITIONS: Final = 2_000_000
ADDITIONS_SECONDS: Final = 0.09
INTERRUPTED: Final = 130
SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
REPORTED_AGAIN: Final = re.compile(rb"(?m)^(?:FAILED|ERROR|RERUN) .*$")


@dataclass(frozen=True, slots=True, kw_only=True)
class Area:
    """A target of the Makefile, and what it took on a quiet machine with two cores."""

    name: str
    seconds: float
    cores: float  # that it kept busy
    gives_way: bool = False  # to all that runs beside it
    alone: bool = False  # beside it run only what gives way and one area that waits
    waits: bool = False  # most of its time, for brokers' time-outs

    def on(self, slowness: float) -> Area:
        """Return the area as it is on a machine that needs so many times as long to compute."""
        busy, waiting = self.cores * slowness, 1 - self.cores
        return replace(self, cores=busy / (busy + waiting))

    @property
    def command(self) -> Sequence[str]:
        return (*(LOW_PRIORITY if self.gives_way else ()), *MAKE, self.name)


@dataclass(frozen=True, slots=True, kw_only=True)
class Running:
    """An area that runs, in a process group of its own."""

    area: Area
    process: subprocess.Popen[bytes]
    folder: tempfile.TemporaryDirectory[str]
    began: float

    @property
    def output(self) -> Path:
        return Path(self.folder.name, "output")


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """An area that has ended."""

    name: str
    seconds: float
    cores: float
    has_failed: bool
    output: bytes


@dataclass
class Areas:
    """What waits, what runs, and what has ended."""

    waiting: list[Area]
    cores: int
    running: dict[int, Running] = field(default_factory=dict)  # by process
    done: list[Done] = field(default_factory=list)
    is_interrupted: bool = False

    def interrupt(self, *_signal: object) -> None:
        """Begin no other area, and let all that runs hear Ctrl-C: tests end their brokers then."""
        self.is_interrupted = True
        self.waiting.clear()
        for process in self.running:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process, signal.SIGINT)

    def run(self) -> Iterator[Done]:
        """Run all areas, and yield each when it has ended."""
        self._begin_what_fits()
        while self.running:
            process, status, usage = os.wait4(-1, 0)
            ended = self.running.pop(process)
            ended.process.returncode = os.waitstatus_to_exitcode(status)
            self.done.append(done(ended, usage.ru_utime + usage.ru_stime))
            yield self.done[-1]
            self._begin_what_fits()

    def _begin_what_fits(self) -> None:
        for area in sorted(self.waiting, key=lambda area: (not area.alone, -area.seconds)):
            if self._fits(area):
                self.waiting.remove(area)
                self._begin(area)

    def _fits(self, area: Area) -> bool:
        beside = [running.area for running in self.running.values()]
        if not beside:
            return True
        if self.cores == 1 or not may_be_side_by_side([area, *beside]):
            return False
        if area.gives_way:
            return _cores(beside) + area.cores <= self.cores * MORE_THAT_GIVES_WAY
        return (
            _cores(other for other in beside if not other.gives_way) + area.cores
            <= self.cores * MORE
        )

    def _begin(self, area: Area) -> None:
        # A pytest that starts closes the folder of all temporary ones to other users, and with it the
        # databases of those that run, which are another user's where root runs the tests.
        folder = tempfile.TemporaryDirectory(prefix="t-", ignore_cleanup_errors=True)
        with Path(folder.name, "output").open("wb") as output:
            process = subprocess.Popen(
                area.command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                # A group, and not a session: Linux weighs the low priority only within a session.
                process_group=0,
                env={**os.environ, "PYTEST_DEBUG_TEMPROOT": folder.name},
            )
        self.running[process.pid] = Running(
            area=area, process=process, folder=folder, began=monotonic()
        )
        if self.is_interrupted:  # while it was being started
            self.interrupt()


def _cores(areas: Iterable[Area]) -> float:
    return sum(area.cores for area in areas)


def may_be_side_by_side(areas: Iterable[Area]) -> bool:
    """Return whether none of the areas disturbs another one."""
    judged = [area for area in areas if not area.gives_way]
    beside = [area for area in judged if not area.alone]
    alone = len(judged) - len(beside)
    return not alone or (alone == 1 and len(beside) <= 1 and all(area.waits for area in beside))


def done(ended: Running, cpu_seconds: float) -> Done:
    """Return what an area took and said, and remove what it left."""
    seconds = monotonic() - ended.began
    output = ended.output.read_bytes()
    ended.folder.cleanup()
    return Done(
        name=ended.area.name,
        seconds=seconds,
        cores=cpu_seconds / seconds,
        has_failed=ended.process.returncode != 0,
        output=output,
    )


def read_areas(names: Sequence[str]) -> list[Area]:
    """Read what is known of areas.

    Raises:
        SystemExit: the table has no such area.
    """
    table = tomllib.loads(TABLE.read_text("utf-8"))
    if unknown := [name for name in names if name not in table]:
        raise SystemExit(f"{TABLE} does not say what these take: {' '.join(unknown)}")
    return [Area(name=name, **table[name]) for name in names]


def slowness() -> float:
    """Return how many times as long as the table's machine this one needs to compute; 1 for a faster one."""
    took = []
    for _ in range(3):
        began = time.process_time()
        total = 0
        for number in range(ADDITIONS):
            total += number
        took.append(time.process_time() - began)
    return max(min(took) / ADDITIONS_SECONDS, 1.0)


def show(output: bytes) -> None:
    sys.stdout.buffer.write(output)
    sys.stdout.buffer.flush()


def summary(done: Sequence[Done], seconds: float) -> str:
    """Say what each area took, what failed, and what a test report said of failures."""
    rows = [
        f"  {one.name:18} {one.seconds:6.0f} s {one.cores:5.1f} cores"
        f"{'  FAILED' if one.has_failed else ''}"
        for one in done
    ]
    again = sorted({line.decode() for one in done for line in REPORTED_AGAIN.findall(one.output)})
    failed = [one.name for one in done if one.has_failed]
    end = [f"FAILED in {' '.join(failed)}"] if failed else []
    return "\n".join(
        ["", "Time per area", *rows, f"  {'in all':18} {seconds:6.0f} s", *again, *end, ""]
    )


def run(names: Sequence[str]) -> int:
    """Run all areas, whatever fails; return the exit code."""
    slow = slowness()
    waiting = [area.on(slow) for area in read_areas(names)]
    show(f"This machine needs {slow:.1f} times as long as the one of {TABLE}\n".encode())
    areas, began = Areas(waiting, len(os.sched_getaffinity(0))), monotonic()
    for number in SIGNALS:
        signal.signal(number, areas.interrupt)
    for one in areas.run():
        show(f"\n== {one.name}: {one.seconds:.0f} s\n".encode() + one.output)
    show(summary(areas.done, monotonic() - began).encode())
    if areas.is_interrupted:
        return INTERRUPTED
    return int(any(one.has_failed for one in areas.done))


if __name__ == "__main__":
    sys.exit(run(sys.argv[1:]))
