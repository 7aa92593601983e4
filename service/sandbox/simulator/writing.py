"""Writes simulated weeks as history, and the truth about them beside it."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, dataclass
from datetime import UTC, date, datetime
from typing import Any, Final

from rules.baseline.layout import DAYS, HOURS, LABELS, MASKS, RUNS, SERIES
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
from service.sandbox.simulator.fleet import Pipeline
from service.sandbox.simulator.occasions import SHOWS_IN, Occasion
from service.sandbox.simulator.simulation import Samples, Simulation

LABELS_FILE: Final = "simulation/labels.json"  # below the folder of history
FORMAT: Final = 1
PARTS: Final = (
    DAYS,
    HOURS,
    SERIES,
    MASKS,
    LABELS,
    RUNS,
    ASIDE,
)  # removed where they are of a simulation
MANY_SERIES: Final = 5000
FEW_BUCKETS: Final = 8  # enough for fewer series


def labels_of(simulation: Simulation) -> Mapping[str, Any]:
    """Return what was simulated, who is in it, and what happened when; after its days were made.

    Times are ms since 1970-01-01 UTC. `over_ms` is when the backlog of an incident had been read,
    None if that was not within the weeks. What no series shows is left out.
    """
    request = simulation.request
    over = simulation.over_ms
    occasions = sorted(
        [*simulation.occasions, *simulation.outages],
        key=lambda occasion: (
            occasion.start_ms,
            occasion.kind,
            -1 if occasion.pipeline is None else occasion.pipeline,
        ),
    )
    pipelines = {pipeline.index: pipeline for pipeline in simulation.pipelines}
    return {
        "format": FORMAT,
        "cluster": request.cluster,
        "seed": request.seed,
        "series": request.series,
        "first_day": request.days[0].isoformat(),
        "last_day": request.days[-1].isoformat(),
        "step_ms": request.step_seconds * 1000,
        "zones": list(request.zones),
        "clock_changes": [
            {"zone": zone, "at_ms": at, "at": _shown(at)} for zone, at in simulation.clock_changes()
        ],
        "pipelines": [_pipeline(pipeline) for pipeline in simulation.pipelines],
        "occasions": [
            _occasion(occasion, pipelines, over)
            for occasion in occasions
            if simulation.is_visible(occasion)
        ],
    }


def _pipeline(pipeline: Pipeline) -> dict[str, Any]:
    fields = asdict(pipeline)
    return {"topic": fields.pop("topic"), "group": fields.pop("group"), **fields}


def _occasion(
    occasion: Occasion, pipelines: Mapping[int, Pipeline], over: Mapping[Occasion, int]
) -> dict[str, Any]:
    pipeline = None if occasion.pipeline is None else pipelines[occasion.pipeline]
    return {
        "kind": occasion.kind,
        "is_incident": occasion.is_incident,
        "topic": None if pipeline is None else pipeline.topic,
        "group": None if pipeline is None else pipeline.group,
        "partition": occasion.partition,
        "start_ms": occasion.start_ms,
        "end_ms": occasion.end_ms,
        "over_ms": over.get(occasion),
        "start": _shown(occasion.start_ms),
        "strength": occasion.strength,
        "shows_in": list(SHOWS_IN[occasion.kind]),
    }


def _shown(at_ms: int) -> str:
    return datetime.fromtimestamp(at_ms / 1000, UTC).isoformat()


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
