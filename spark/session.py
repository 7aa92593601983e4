"""The Spark session of a baseline run: small, quiet, in UTC, on this machine unless a master is given."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from pyspark.sql import SparkSession

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
}


def open_session(master: str, conf: Mapping[str, str], py_files: str | None) -> SparkSession:
    """Start Spark; a setting that is given wins over ours.

    Args:
        master: as Spark takes it: local[*], spark://host:7077, ...
        conf: Spark's own settings.
        py_files: a zip of `rules` and `spark` for executors elsewhere; None: they find them here.

    Raises:
        PySparkException: the master does not answer, or Java is missing.
    """
    chosen = dict(DEFAULTS)
    if is_local(master):
        chosen |= {"spark.driver.bindAddress": LOOPBACK, "spark.driver.host": LOOPBACK}
    if py_files is not None:
        chosen["spark.submit.pyFiles"] = py_files
    builder = SparkSession.builder.appName("tidemark-nightly").master(master)
    for name, value in (chosen | dict(conf)).items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    if py_files is not None:
        session.sparkContext.addPyFile(py_files)
    return session


def is_local(master: str) -> bool:
    """Whether driver and tasks share this process's machine and memory."""
    return master == LOCAL or master.startswith(f"{LOCAL}[")
