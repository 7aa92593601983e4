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
