"""One line of Spark's long texts."""

from __future__ import annotations

import pytest

from spark.causes import why

TASK = """An error occurred while calling o57.collectToPython.
: org.apache.spark.SparkException: Job aborted due to stage failure: Task 0 in stage 0.0 failed 1 times
org.apache.spark.api.python.PythonException: Traceback (most recent call last):
  File "spark/bucket.py", line 1, in make_bucket
OSError: [Errno 28] No space left on device
\tat org.apache.spark.api.python.BasePythonRunner
"""
START = """An error occurred while calling None.org.apache.spark.sql.classic.SparkSession.
: java.lang.IllegalStateException: Cannot call methods on a stopped SparkContext.
\tat org.apache.spark.SparkContext
"""


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (TASK, "OSError: [Errno 28] No space left on device"),
        (START, "IllegalStateException: Cannot call methods on a stopped SparkContext."),
        ("Connection refused", "Connection refused"),
        ("", "RuntimeError"),
    ],
)
def test_the_cause_is_told_in_one_line(text: str, told: str) -> None:
    assert why(RuntimeError(text)) == told
