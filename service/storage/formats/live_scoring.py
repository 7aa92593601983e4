"""What live scoring has open, in a checkpoint; absent in those of older versions.

A part that cannot be read means that scoring begins anew: nothing is open, and nothing opens for half an
hour. It must not cost a start the memory of lost records.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from rules.baseline.judging import Memory
from rules.baseline.live_series import SeriesMemory
from rules.baseline.open_series import OpenSeries, ScoringMemory
from rules.baseline.scores import HOUR_MS
from service.storage.formats.arrays import Arrays, ints_of

SCORING: Final = "scoring"
_OPEN: Final = ("series_id", "opened_ms", "known_ms", "many_ms")


def put_scoring(into: Arrays, memory: ScoringMemory | None) -> None:
    """Add what is open; nothing where nothing is."""
    if memory is None or not len(memory.open):
        return
    for name in _OPEN:
        into[f"{SCORING}.{name}"] = getattr(memory.open, name)
    into[f"{SCORING}.is_slow"] = memory.open.is_slow
    into[f"{SCORING}.next_ms"] = np.array([memory.series.next_ms], np.int64)
    hour = memory.series.memory
    is_open = hour.is_open
    into[f"{SCORING}.hour.series_id"] = memory.series.series_id[is_open]
    into[f"{SCORING}.hour.residual"] = hour.residual[is_open]
    into[f"{SCORING}.hour.marks"] = hour.marks[is_open]
    into[f"{SCORING}.hour.expected"] = hour.expected[is_open]


def read_scoring(arrays: Arrays) -> ScoringMemory | None:
    """Return what was open; None where nothing is stored, or what is stored is not whole."""
    if f"{SCORING}.series_id" not in arrays:
        return None
    try:
        return _scoring(arrays)
    except (ValueError, KeyError, IndexError, TypeError):
        return None  # scoring begins anew


def _scoring(arrays: Arrays) -> ScoringMemory:
    ids = ints_of(arrays[f"{SCORING}.series_id"])
    times = {name: ints_of(arrays[f"{SCORING}.{name}"], len(ids)) for name in _OPEN[1:]}
    is_slow = arrays[f"{SCORING}.is_slow"].astype(np.bool_)
    if is_slow.shape != ids.shape or (np.diff(ids) <= 0).any():
        raise ValueError("the open series are not in order")
    with_hour = ints_of(arrays[f"{SCORING}.hour.series_id"])
    memory = _hour(arrays, len(with_hour))
    if not np.isin(with_hour, ids).all():
        raise ValueError("an hour is of a series that is not open")
    (next_ms,) = ints_of(arrays[f"{SCORING}.next_ms"]).tolist()
    return ScoringMemory(
        series=SeriesMemory(
            series_id=with_hour,
            memory=memory,
            without_baseline=np.setdiff1d(ids, with_hour),
            next_ms=next_ms,
        ),
        open=OpenSeries(series_id=ids, is_slow=is_slow, **times),
    )


def _hour(arrays: Arrays, series: int) -> Memory:
    residual = arrays[f"{SCORING}.hour.residual"].astype(np.float32)
    marks = arrays[f"{SCORING}.hour.marks"].astype(np.uint8)
    expected = arrays[f"{SCORING}.hour.expected"].astype(np.float32)
    if residual.ndim != 2 or residual.shape != marks.shape or not residual.shape[1]:
        raise ValueError("the hours of open series have no shape")
    if not (len(residual),) == expected.shape == (series,) or HOUR_MS % residual.shape[1]:
        raise ValueError("the hours are not those of their series")
    return Memory(
        residual=residual, marks=marks, is_open=np.ones(series, np.bool_), expected=expected
    )
