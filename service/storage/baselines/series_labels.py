"""Labels of series, from the parts of the dictionary: about 25 bytes per series in memory.

Each name is stored once, and every series has its number; most names are those of a few topics and
groups. Names are stored as the database can hold them. A part that is damaged is left out and
reported; its series then have no labels.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray
from pyarrow.fs import FileSelector, FileSystem, FileType

from rules.baseline.layout import SERIES
from rules.baseline.packed import SeriesColumn
from service.storage.findings.findings import storable_text
from spark.damage import DamagedError, read_proven

NONE: Final = -1  # the number of an absent value
TEXTS: Final = (
    SeriesColumn.METRIC,
    SeriesColumn.TOPIC,
    SeriesColumn.GROUP,
    SeriesColumn.CLIENT_ID,
)
S = TypeVar("S", bound=np.generic)
READ: Final = [
    SeriesColumn.SERIES_ID.value,
    SeriesColumn.PARTITION.value,
    *(t.value for t in TEXTS),
]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Names:
    """Texts by their numbers, as one block of UTF-8."""

    numbers: NDArray[np.int32]  # per series; NONE where there is none
    texts: tuple[str, ...]

    def number(self, text: str) -> int:
        """Return the number of a text; NONE - 1, which no series has, if there is no such text."""
        return self.texts.index(text) if text in self.texts else NONE - 1


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SeriesLabels:
    """The labels of all series, in the order of their ids."""

    series_id: NDArray[np.int64]  # rising, each once
    partition: NDArray[np.int32]  # NONE where there is none
    metric: Names
    topic: Names
    group: Names
    client: Names
    unreadable: tuple[str, ...]  # parts of the dictionary that are damaged

    def rows_of(self, series_id: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the row of each series, NONE for one that the dictionary does not have."""
        if not self.series_id.size:
            return np.full(series_id.size, NONE, np.int64)
        rows = np.searchsorted(self.series_id, series_id).clip(max=self.series_id.size - 1)
        return np.where(self.series_id[rows] == series_id, rows, NONE)


def read_labels(files: FileSystem, history: str) -> SeriesLabels:
    """Read the dictionary; if a series is in several parts, the first part holds.

    Raises:
        OSError: the folder cannot be listed, or a part cannot be read now.
    """
    parts, unreadable = _Parts(), []
    for path in _part_paths(files, history):
        try:
            read_proven(files, path, parts.add_from)
        except DamagedError:
            unreadable.append(path.rpartition("/")[2])
    return parts.join(tuple(unreadable))


def _part_paths(files: FileSystem, history: str) -> Iterator[str]:
    folder = FileSelector(f"{history.rstrip('/')}/{SERIES}", allow_not_found=True)
    entries = [entry for entry in files.get_file_info(folder) if entry.type is FileType.File]
    parts = (entry for entry in entries if entry.extension == "parquet")
    # A file whose name begins with a dot is still being written.
    return iter(sorted(part.path for part in parts if not part.base_name.startswith(".")))


class _Parts:
    """Merges parts one at a time, so that the texts of only one part are in memory."""

    def __init__(self) -> None:
        self._ids: list[NDArray[np.int64]] = []
        self._partitions: list[NDArray[np.int32]] = []
        self._numbers: dict[str, list[NDArray[np.int32]]] = {name: [] for name in TEXTS}
        self._texts: dict[str, dict[str, int]] = {name: {} for name in TEXTS}

    def add_from(self, source: Any) -> None:
        """Add a part as a whole, or raise before anything of it is added."""
        with pq.ParquetFile(source) as opened:
            part = opened.read(columns=READ)
        if SeriesColumn.CLIENT_ID not in part.column_names:  # an earlier version wrote it
            nothing = pa.chunked_array([pa.nulls(len(part), pa.string())])
            part = part.append_column(SeriesColumn.CLIENT_ID, nothing)
        ids = part.column(SeriesColumn.SERIES_ID).to_numpy()
        partitions = pc.fill_null(part.column(SeriesColumn.PARTITION).cast(pa.int32()), NONE)
        numbers = {name: self._number(name, part.column(name)) for name in TEXTS}
        self._ids.append(ids)
        self._partitions.append(partitions.to_numpy())
        for name, column_numbers in numbers.items():
            self._numbers[name].append(column_numbers)

    def _number(self, name: str, column: pa.ChunkedArray) -> NDArray[np.int32]:
        coded = column.combine_chunks().dictionary_encode()
        number_of = self._texts[name]
        texts = map(storable_text, coded.dictionary.to_pylist())
        ours = [number_of.setdefault(text, len(number_of)) for text in texts]
        translation = np.array([*ours, NONE], np.int32)  # the last one means null
        numbers: NDArray[np.int32] = translation[pc.fill_null(coded.indices, NONE).to_numpy()]
        return numbers

    def join(self, unreadable: tuple[str, ...]) -> SeriesLabels:
        """Return the labels of all series in the order of their ids."""
        ids, rows = np.unique(_whole(self._ids, np.int64), return_index=True)
        names = {
            name: Names(
                numbers=_whole(self._numbers[name], np.int32)[rows], texts=tuple(self._texts[name])
            )
            for name in TEXTS
        }
        return SeriesLabels(
            series_id=ids,
            partition=_whole(self._partitions, np.int32)[rows],
            metric=names[SeriesColumn.METRIC],
            topic=names[SeriesColumn.TOPIC],
            group=names[SeriesColumn.GROUP],
            client=names[SeriesColumn.CLIENT_ID],
            unreadable=unreadable,
        )


def _whole(parts: list[NDArray[S]], kind: type[S]) -> NDArray[S]:
    return np.concatenate([np.empty(0, kind), *parts])
