"""A store that does not answer once, for tests of what reads Parquet files again."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest


def fail_once(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Let the first read of a row group fail; return which it was, when it has."""
    read, failed = pq.ParquetFile.read_row_group, list[int]()

    def flaky(file: pq.ParquetFile, group: int, **options: Any) -> pa.Table:
        if not failed:
            failed.append(group)
            raise OSError("the store does not answer")
        return read(file, group, **options)

    monkeypatch.setattr(pq.ParquetFile, "read_row_group", flaky)
    return failed
