"""Windows of imported labels: added once, masked for the baseline run, and a damaged file is named."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from rules.baseline.layout import labels_file, masks_folder
from rules.errors import StoreError
from service.history.folder import Described, open_folder
from service.history.labels import add_windows, read_windows
from service.jobs.baseline_run.masks import write_masks
from spark.places import Place

pytestmark = pytest.mark.integration

DAY = date(2026, 11, 20)
WINDOWS = np.array([[6, 1000, 2000], [7, 1000, 2000]], np.int64)


def test_windows_are_added_once_and_masked(tmp_path: Path) -> None:
    folder = open_folder(str(tmp_path), Described(cluster="c", buckets=2))
    assert add_windows(folder, DAY, WINDOWS[:1]) == 1
    assert add_windows(folder, DAY, WINDOWS) == 1
    assert add_windows(folder, DAY, WINDOWS) == 0
    place = Place(str(tmp_path))
    touching = np.array([[6, 2000, 3000]], np.int64)
    labelled = np.concatenate([read_windows(folder, DAY), touching])
    write_masks([], files=place.files, history=place.root, day=DAY, buckets=2, labelled=labelled)
    masks = pq.read_table(tmp_path / masks_folder(DAY) / "bucket=000.parquet").to_pylist()
    assert masks == [{"series_id": 6, "start_ms": 1000, "end_ms": 3000}]


@pytest.mark.parametrize("content", [b"", b"PAR1 and nothing more"])
def test_a_damaged_file_is_named_with_what_to_do(tmp_path: Path, content: bytes) -> None:
    folder = open_folder(str(tmp_path), Described(cluster="c", buckets=2))
    add_windows(folder, DAY, WINDOWS)
    (tmp_path / labels_file(DAY)).write_bytes(content)
    with pytest.raises(StoreError, match=r"labels/day=2026-11-20/windows.parquet are damaged"):
        read_windows(folder, DAY)
    with pytest.raises(StoreError, match="remove the file, and import them again"):
        add_windows(folder, DAY, WINDOWS)
