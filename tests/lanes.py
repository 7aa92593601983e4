"""Runs the areas of `make test`: stage after stage, and the lanes of a stage side by side.

`python -m tests.lanes lint 'breaking | ~unit steady' story` runs three stages. The first lane of a
stage is shown as it goes; the others are shown when the stage is over, so that no two are mixed. An
area with a `~` gives way to all that runs beside it. With one core the lanes run one after the other.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import signal
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from service.runtime.clock import monotonic

MAKE: Final = ("make", "--no-print-directory")
GIVES_WAY: Final = "~"
LOW_PRIORITY: Final = ("nice", "-n", "10")
CORES_OF_TWO_LANES: Final = 2
CHUNK_BYTES: Final = 65536
INTERRUPTED: Final = 130
SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
REPORTED_AGAIN: Final = re.compile(rb"(?m)^(?:FAILED|ERROR|RERUN) .*$")

Lane = Sequence[str]  # targets of the Makefile, in order
Stage = Sequence[Lane]


@dataclass(frozen=True)
class Done:
    """An area that has ended."""

    area: str
    seconds: float
    has_failed: bool
    output: bytes


@dataclass
class Areas:
    """What has ended so far, and what runs: every area in a process group of its own."""

    done: list[Done] = field(default_factory=list)
    is_interrupted: bool = False
    groups: set[int] = field(default_factory=set)

    def interrupt(self) -> None:
        """Begin no other area, and let all that runs hear Ctrl-C: tests end their brokers then."""
        self.is_interrupted = True
        for group in self.groups:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(group, signal.SIGINT)

    async def run(self, stage: Stage) -> None:
        """Run the lanes of a stage side by side, and show those that were not seen."""
        first, *others = stage
        async with asyncio.TaskGroup() as lanes:
            lanes.create_task(self._run_lane(first, is_shown=True))
            beside = [lanes.create_task(self._run_lane(lane, is_shown=False)) for lane in others]
        for done in (done for lane in beside for done in lane.result()):
            show(heading(done.area) + done.output)

    async def _run_lane(self, lane: Lane, *, is_shown: bool) -> list[Done]:
        made: list[Done] = []
        for area in lane:
            if not self.is_interrupted:
                made.append(await self._run_area(area, is_shown=is_shown))
                self.done.append(made[-1])
        return made

    async def _run_area(self, asked: str, *, is_shown: bool) -> Done:
        with tempfile.TemporaryDirectory(prefix="t-", ignore_cleanup_errors=True) as folder:
            return await self._run_area_in(folder, asked, is_shown=is_shown)

    async def _run_area_in(self, folder: str, asked: str, *, is_shown: bool) -> Done:
        area = asked.removeprefix(GIVES_WAY)
        began, pieces = monotonic(), list[bytes]()
        if is_shown:
            show(heading(area))
        # A pytest that starts closes the folder of all temporary ones to other users, and with it the
        # databases of those that run, which are another user's where root runs the tests.
        process = await asyncio.create_subprocess_exec(
            *(LOW_PRIORITY if asked != area else ()),
            *(*MAKE, area),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            start_new_session=True,
            env={**os.environ, "PYTEST_DEBUG_TEMPROOT": folder},
        )
        assert process.stdout is not None
        self.groups.add(process.pid)
        if self.is_interrupted:  # while it was being started
            self.interrupt()
        while piece := await process.stdout.read(CHUNK_BYTES):
            pieces.append(piece)
            if is_shown:
                show(piece)
        has_failed = await process.wait() != 0
        self.groups.discard(process.pid)
        return Done(area, monotonic() - began, has_failed, b"".join(pieces))


def heading(area: str) -> bytes:
    return f"\n== {area}\n".encode()


def show(output: bytes) -> None:
    sys.stdout.buffer.write(output)
    sys.stdout.buffer.flush()


def parse(stage: str) -> list[list[str]]:
    """Read a stage: areas apart by spaces, lanes by bars."""
    return [lane.split() for lane in stage.split("|")]


def in_sequence(stages: Sequence[Stage]) -> list[Stage]:
    """Give every lane a stage of its own."""
    return [[lane] for stage in stages for lane in stage]


def summary(done: Sequence[Done], seconds: float) -> str:
    """Say how long each area took, what failed, and what a test report said of failures."""
    rows = [
        f"  {one.area:12} {one.seconds:6.0f} s  {'FAILED' if one.has_failed else ''}"
        for one in done
    ]
    told = sorted({line.decode() for one in done for line in REPORTED_AGAIN.findall(one.output)})
    failed = [one.area for one in done if one.has_failed]
    end = [f"FAILED in {' '.join(failed)}"] if failed else []
    return "\n".join(
        ["", "Time per area", *rows, f"  {'in all':12} {seconds:6.0f} s", *told, *end, ""]
    )


async def run(stages: Sequence[Stage]) -> int:
    """Run all stages, whatever fails; return the exit code."""
    areas, began = Areas(), monotonic()
    for number in SIGNALS:
        asyncio.get_running_loop().add_signal_handler(number, areas.interrupt)
    for stage in stages:
        await areas.run(stage)
    show(summary(areas.done, monotonic() - began).encode())
    if areas.is_interrupted:
        return INTERRUPTED
    return int(any(one.has_failed for one in areas.done))


if __name__ == "__main__":
    asked: list[Stage] = [parse(stage) for stage in sys.argv[1:]]
    has_two = len(os.sched_getaffinity(0)) >= CORES_OF_TWO_LANES
    sys.exit(asyncio.run(run(asked if has_two else in_sequence(asked))))
