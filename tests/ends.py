"""Observes where partitions end, remembered one after the other."""

from __future__ import annotations

from rules.facts.last_observation import microseconds
from rules.facts.snapshot import Snapshot
from rules.time_lag import EndHistory, advance
from rules.time_lag.thinning import Bounds
from tests.factories import at

FEW = Bounds(
    observations=2, fine_blocks=4
)  # so that all is packed and thinned within some observations


def remembered(first: Snapshot, *later: tuple[float, Snapshot]) -> EndHistory:
    """Return what is remembered of an observation of noon and of others, so many seconds after it."""
    history = observed(None, 0, first)
    for seconds, seen in later:
        history = observed(history, seconds, seen)
    return history


def observed(
    before: EndHistory | None, seconds: float, seen: Snapshot, bounds: Bounds = FEW
) -> EndHistory:
    """Return what is remembered after an observation so many seconds after noon."""
    return advance(
        before,
        cluster_id=seen.cluster_id,
        partitions=seen.partitions,
        offsets=seen.offsets,
        now_us=microseconds(at(seconds)),
        bounds=bounds,
    )
