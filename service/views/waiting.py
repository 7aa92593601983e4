"""What a group waits for on a partition: a person's first question about a lag that does not move."""

from __future__ import annotations

from enum import StrEnum

import numpy as np

from rules.facts.column import Int64s
from rules.facts.snapshot import Snapshot


class WaitsFor(StrEnum):
    """Why a group has not read further."""

    NOTHING_TO_READ = "nothing_to_read"  # it has read everything
    LAG = "lag"  # nothing holds it back: it has not come that far
    OPEN_TRANSACTION = "open_transaction"  # a read_committed reader gets nothing before it ends
    UNKNOWN = "unknown"  # an end was not read


def waits_for(snapshot: Snapshot, places: Int64s) -> list[WaitsFor]:
    """Return what the group of each commit waits for.

    A group that is above the last stable offset reads uncommitted records, and no transaction holds it
    back. A small lag that may consist of markers alone counts as lag until the log was read.
    """
    commits, offsets = snapshot.commits, snapshot.offsets
    committed = commits.read_committed_lag(offsets).take(places)
    uncommitted = commits.read_uncommitted_lag(offsets).take(places)
    span = offsets.open_span.take(commits.row[places])
    nothing = commits.nothing_to_read.take(places)
    has_read_all = committed.valid & (
        (committed.values == 0) | (nothing.valid & (nothing.values == 1))
    )
    is_above = ~committed.valid & uncommitted.valid & span.valid
    codes = np.select(
        [
            has_read_all & span.valid & (span.values > 0),
            has_read_all & span.valid,
            committed.valid & ~has_read_all,
            is_above & (uncommitted.values > 0),
            is_above,
        ],
        [2, 0, 1, 1, 0],
        3,
    )
    members = tuple(WaitsFor)
    return [members[code] for code in codes.tolist()]
