"""Writes simulated weeks as history, and the truth about them beside it."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from datetime import date
from typing import Final

from rules.baseline.layout import DAYS, HOURS, MASKS, RUNS, SERIES
from rules.errors import SandboxError
from service.history.blocks import Block
from service.history.days import write_day
from service.history.dictionary import Dictionary
from service.history.folder import (
    ASIDE,
    BUCKETS,
    Described,
    Folder,
    bare_folder,
    find_folder,
)
from service.jobs.baseline_run.lock import alone
from service.sandbox.simulator.labels import LABELS_FILE, labels_of
from service.sandbox.simulator.simulation import Samples, Simulation

PARTS: Final = (DAYS, HOURS, SERIES, MASKS, RUNS, ASIDE)  # removed where they are of a simulation
MANY_SERIES: Final = 5000
FEW_BUCKETS: Final = 8  # enough for fewer series


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """What was written."""

    samples: int
    bytes: int  # of the days' files


def write_history(
    simulation: Simulation, url: str, *, replace: bool, progress: Callable[[date, int], None]
) -> Written:
    """Write all days of a simulation into a folder of history of its own.

    Until the last of them is written the folder says that it is not whole, and nothing reads it.
    What was broken off is begun anew.

    Args:
        simulation: whose days were not made yet.
        url: the folder, as `[history] url`.
        replace: remove an earlier simulation there, and what baseline runs have learnt from it.
        progress: called with each day that is written, and how many samples it has.

    Raises:
        SandboxError: the folder holds another history.
        ConflictError: a nightly run, or another simulation, works there.
        StoreError: it cannot be read or written.
    """
    request = simulation.request
    described = Described(
        cluster=request.cluster,
        time_zone=request.zones[0],
        buckets=FEW_BUCKETS if request.series < MANY_SERIES else BUCKETS,
        is_whole=False,
    )
    _check(url, replace=replace)  # before anything is written there, be it a lock
    with _alone(bare_folder(url, described)):
        _check(url, replace=replace)
        folder = _emptied(url, described)
        written = _write(folder, simulation, progress)
        folder.describe(dataclasses.replace(described, is_whole=True))
    return written


def was_broken_off(url: str) -> bool:
    """Whether a folder holds simulated weeks of which some are missing.

    Raises:
        StoreError: it cannot be read.
    """
    folder = find_folder(url)
    return folder is not None and not folder.described.is_whole


def _check(url: str, *, replace: bool) -> None:
    """Find out whether what a folder holds may be removed.

    Raises:
        SandboxError: it may not.
        StoreError: it cannot be read.
    """
    folder = find_folder(url)
    if folder is not None and not folder.described.is_whole:
        return
    bare = bare_folder(url, Described(cluster=""))
    if bare.size(LABELS_FILE) is None:
        if folder is not None or any(bare.names(part) for part in PARTS):
            raise SandboxError(
                f"{bare.url} holds a history that is not simulated: give another --history"
            )
    elif not replace:
        raise SandboxError(
            f"{bare.url} holds simulated weeks already: --replace removes them, with their runs"
        )


@contextmanager
def _alone(folder: Folder) -> Iterator[None]:
    """Keep baseline runs and other simulations away, where the folder is on this machine."""
    with nullcontext() if folder.local is None else alone(folder.local):
        yield


def _emptied(url: str, described: Described) -> Folder:
    """Return the folder with nothing in it but the description, which says that it is not whole."""
    folder = bare_folder(url, described).describe(described)
    for part in PARTS:
        folder.remove_folder(part)
    return folder


def _write(
    folder: Folder, simulation: Simulation, progress: Callable[[date, int], None]
) -> Written:
    _write_labels(folder, simulation)
    samples = size = 0
    for day, blocks in simulation.days():
        if not samples:
            labels = {series.series_id: series for series in simulation.series}
            Dictionary(folder).add(labels, blocks[0].grid.start_ms)
        size += write_day(folder, day, [_block(block) for block in blocks])
        samples += sum(block.values.size for block in blocks)
        progress(day, samples)
    _write_labels(folder, simulation)  # with the ends of what had happened
    return Written(samples=samples, bytes=size)


def _write_labels(folder: Folder, simulation: Simulation) -> None:
    text = json.dumps(labels_of(simulation), indent=1) + "\n"
    folder.write(LABELS_FILE, lambda stream: stream.write(text.encode()))


def _block(samples: Samples) -> Block:
    return Block(
        series_id=samples.series_id,
        metric=samples.metric,
        start_ms=samples.grid.start_ms,
        step_ms=samples.grid.step_ms,
        values=samples.values,
    )
