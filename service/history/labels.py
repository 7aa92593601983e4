"""Windows that imported labels name as incidents, a file per civil day; baseline runs do not learn from them."""

from __future__ import annotations

from datetime import date
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from rules.baseline.layout import labels_file
from rules.errors import StoreError
from service.history.folder import Folder
from spark.damage import DamagedError
from spark.schemas import MASKS

NONE: Final = np.empty((0, 3), np.int64)

Windows = NDArray[np.int64]  # shape (n, 3): series, begin, end (excluded), ms since 1970-01-01 UTC


def read_windows(folder: Folder, day: date) -> Windows:
    """Return the windows of a day, none if no import had labels of it.

    Raises:
        StoreError: they cannot be read; a damaged file is named, with what to do.
    """
    path = labels_file(day)
    if folder.size(path) is None:
        return NONE
    try:
        return folder.read(path, windows_of)
    except DamagedError as exc:
        raise StoreError(
            f"history at {folder.url}: the labels in {path} are damaged ({exc}): remove the file, and import "
            "them again",
            retryable=False,
        ) from exc


def add_windows(folder: Folder, day: date, new: Windows) -> int:
    """Add windows to those of a day, and return how many are new; the file is replaced at once.

    Raises:
        StoreError: it cannot be read or written.
    """
    before = read_windows(folder, day)
    every = np.unique(np.concatenate([before, new]), axis=0)
    added = len(every) - len(before)
    if added:
        table = pa.table([pa.array(column) for column in every.T.copy()], schema=MASKS)
        folder.write(labels_file(day), lambda stream: _write(stream, table))
    return added


def _write(stream: Any, table: Any) -> None:
    pq.write_table(table, stream, compression="zstd", write_page_checksum=True)


def windows_of(source: Any) -> Windows:
    """Return the windows in a file; raises one of `spark.damage.READ_ERRORS`."""
    with pq.ParquetFile(source, page_checksum_verification=True) as file:
        table = file.read(columns=MASKS.names, use_threads=False)
    if table.schema.types != MASKS.types or any(column.null_count for column in table.columns):
        raise ValueError("its columns are not those of windows")
    return np.stack([column.to_numpy() for column in table.columns], axis=1).astype(np.int64)
