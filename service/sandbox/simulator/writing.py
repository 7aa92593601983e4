"""Writes simulated weeks as history, and the truth about them beside it."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from typing import Final

from rules.baseline.layout import HISTORY_FILE, SERIES
from rules.errors import SandboxError, StoreError
from service.history.blocks import Block
from service.history.days import write_day
from service.history.dictionary import Dictionary
from service.history.folder import BUCKETS, Described, Folder, open_folder
from service.sandbox.simulator.labels import LABELS_FILE, labels_of
from service.sandbox.simulator.simulation import Samples, Simulation

PARTS: Final = ("days", SERIES, "masks", "runs", "aside")  # of an earlier simulation
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

    Args:
        simulation: whose days were not made yet.
        url: the folder, as `[history] url`.
        replace: remove an earlier simulation there, and what nights have learnt from it.
        progress: told each day that is written, and how many samples it has.

    Raises:
        SandboxError: the folder holds another history.
        StoreError: it cannot be read or written.
    """
    wanted = simulation.wanted
    described = Described(
        cluster=wanted.cluster,
        time_zone=wanted.zones[0],
        buckets=FEW_BUCKETS if wanted.series < MANY_SERIES else BUCKETS,
    )
    found = _emptied(url, described, replace=replace)
    # Made again in seconds: nobody has to wait until a disk would keep it through a loss of power.
    folder = Folder(found.url, found.files, found.described, local=None)
    _write_labels(folder, simulation)  # before all else: from now on the folder is a simulation
    samples = size = 0
    for day, made in simulation.days():
        if not samples:
            labels = {one.series_id: one for one in simulation.series}
            Dictionary(folder).add(labels, made[0].grid.start_ms)
        size += write_day(folder, day, [_block(one) for one in made])
        samples += sum(one.values.size for one in made)
        progress(day, samples)
    _write_labels(folder, simulation)  # with the ends of what had happened
    return Written(samples=samples, bytes=size)


def _emptied(url: str, described: Described, *, replace: bool) -> Folder:
    """Return the folder with nothing in it.

    Raises:
        SandboxError: it holds what may not be removed.
        StoreError: it is of another cluster or zone, or cannot be read.
    """
    try:
        bare = open_folder(url, described)
    except StoreError as exc:  # of another zone, perhaps
        if exc.retryable or not replace:
            raise
        bare = open_folder(url)
    if bare.size(LABELS_FILE) is None:
        if bare.names(PARTS[0]) or bare.names(SERIES):
            raise SandboxError(
                f"{bare.url} holds a history that is not simulated: give another --history"
            )
        return bare
    if not replace:
        raise SandboxError(
            f"{bare.url} holds simulated weeks already: --replace removes them, with their runs"
        )
    for part in PARTS:
        bare.remove_folder(part)
    bare.remove(HISTORY_FILE)
    return open_folder(url, described)


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
