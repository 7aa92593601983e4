"""What keeps Spark from being started is told in a line."""

from __future__ import annotations

from pathlib import Path

import pytest

from rules.errors import BaselineRunError
from service.jobs.baseline_run.spark_process import SparkOrder, run_job


@pytest.mark.parametrize(
    ("master", "scratch"),
    [("local[1]", "file/scratch"), ("spark://127.0.0.1:1", "file/scratch"), ("local[1]", "file")],
)
def test_a_disk_that_cannot_be_written_is_told(tmp_path: Path, master: str, scratch: str) -> None:
    (tmp_path / "file").write_bytes(b"")
    order = SparkOrder(
        master=master,
        conf={},
        arguments=(),
        scratch=tmp_path / scratch,
        timeout_seconds=60,
    )
    with pytest.raises(BaselineRunError, match=r"Spark cannot be started: .*file"):
        list(run_job(order, {"JAVA_HOME": str(tmp_path)}))
