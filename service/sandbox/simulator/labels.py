"""The truth about simulated weeks, as it is written beside them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any, Final

from service.sandbox.simulator.fleet import Pipeline
from service.sandbox.simulator.occasions import SHOWS_IN, Occasion
from service.sandbox.simulator.simulation import Simulation

LABELS_FILE: Final = "simulation/labels.json"  # below the folder of history
FORMAT: Final = 1


def labels_of(simulation: Simulation) -> Mapping[str, Any]:
    """Return what was simulated, who is in it, and what happened when; after its days were made.

    Times are ms since 1970-01-01 UTC. `over_ms` is when the backlog of an incident had been read,
    None if that was not within the weeks. What no series shows is left out.
    """
    wanted = simulation.requests
    over = simulation.over_ms
    occasions = sorted(
        [*simulation.occasions, *simulation.outages],
        key=lambda one: (one.start_ms, one.kind, -1 if one.pipeline is None else one.pipeline),
    )
    pipelines = {pipeline.index: pipeline for pipeline in simulation.pipelines}
    return {
        "format": FORMAT,
        "cluster": wanted.cluster,
        "seed": wanted.seed,
        "series": wanted.series,
        "first_day": wanted.days[0].isoformat(),
        "last_day": wanted.days[-1].isoformat(),
        "step_ms": wanted.step_seconds * 1000,
        "zones": list(wanted.zones),
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


def _pipeline(one: Pipeline) -> dict[str, Any]:
    told = asdict(one)
    return {"topic": told.pop("topic"), "group": told.pop("group"), **told}


def _occasion(
    one: Occasion, pipelines: Mapping[int, Pipeline], over: Mapping[Occasion, int]
) -> dict[str, Any]:
    pipeline = None if one.pipeline is None else pipelines[one.pipeline]
    return {
        "kind": one.kind,
        "is_incident": one.is_incident,
        "topic": None if pipeline is None else pipeline.topic,
        "group": None if pipeline is None else pipeline.group,
        "partition": one.partition,
        "start_ms": one.start_ms,
        "end_ms": one.end_ms,
        "over_ms": over.get(one),
        "start": _shown(one.start_ms),
        "strength": one.strength,
        "shows_in": list(SHOWS_IN[one.kind]),
    }


def _shown(at_ms: int) -> str:
    return datetime.fromtimestamp(at_ms / 1000, UTC).isoformat()
