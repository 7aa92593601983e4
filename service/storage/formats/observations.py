"""The last observation of each partition as named arrays."""

from __future__ import annotations

from typing import Final

from rules.facts.column import Column
from rules.facts.last_observation import LastObservations
from rules.facts.observation_context import ObservationContext
from rules.facts.partitions import Partitions
from rules.facts.unchanged_since import UnchangedSince
from service.storage.formats.arrays import (
    Arrays,
    Bases,
    put_columns,
    put_unchanged,
    read_column,
    read_columns,
    read_unchanged,
)

NAME: Final = "observation"
CONTEXT: Final = "observation.context"  # absent in older checkpoints, as are these columns
OPTIONAL: Final = ("leader", "log_start_offset")


def put_observations(into: Arrays, observations: LastObservations) -> None:
    """Add the last observations and their context."""
    base, context = observations.high_watermark, observations.context
    put_columns(into, NAME, observations, _bases(base))
    put_unchanged(into, CONTEXT, context.high_watermark, base)
    put_columns(into, CONTEXT, context, {"isr_reported_us": observations.observed_at_us})


def read_observations(
    arrays: Arrays, partitions: Partitions, stood: UnchangedSince
) -> LastObservations:
    """Read the last observations; older checkpoints have no context, which `stood` replaces."""
    rows = len(partitions)
    base = read_column(arrays, f"{NAME}.high_watermark", rows)
    columns = read_columns(
        arrays, NAME, LastObservations, rows, bases=_bases(base), optional=OPTIONAL
    )
    context = ObservationContext.of(partitions, stood, Column.absent(rows))
    if f"{CONTEXT}.replicas" in arrays:
        bases = {"isr_reported_us": columns["observed_at_us"]}
        context = ObservationContext(
            high_watermark=read_unchanged(arrays, CONTEXT, rows, base),
            **read_columns(arrays, CONTEXT, ObservationContext, rows, bases=bases),
        )
    return LastObservations(partitions=partitions, context=context, **columns)


def _bases(high_watermark: Column) -> Bases:
    names = ("log_start_offset", "last_stable_offset", "log_end_offset")
    return dict.fromkeys(names, high_watermark)
