"""Masks: what was measured while an alert was open is not learnt as usual.

`windows` come from `service.storage.baselines.alert_windows.alert_windows`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date

from pyarrow.fs import FileSystem

from service.storage.baselines.alert_windows import AlertWindow


@dataclass(frozen=True, slots=True, kw_only=True)
class MasksWritten:
    """What was written for a day."""

    alerts: int  # windows that were given
    series: int  # that have at least one
    rows: int


def write_masks(
    windows: Sequence[AlertWindow],
    *,
    files: FileSystem,
    history: str,
    day: date,
    buckets: int,
) -> MasksWritten:
    """Write the masks of a day anew, one file per bucket that has any; equal input, equal bytes.

    An alert covers every series of the dictionary that its labels do not exclude: without a
    partition all partitions of its topic, without a group all groups. Windows of one series that
    touch become one. Times in files are ms since 1970-01-01 UTC.

    Args:
        windows: in any order, cut to the day.
        files: where history is kept.
        history: its folder.
        day: civil.
        buckets: of this history.

    Raises:
        OSError: the folder cannot be read or written.
    """
    raise NotImplementedError
