"""What every Spark job needs: its options, a session that starts when it is needed, one word about a failure.

A job ends with 0, or with 1 after reporting why. The caller must end it if it takes too long.
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from spark.causes import why
from spark.reporting import report
from spark.session import open_session


class RunFailedError(Exception):
    """A job failed; the text is one line for a person."""


@dataclass
class Spark:
    """The session, started when it is first needed."""

    master: str
    conf: dict[str, str]
    py_files: str | None
    name: str  # of the application
    _session: SparkSession | None = None
    started_in: float = 0.0  # seconds

    def session(self) -> SparkSession:
        """Return the session.

        Raises:
            RunFailedError: it does not start.
        """
        if self._session is None:
            begun = time.perf_counter()
            try:
                self._session = open_session(self.master, self.conf, self.py_files, self.name)
            except Exception as exc:  # Spark, Py4J, Java and the system each fail in their own way
                message = f"Spark does not start on {self.master}: {why(exc)}"
                raise RunFailedError(message) from exc
            self.started_in = time.perf_counter() - begun
        return self._session

    def stop(self) -> None:
        """Stop the session, if it was started and still can be stopped."""
        if self._session is not None:
            with suppress(Exception):  # it may be gone, which is as good
                self._session.stop()


def add_spark_options(parser: argparse.ArgumentParser) -> None:
    """Add the options by which every job is told about Spark."""
    parser.add_argument("--master", default="local[*]")
    # A file, because values may be secrets, and every user can read a command line.
    parser.add_argument("--conf-file", type=Path, metavar="JSON", help="Spark's own settings")
    parser.add_argument(
        "--py-files", metavar="ZIP", help="rules and spark, for executors elsewhere"
    )


def run_job(
    name: str,
    options: argparse.Namespace,
    work: Callable[[Spark], None],
    conf: Mapping[str, str] | None = None,
) -> int:
    """Do a job's work with the session of its options, and return the job's exit code.

    `conf` holds settings of Spark's that the job needs; those of the options win over them.
    """
    signal.signal(signal.SIGTERM, _terminate)
    spark = Spark(
        master=options.master, conf=dict(conf or {}), py_files=options.py_files, name=name
    )
    try:
        if options.conf_file is not None:
            spark.conf |= json.loads(options.conf_file.read_text(encoding="utf-8"))
        work(spark)
    except (RunFailedError, OSError) as exc:
        report("failed", why=str(exc))
        return 1
    finally:
        spark.stop()
    return 0


@contextmanager
def spark_errors(what: str) -> Iterator[None]:
    """Translate what Spark raises while it works.

    Raises:
        RunFailedError: with `what` failed, and the cause.
    """
    try:
        yield
    except PySparkException as exc:
        raise RunFailedError(f"{what} failed: {why(exc)}") from exc
    except Exception as exc:  # the JVM is gone: Py4J has a family of its own for each way to go
        raise RunFailedError(f"Spark broke off {what}: {why(exc)}") from exc


def _terminate(*_: object) -> NoReturn:
    sys.exit(128 + signal.SIGTERM)
