"""One Spark session for the run, and one history that is made once."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from service.jobs.baseline_run.spark_process import SparkOrder, job_environment
from spark.job import Spark
from spark.jobs.nightly import make_runs
from spark.session import open_session
from tests.spark.weeks import DAYS, ZONE, day_at, make_weeks

DAYS_KEPT = 10


@pytest.fixture(scope="session")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """Return a session on two cores, in the environment that the job has."""
    order = SparkOrder(
        master="local[2]",
        conf={},
        arguments=(),
        scratch=tmp_path_factory.mktemp("scratch"),
        timeout_seconds=60,
    )
    with pytest.MonkeyPatch.context() as patched:
        for name, value in job_environment(order, os.environ).items():
            patched.setenv(name, value)
        patched.setenv("SPARK_LOCAL_DIRS", str(order.scratch))  # the job works in that folder
        opened = open_session(order.master, {}, None)
        try:
            yield opened
        finally:
            opened.stop()


@pytest.fixture(scope="session")
def spark(session: SparkSession) -> Spark:
    """Return the job's own view of the session."""
    return Spark(master="local[2]", conf={}, py_files=None, name="tests", _session=session)


@pytest.fixture(scope="session")
def weeks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a history without runs; nobody changes it."""
    path = tmp_path_factory.mktemp("history")
    make_weeks(path)
    return path


@pytest.fixture(scope="session")
def made(weeks: Path, spark: Spark) -> Path:
    """Return the history with the baseline runs of all of its days; nobody changes it."""
    make_runs(spark, str(weeks), ZONE, [day_at(one) for one in range(DAYS)], DAYS_KEPT)
    return weeks
