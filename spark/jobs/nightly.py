"""Makes nights in order: `python -m spark.jobs.nightly --history URL --zone ZONE DAY...`.

One session for all of them, started only if there is something to make: a run whose inputs are those
of a run that is there is that run. Ends with 0, or with 1 after saying why. It must be ended from
outside if it takes too long; whatever it leaves unfinished is no run.
"""

from __future__ import annotations

import argparse
import signal
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import date
from typing import Final, NoReturn

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from rules.baseline.baseline_run import BaselineRun
from rules.baseline.civil import civil_day
from rules.baseline.layout import RUN_FILE, run_folder
from spark.bucket import BucketOutcome
from spark.causes import why
from spark.inputs import RunInputs, buckets_of, inputs_of
from spark.places import Place
from spark.reporting import progress, tell
from spark.runs import RUNS, days_of, is_whole, keep_only, last_run, read_run, remove_older
from spark.session import open_session
from spark.transforms import buckets, made

TASK_BYTES: Final = 8 << 20  # of input: less is not worth a task of its own


class RunFailedError(Exception):
    """A night could not be made; its text is one line for a person."""


@dataclass
class Spark:
    """The session, started when it is first needed."""

    master: str
    conf: dict[str, str]
    py_files: str | None
    _session: SparkSession | None = None
    started_in: float = 0.0  # seconds

    def session(self) -> SparkSession:
        """Return it.

        Raises:
            RunFailedError: it does not start.
        """
        if self._session is None:
            begun = time.perf_counter()
            try:
                self._session = open_session(self.master, self.conf, self.py_files)
            except Exception as exc:  # Spark, Py4J, Java and the system each fail in their own way
                told = f"Spark does not start on {self.master}: {why(exc)}"
                raise RunFailedError(told) from exc
            self.started_in = time.perf_counter() - begun
        return self._session

    def stop(self) -> None:
        """End it, if it was started and still can be ended."""
        if self._session is not None:
            with suppress(Exception):  # it may be gone, which is as good
                self._session.stop()


def main(arguments: Sequence[str] | None = None) -> int:
    """Make the nights that the arguments name."""
    options = _options().parse_args(arguments)
    signal.signal(signal.SIGTERM, _terminated)
    conf = dict(one.split("=", 1) for one in options.conf)
    spark = Spark(master=options.master, conf=conf, py_files=options.py_files)
    try:
        make_runs(spark, options.history, options.zone, sorted(options.days), options.keep)
    except (RunFailedError, OSError) as exc:
        tell("failed", why=str(exc))
        return 1
    finally:
        spark.stop()
    return 0


def make_runs(spark: Spark, history: str, zone: str, days: Sequence[date], keep: int) -> None:
    """Make each night from the one before, and remove runs that are no longer needed.

    Raises:
        RunFailedError: one could not be made; those before it are there.
        OSError: the history cannot be read or written.
    """
    place = Place(history)
    count = buckets_of(place)
    for day in days:
        begun = time.perf_counter()
        make_run(spark, place, _night(place, day, zone, count), begun)
        # Days after it may have runs, and go on from it when their turn comes.
        remove_older(place, [one for one in days_of(place, RUNS) if one <= day], keep)


def make_run(spark: Spark, place: Place, night: RunInputs, begun: float) -> BaselineRun:
    """Make a night's run, or find that it is there; `begun` is when its inputs were observed.

    Raises:
        RunFailedError: a task failed, or the run to go on from is damaged.
        OSError: the history cannot be read or written.
    """
    planned = time.perf_counter()
    there = _made_before(place, night)
    if there is not None:
        keep_only(place, there)
        _tell_night(there, is_new=False, seconds={})
        return there
    session = spark.session()
    since = time.perf_counter()
    told = _made(session, place, night)
    run = BaselineRun(
        id=night.id,
        day=night.day,
        zone=night.zone,
        previous=None if night.previous is None else night.previous.digest,
        buckets=tuple(one.run for one in told if one.run is not None),
    )
    place.write(f"{run_folder(run.day, run.id)}/{RUN_FILE}", run.to_json().encode())
    keep_only(place, run)
    now = time.perf_counter()
    stages = _summed(told)
    stages |= {"inputs": planned - begun, "tasks": now - since, "all": now - begun}
    if spark.started_in:
        stages["start"], spark.started_in = spark.started_in, 0.0
    _tell_night(run, is_new=True, seconds=stages)
    return run


def _night(place: Place, day: date, zone: str, count: int) -> RunInputs:
    before = last_run(place, day)
    return RunInputs(
        history=place.url,
        day=day,
        zone=civil_day(day, zone).zone,
        buckets=count,
        previous=None if before is None else before.run,
        inputs=inputs_of(place, day, count),
    )


def _made_before(place: Place, night: RunInputs) -> BaselineRun | None:
    kept = read_run(place, night.day, night.id)
    return kept.run if kept is not None and is_whole(place, kept.run) else None


def _made(session: SparkSession, place: Place, night: RunInputs) -> list[BucketOutcome]:
    context = session.sparkContext
    size = sum(place.files.get_file_info(place.path(name)).size or 0 for name in night.inputs)
    if night.previous is not None:
        folder = run_folder(night.previous.day, night.previous.id)
        size += sum(one.size for one in place.listed(folder))
    tasks = max(context.defaultParallelism, size // TASK_BYTES)
    every = buckets(session, night.buckets, tasks)
    try:
        with progress(context, night.day.isoformat()):
            rows = made(every, night).collect()
    except PySparkException as exc:
        raise RunFailedError(f"the night of {night.day} failed: {why(exc)}") from exc
    except Exception as exc:  # the JVM is gone: Py4J has a family of its own for each way to go
        raise RunFailedError(f"Spark broke off the night of {night.day}: {why(exc)}") from exc
    told = [
        BucketOutcome.from_json(row["outcome"])
        for row in sorted(rows, key=lambda row: row["bucket"])
    ]
    broken = next((one.broken for one in told if one.broken is not None), None)
    if broken is not None and night.previous is not None:
        day = night.previous.day
        raise RunFailedError(
            f"the run of {day} is damaged, and the night of {night.day} goes on from it: make it "
            f"again with `tidemark nightly run --date {day}` ({broken})"
        )
    if len(told) != night.buckets:
        raise RunFailedError(
            f"the night of {night.day} made {len(told)} of {night.buckets} buckets"
        )
    return told


def _summed(told: Sequence[BucketOutcome]) -> dict[str, float]:
    """Return seconds by stage, over all tasks."""
    stages: dict[str, float] = {}
    for one in told:
        for stage, seconds in one.seconds.items():
            stages[stage] = stages.get(stage, 0.0) + seconds
    return stages


def _tell_night(run: BaselineRun, *, is_new: bool, seconds: Mapping[str, float]) -> None:
    tell(
        "night",
        day=run.day.isoformat(),
        run=run.id,
        digest=run.digest,
        is_new=is_new,
        series=run.series,
        outcomes=run.outcomes,
        damaged={one.bucket: one.damaged for one in run.damaged},
        seconds={name: round(one, 3) for name, one in seconds.items()},
    )


def _terminated(*_: object) -> NoReturn:
    sys.exit(128 + signal.SIGTERM)


def _options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="spark.jobs.nightly", description=__doc__)
    parser.add_argument("days", nargs="+", type=date.fromisoformat, metavar="DAY")
    parser.add_argument("--history", required=True, metavar="URL")
    parser.add_argument("--zone", default="UTC", metavar="ZONE", help="IANA time zone of the days")
    parser.add_argument("--master", default="local[*]")
    parser.add_argument("--conf", action="append", default=[], metavar="NAME=VALUE")
    parser.add_argument(
        "--py-files", metavar="ZIP", help="rules and spark, for executors elsewhere"
    )
    parser.add_argument(
        "--keep", type=int, default=3, metavar="DAYS", help="days with runs to keep"
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
