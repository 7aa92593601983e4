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
    put_column,
    put_lists,
    put_unchanged,
    read_column,
    read_lists,
    read_unchanged,
)

LEADER: Final = "observation.leader"
LOG_START: Final = "observation.log_start_offset"
CONTEXT: Final = "observation.context"  # absent in older checkpoints, as are those two
CHANGED: Final = ("leaderless_epoch", "succeeded_us", "was_in_sync")
UNCLEAN: Final = "unclean_election_enabled"


def put_observations(into: Arrays, observations: LastObservations) -> None:
    """Add the last observations and their context."""
    base = observations.high_watermark
    put_column(into, LEADER, observations.leader)
    put_column(into, "observation.leader_epoch", observations.leader_epoch)
    put_column(into, LOG_START, observations.log_start_offset, base)
    put_column(into, "observation.high_watermark", base)
    put_column(into, "observation.last_stable_offset", observations.last_stable_offset, base)
    put_column(into, "observation.log_end_offset", observations.log_end_offset, base)
    put_column(into, "observation.observed_at_us", observations.observed_at_us)
    put_lists(into, "observation.isr", observations.isr)
    put_lists(into, "observation.elr", observations.elr)
    context = observations.context
    put_unchanged(into, CONTEXT, context.high_watermark, base)
    put_lists(into, f"{CONTEXT}.replicas", context.replicas)
    put_column(into, f"{CONTEXT}.{UNCLEAN}", context.unclean_election_enabled)
    put_column(
        into, f"{CONTEXT}.isr_reported_us", context.isr_reported_us, observations.observed_at_us
    )
    for name in CHANGED:
        put_column(into, f"{CONTEXT}.{name}", getattr(context, name))
    put_lists(into, f"{CONTEXT}.electable", context.electable)


def _context(
    arrays: Arrays, partitions: Partitions, base: Column, observed_at: Column
) -> ObservationContext:
    rows = len(partitions)
    return ObservationContext(
        high_watermark=read_unchanged(arrays, CONTEXT, rows, base),
        replicas=read_lists(arrays, f"{CONTEXT}.replicas", rows),
        unclean_election_enabled=read_column(arrays, f"{CONTEXT}.{UNCLEAN}", rows),
        isr_reported_us=read_column(arrays, f"{CONTEXT}.isr_reported_us", rows, observed_at),
        electable=read_lists(arrays, f"{CONTEXT}.electable", rows),
        **{name: read_column(arrays, f"{CONTEXT}.{name}", rows) for name in CHANGED},
    )


def read_observations(
    arrays: Arrays, partitions: Partitions, stood: UnchangedSince
) -> LastObservations:
    """Read the last observations; older checkpoints have no context, which `stood` replaces."""
    rows = len(partitions)
    base = read_column(arrays, "observation.high_watermark", rows)
    observed_at = read_column(arrays, "observation.observed_at_us", rows)
    return LastObservations(
        partitions=partitions,
        leader=read_column(arrays, LEADER, rows) if LEADER in arrays else Column.absent(rows),
        leader_epoch=read_column(arrays, "observation.leader_epoch", rows),
        log_start_offset=read_column(arrays, LOG_START, rows, base)
        if LOG_START in arrays
        else Column.absent(rows),
        last_stable_offset=read_column(arrays, "observation.last_stable_offset", rows, base),
        high_watermark=base,
        log_end_offset=read_column(arrays, "observation.log_end_offset", rows, base),
        isr=read_lists(arrays, "observation.isr", rows),
        elr=read_lists(arrays, "observation.elr", rows),
        observed_at_us=observed_at,
        context=_context(arrays, partitions, base, observed_at)
        if f"{CONTEXT}.replicas" in arrays
        else ObservationContext.of(partitions, stood, Column.absent(rows)),
    )
