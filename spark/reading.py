"""Reads one bucket's samples and states together, group of rows by group of rows, in order of series.

Both files are sorted by series, so that one pass over each is enough and memory holds a group of
rows of each at most. A series may have samples without a state (it is new), a state without samples
(nothing was measured), or both.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from rules.baseline.packed import SampleColumn
from spark.damage import READ_ERRORS, DamagedError, first_line
from spark.places import Place

SERIES: Final = SampleColumn.SERIES_ID.value  # the same name in all files
END: Final = np.iinfo(np.int64).max


class BrokenRunError(DamagedError):
    """The previous run is damaged: its states cannot be read."""


@dataclass(frozen=True, slots=True)
class Step:
    """Some series in order, with all of their rows."""

    series_id: NDArray[np.int64]  # (n,) without repetition
    samples: pa.Table  # rows of these series, in one chunk; some may have none
    states: pa.Table


class Rows:
    """The rows of one sorted file; a file that is not there has none."""

    def __init__(
        self,
        place: Place,
        name: str | None,
        schema: pa.Schema,
        damage: type[DamagedError] = DamagedError,
    ) -> None:
        """Open it, if it has a name; `damage` is raised, also later, for what cannot be read.

        That proves damage only in a `CheckedPlace`, and only if that has no error.

        Raises:
            DamagedError: it is no Parquet file, or a column is missing or of another type.
        """
        self._name, self._schema, self._damage = name, schema, damage
        is_there = name is not None and place.find(name) is not None
        self._file = self._open(place, str(name)) if is_there else None
        self.count = 0 if self._file is None else int(self._file.metadata.num_rows)
        self._groups = iter(range(0 if self._file is None else self._file.num_row_groups))
        self._rows = schema.empty_table()
        self._ids: NDArray[np.int64] = np.empty(0, np.int64)
        self._last = -1
        self._is_done = False
        self.more()

    @property
    def limit(self) -> int:
        """Return the first series whose rows may not all be read yet."""
        return END if self._is_done else int(self._ids[-1])

    @property
    def is_empty(self) -> bool:
        """Whether nothing is left."""
        return self._is_done and not len(self._ids)

    def more(self) -> None:
        """Read the next group of rows."""
        group = next(self._groups, None)
        if group is None or self._file is None:
            self._is_done = True
            return
        read = self._read(self._file, group)
        ids = _plain(read.column(SERIES))
        if len(ids) and (ids[0] < self._last or (np.diff(ids) < 0).any()):
            raise self._damage(f"{self._name}: its rows are not in order of series")
        self._last = int(ids[-1]) if len(ids) else self._last
        left = self._rows.num_rows > 0
        self._rows = pa.concat_tables([self._rows, read]) if left else read
        self._ids = np.concatenate([self._ids, ids]) if left else ids
        if not len(self._ids):
            self.more()

    def take(self, limit: int) -> pa.Table:
        """Return, and forget, the rows of series before one."""
        rows = int(np.searchsorted(self._ids, limit)) if limit < END else len(self._ids)
        taken = self._rows.slice(0, rows)
        self._rows, self._ids = self._rows.slice(rows), self._ids[rows:]
        if not len(self._ids) and not self._is_done:
            self.more()
        return taken

    def rest(self) -> pa.Table:
        """Return all rows that are left."""
        parts = [self._schema.empty_table()]
        while not self.is_empty:
            parts.append(self.take(END))
        return pa.concat_tables(parts)

    def _open(self, place: Place, name: str) -> pq.ParquetFile:
        try:
            opened = pq.ParquetFile(place.open(name), page_checksum_verification=True)
            schema = opened.schema_arrow
            wrong = [
                field.name for field in self._schema if _type(schema, field.name) != field.type
            ]
        except READ_ERRORS as exc:
            raise self._damage(f"{self._name}: {first_line(exc)}") from exc
        if wrong:
            raise self._damage(f"{self._name}: {', '.join(wrong)} missing or of another type")
        return opened

    def _read(self, file: pq.ParquetFile, group: int) -> pa.Table:
        try:
            read = file.read_row_group(group, columns=self._schema.names, use_threads=False)
            if any(column.null_count for column in read.columns):
                raise self._damage(f"{self._name}: a value is missing")
            return read.select(self._schema.names).cast(self._schema)  # of another nullability
        except READ_ERRORS as exc:
            raise self._damage(f"{self._name}: {first_line(exc)}") from exc


def steps(samples: Rows, states: Rows) -> Iterator[Step]:
    """Yield all series of two files in order.

    Raises:
        DamagedError: one of them turns out to be damaged.
    """
    while not (samples.is_empty and states.is_empty):
        limit = min(samples.limit, states.limit)
        taken = [rows.take(limit).combine_chunks() for rows in (samples, states)]
        ids = np.union1d(*(_plain(rows.column(SERIES)) for rows in taken))
        if len(ids):
            yield Step(ids, taken[0], taken[1])
        elif limit == samples.limit and limit < END:
            samples.more()  # one series fills the group of rows
        elif limit < END:
            states.more()


def _type(schema: pa.Schema, name: str) -> Any:
    return schema.field(name).type if name in schema.names else None


def _plain(column: pa.ChunkedArray) -> NDArray[Any]:
    values: NDArray[Any] = column.to_numpy()
    return values
