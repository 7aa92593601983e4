"""One line of Spark's long texts."""

from __future__ import annotations

import pytest

from spark.causes import why, with_word_of_java

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


GATEWAY = "[JAVA_GATEWAY_EXITED] Java gateway process exited before sending its port number."
JAVA = """Picked up JAVA_TOOL_OPTIONS: -Djava.io.tmpdir=/tmp/x
WARNING: Using incubator modules: jdk.incubator.vector
26/11/22 19:20:22 WARN Utils: Set SPARK_LOCAL_IP if you need to bind to another address
Exception in thread "main" org.apache.spark.SparkException: Master must start with spark, k8s, or local
\tat org.apache.spark.deploy.SparkSubmit.error(SparkSubmit.scala:1068)
"""
NO_JAVA = "bin/spark-class: line 71: /opt/none/bin/java: No such file or directory\n"


def test_what_made_spark_give_up_is_told() -> None:
    told = "IllegalStateException: Cannot call methods on a stopped SparkContext."
    written = (
        'Setting default log level to "WARN".\n'
        "ERROR StandaloneSchedulerBackend: Application has been killed. "
        "Reason: All masters are unresponsive! Giving up.\n"
    )
    found = with_word_of_java(told, written)
    assert found == f"{told} Spark: All masters are unresponsive! Giving up."
    assert with_word_of_java(told, "") == told


@pytest.mark.parametrize(
    ("told", "written", "word"),
    [
        (GATEWAY, JAVA, JAVA.splitlines()[3]),
        (GATEWAY, NO_JAVA, NO_JAVA.strip()),
        (GATEWAY, "", None),
        ("Connection refused", JAVA, None),
    ],
)
def test_what_java_wrote_is_told_where_spark_did_not_start(
    told: str, written: str, word: str | None
) -> None:
    assert with_word_of_java(told, written) == (f"{told} Java: {word}" if word else told)
