"""The Spark session of a job: small, quiet, in UTC, on this machine unless a master is given."""

from __future__ import annotations

import os
import shlex
import tempfile
from collections.abc import Mapping
from typing import Any, Final

from pyspark import SparkConf, SparkContext
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

from spark.user import log_in

LOCAL: Final = "local"
LOOPBACK: Final = "127.0.0.1"
DEFAULTS: Final = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.session.timeZone": "UTC",
    # Both are the defaults of this release: another default must not change a baseline run.
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.execution.pythonUDF.arrow.enabled": "true",
    # No catalogue and no shuffle: nothing to adapt, nothing to keep in a warehouse.
    "spark.sql.catalogImplementation": "in-memory",
    "spark.sql.adaptive.enabled": "false",
    # A row per bucket: to compile a program of its own for them takes longer than to hand them out.
    "spark.sql.codegen.wholeStage": "false",
    # A task takes minutes at most; executors must not wait long for a driver that is gone.
    "spark.network.timeout": "120s",
    "spark.python.worker.reuse": "true",
    # A task's arrays come and go by the megabyte: glibc would give each back to the system, and have all
    # of its pages faulted in again for the next one. Other C libraries ignore these.
    "spark.executorEnv.MALLOC_MMAP_THRESHOLD_": str(32 << 20),  # bytes, the most that it takes
    "spark.executorEnv.MALLOC_TRIM_THRESHOLD_": str(256 << 20),
    # The JVM only hands out tasks: the memory of a baseline run is that of the Python workers.
    "spark.driver.memory": "1g",
    "spark.driver.extraJavaOptions": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1",
    # A Python process of a task imports what we ship and what is installed, and nothing of its folder.
    "spark.executorEnv.PYTHONSAFEPATH": "1",
}
# Other users of this machine reach its loopback interface too; Spark makes a secret for each start.
LOCAL_DEFAULTS: Final = {
    "spark.driver.bindAddress": LOOPBACK,
    "spark.driver.host": LOOPBACK,
    "spark.authenticate": "true",
}
SUBMIT_ARGUMENTS: Final = "PYSPARK_SUBMIT_ARGS"


def open_session(
    master: str, conf: Mapping[str, str], py_files: str | None, name: str = "tidemark-nightly"
) -> SparkSession:
    """Start Spark; a setting that is given wins over ours.

    Args:
        master: as Spark takes it: local[*], spark://host:7077, ...
        conf: Spark's own settings.
        py_files: a zip of `rules` and `spark` for executors elsewhere; None: they find them here.
        name: of the application, as Spark shows it.

    Raises:
        PySparkException: the master does not answer, or Java is missing.
    """
    chosen = {"spark.app.name": name, "spark.master": master, **DEFAULTS}
    chosen |= LOCAL_DEFAULTS if is_local(master) else {}
    chosen |= conf
    SparkContext(conf=SparkConf().setAll(list(chosen.items())), gateway=_start_java(chosen))
    builder = SparkSession.builder
    for setting, value in chosen.items():
        builder = builder.config(setting, value)
    session = builder.getOrCreate()
    if py_files is not None:
        session.sparkContext.addPyFile(py_files)
    return session


def _start_java(settings: Mapping[str, str]) -> Any:
    """Return the gateway of a JVM with settings from a file, because every user can read command lines."""
    with tempfile.NamedTemporaryFile("w", encoding="ascii", suffix=".conf") as file:  # mode 0600
        file.writelines(f"{_escape(name)}={_escape(settings[name])}\n" for name in settings)
        file.flush()
        # As without a file of settings, the operator's own spark-defaults.conf is read behind ours.
        words = ("--properties-file", file.name, "--load-spark-defaults", "pyspark-shell")
        os.environ[SUBMIT_ARGUMENTS] = shlex.join(words)
        try:
            # Without a conf, which would be on the command line.
            gateway = launch_gateway()  # type: ignore[no-untyped-call]
        finally:
            del os.environ[SUBMIT_ARGUMENTS]
    log_in(gateway.jvm)
    return gateway


def _escape(text: str) -> str:
    """Return a text as Java's properties format has any character."""
    digits = text.encode("utf-16-be").hex()
    return "".join(f"\\u{digits[start : start + 4]}" for start in range(0, len(digits), 4))


def is_local(master: str) -> bool:
    """Whether driver and tasks share this process's machine and memory."""
    return master == LOCAL or master.startswith(f"{LOCAL}[")
