"""States of the large cluster of `large` in which little is healthy, each as a function of the round's number."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final

import numpy as np

from rules.facts.column import Column, Ragged
from rules.facts.snapshot import Snapshot
from tests.bench.large import INTERVAL_SECONDS, PLACED, ROWS, ends, moving, stuck
from tests.factories import at

SHRUNK: Final = replace(PLACED, isr=Ragged.of([(1,)] * ROWS))
BEHIND: Final = 100  # offsets from the last stable offset to the high watermark


def healthy(number: int) -> Snapshot:
    """Return a round in which everything moves, and all groups are a little behind."""
    return moving(number)


def lagging(number: int, lag: int) -> Snapshot:
    """Return a round in which nothing moves, and every commit is so many offsets before the end."""
    seen = moving(0)
    row = seen.commits.row
    answer = Column.known(np.zeros(len(row), np.int64)) if lag else Column.absent(len(row))
    return replace(
        seen,
        taken_at=at(INTERVAL_SECONDS * number),
        commits=replace(seen.commits, committed_offset=ends(0)[row] - lag, nothing_to_read=answer),
    )


def broken(number: int) -> Snapshot:
    """Return a round in which each partition has three findings: a replica set of one, nothing moves on."""
    seen = stuck(number, since=0, rows=ROWS)
    stable = seen.offsets.high_watermark.values - BEHIND
    return replace(
        seen,
        partitions=SHRUNK,
        offsets=replace(seen.offsets, last_stable_offset=Column.known(stable)),
    )


def rebalancing(number: int) -> Snapshot:
    """Return a round in which all groups move on, and rebalance."""
    seen = moving(number)
    groups = tuple(replace(one, state="PreparingRebalance") for one in seen.groups)
    return replace(seen, groups=groups)


STATES: Final[Mapping[str, Callable[[int], Snapshot]]] = {
    "healthy": healthy,
    "lag 0 everywhere": lambda number: lagging(number, 0),
    "lag 2 everywhere": lambda number: lagging(number, 2),
    "lag 10,000 everywhere": lambda number: lagging(number, 10_000),
    "30,000 findings": broken,
    "all groups rebalance": rebalancing,
}
