"""How objectives of time lag were kept, in a checkpoint; older ones have none."""

from __future__ import annotations

from typing import Final

import numpy as np

from rules.facts.lag_objectives import MINUTES, ObjectiveMemory
from service.storage.formats.arrays import Arrays, read_text, text_of
from service.storage.formats.values import read

OBJECTIVES: Final = "objectives"


def put_objectives(into: Arrays, memory: ObjectiveMemory) -> None:
    """Add how objectives of time lag were kept; nothing where there are none."""
    if len(memory):
        rows = zip(memory.group_ids, memory.limit_ms, memory.share, strict=True)
        into[OBJECTIVES] = text_of([memory.newest, [list(row) for row in rows]])
        into[f"{OBJECTIVES}.late"] = memory.late_ms
        into[f"{OBJECTIVES}.measured"] = memory.measured_ms


def objectives_of(arrays: Arrays) -> ObjectiveMemory:
    """Read them.

    Raises:
        ValueError: the minutes are not those of the groups.
    """
    if OBJECTIVES not in arrays:
        return ObjectiveMemory.none()
    newest, rows = read_text(arrays[OBJECTIVES])
    objectives = read(tuple[tuple[str, int, float], ...], rows)
    late, measured = (
        arrays[f"{OBJECTIVES}.{name}"].astype(np.int32) for name in ("late", "measured")
    )
    if not late.shape == measured.shape == (len(objectives), MINUTES):
        raise ValueError("the minutes of objectives are not those of their groups")
    return ObjectiveMemory(
        group_ids=tuple(name for name, _, _ in objectives),
        limit_ms=tuple(limit for _, limit, _ in objectives),
        share=tuple(share for _, _, share in objectives),
        newest=int(newest),
        late_ms=late,
        measured_ms=measured,
    )
