"""What our own settings of Spark do in the processes of tasks."""

from __future__ import annotations

import os

from pyspark.sql import SparkSession

from spark.session import DEFAULTS


def test_the_processes_of_tasks_keep_the_memory_of_their_arrays(session: SparkSession) -> None:
    names = ("MALLOC_MMAP_THRESHOLD_", "MALLOC_TRIM_THRESHOLD_")
    one = session.sparkContext.parallelize([0], 1)
    (found,) = one.map(lambda _: [os.environ.get(name) for name in names]).collect()
    assert found == [DEFAULTS[f"spark.executorEnv.{name}"] for name in names]
