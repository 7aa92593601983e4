"""Masks: samples taken while an alert was open are excluded from baselines.

`windows` come from `service.storage.baselines.alert_windows.alert_windows`. An alert that names
neither a topic nor a group masks nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray
from pyarrow.fs import FileSystem, FileType

from rules.baseline.layout import bucket_file, masks_folder
from rules.baseline.packed import ROW_GROUP_ROWS, MaskColumn, bucket_of
from rules.facts.times import EPOCH
from service.storage.baselines.alert_windows import AlertWindow
from service.storage.baselines.series_labels import NONE, SeriesLabels, read_labels

MILLISECOND: Final = timedelta(milliseconds=1)
SCHEMA: Final = pa.schema([pa.field(name.value, pa.int64(), nullable=False) for name in MaskColumn])
NO_ROWS: Final = np.empty((0, 3), np.int64)
PART: Final = ".part"  # a file that is not whole yet

Place = tuple[str | None, str | None, str | None]  # topic, partition, group


@dataclass(frozen=True, slots=True, kw_only=True)
class MasksWritten:
    """The masks that were written for a day."""

    alerts: int  # windows that were given
    series: int  # that have at least one
    rows: int


def write_masks(  # noqa: PLR0913 - each by its name
    windows: Sequence[AlertWindow],
    *,
    files: FileSystem,
    history: str,
    day: date,
    buckets: int,
    labelled: NDArray[np.int64] = NO_ROWS,
) -> MasksWritten:
    """Write the masks of a day anew, one file per bucket that has any; equal input, equal bytes.

    An alert covers every series of the dictionary that its labels do not exclude: without a
    partition all partitions of its topic, without a group all groups. A series of a whole topic is
    covered by an alert of one partition. Windows of one series that touch become one. Times in files
    are ms since 1970-01-01 UTC.

    Args:
        windows: in any order, cut to the day.
        files: where history is kept.
        history: its folder.
        day: civil.
        buckets: of this history.
        labelled: windows that imported labels name: series, begin, end, as in files.

    Raises:
        OSError: the folder cannot be read or written.
    """
    rows = _merge(np.concatenate([labelled, _rows(windows, files, history)]))
    folder = f"{history.rstrip('/')}/{masks_folder(day)}"
    if files.get_file_info(folder).type is not FileType.NotFound:
        files.delete_dir_contents(folder)
    files.create_dir(folder, recursive=True)
    places = bucket_of(rows[:, 0], buckets)
    for bucket in np.unique(places):
        _write(files, f"{folder}/{bucket_file(int(bucket))}", rows[places == bucket])
    return MasksWritten(alerts=len(windows), series=np.unique(rows[:, 0]).size, rows=len(rows))


def _rows(windows: Sequence[AlertWindow], files: FileSystem, history: str) -> NDArray[np.int64]:
    """Return series, begin and end of what the windows cover."""
    by_place: dict[Place, list[tuple[int, int]]] = {}
    for window in windows:
        place = _place(window.labels)
        if place[0] is not None or place[2] is not None:
            by_place.setdefault(place, []).append(_milliseconds(window))
    if not by_place:
        return NO_ROWS
    labels = read_labels(files, history)
    parts = [_cover(labels, place, spans) for place, spans in by_place.items()]
    return np.concatenate(parts)


def _place(labels: Mapping[str, str]) -> Place:
    return labels.get("topic"), labels.get("partition"), labels.get("group")


def _milliseconds(window: AlertWindow) -> tuple[int, int]:
    """Return begin, rounded down, and end, rounded up."""
    return (window.begin - EPOCH) // MILLISECOND, -((EPOCH - window.end) // MILLISECOND)


def _cover(
    labels: SeriesLabels, place: Place, spans: Iterable[tuple[int, int]]
) -> NDArray[np.int64]:
    topic, partition, group = place
    is_covered = np.ones(labels.series_id.size, np.bool_)
    if topic is not None:
        is_covered &= labels.topic.numbers == labels.topic.number(topic)
    if partition is not None:
        number = int(partition) if partition.isdecimal() else NONE - 1
        is_covered &= (labels.partition == number) | (labels.partition == NONE)
    if group is not None:
        is_covered &= labels.group.numbers == labels.group.number(group)
    series = labels.series_id[is_covered]
    parts = [
        np.column_stack([series, np.full_like(series, begin), np.full_like(series, end)])
        for begin, end in spans
    ]
    return np.concatenate(parts)


def _merge(rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return windows sorted by series and begin; those of one series that touch are one."""
    merged: list[tuple[int, int, int]] = []
    for series, begin, end in rows[np.lexsort((rows[:, 2], rows[:, 1], rows[:, 0]))].tolist():
        if begin >= end:
            continue
        if merged and merged[-1][0] == series and begin <= merged[-1][2]:
            merged[-1] = (series, merged[-1][1], max(end, merged[-1][2]))
        else:
            merged.append((series, begin, end))
    return np.array(merged, np.int64).reshape(-1, 3)


def _write(files: FileSystem, path: str, rows: NDArray[np.int64]) -> None:
    columns = [pa.array(np.ascontiguousarray(column)) for column in rows.T]
    table = pa.Table.from_arrays(columns, schema=SCHEMA)
    with files.open_output_stream(path + PART) as out:
        pq.write_table(table, out, compression="zstd", row_group_size=ROW_GROUP_ROWS)
    files.move(path + PART, path)
