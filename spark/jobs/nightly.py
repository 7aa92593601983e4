"""Makes baseline runs in order: `python -m spark.jobs.nightly --history URL --zone ZONE DAY...`.

One session for all of them, started only if a run has to be made: one with the same inputs as an existing
run is that run. Ends with 0, or with 1 after reporting why. The caller must end it if it takes too long;
files that it leaves unfinished do not count as a run.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Mapping, Sequence
from datetime import date
from typing import Final

from pyspark.sql import SparkSession

from rules.baseline.baseline_run import BaselineRun
from rules.baseline.civil import civil_day
from rules.baseline.layout import RUN_FILE, RUNS, run_folder
from spark.bucket import BucketOutcome
from spark.inputs import RunInputs, buckets_of, inputs_of
from spark.job import RunFailedError, Spark, add_spark_options, run_job, spark_errors
from spark.places import Place
from spark.reporting import progress, report
from spark.runs import days_of, is_whole, keep_only, last_run, read_run, remove_older
from spark.transforms import buckets, make_buckets

TASK_BYTES: Final = 8 << 20  # of input: less is not worth a task of its own


def main(arguments: Sequence[str] | None = None) -> int:
    """Make the baseline runs of the days in the arguments."""
    options = _options().parse_args(arguments)

    def work(spark: Spark) -> None:
        make_runs(spark, options.history, options.zone, sorted(options.days), options.keep)

    return run_job("tidemark-nightly", options, work)


def make_runs(spark: Spark, history: str, zone: str, days: Sequence[date], keep: int) -> None:
    """Make each baseline run from the one before, and remove runs that are no longer needed.

    Raises:
        RunFailedError: one failed; those before it are complete.
        OSError: the history cannot be read or written.
    """
    place = Place(history)
    count = buckets_of(place)
    for day in days:
        begun = time.perf_counter()
        make_run(spark, place, _inputs_of_day(place, day, zone, count), begun)
        # Later days may have runs, which are made again from this one in their turn.
        remove_older(place, [older for older in days_of(place, RUNS) if older <= day], keep)


def make_run(spark: Spark, place: Place, inputs: RunInputs, begun: float) -> BaselineRun:
    """Make a baseline run, or find that it exists; `begun` is when reading its inputs began.

    Raises:
        RunFailedError: a task failed, or the previous run is damaged.
        OSError: the history cannot be read or written.
    """
    planned = time.perf_counter()
    there = _find_run(place, inputs)
    if there is not None:
        keep_only(place, there)
        _report_run(there, is_new=False, seconds={})
        return there
    session = spark.session()
    since = time.perf_counter()
    outcomes = _run_tasks(session, place, inputs)
    run = BaselineRun(
        id=inputs.id,
        day=inputs.day,
        zone=inputs.zone,
        previous=None if inputs.previous is None else inputs.previous.digest,
        buckets=tuple(outcome.run for outcome in outcomes if outcome.run is not None),
    )
    place.write(f"{run_folder(run.day, run.id)}/{RUN_FILE}", run.to_json().encode())
    keep_only(place, run)
    now = time.perf_counter()
    stages = _sum_stages(outcomes)
    stages |= {"inputs": planned - begun, "tasks": now - since, "all": now - begun}
    if spark.started_in:
        stages["start"], spark.started_in = spark.started_in, 0.0
    _report_run(run, is_new=True, seconds=stages)
    return run


def _inputs_of_day(place: Place, day: date, zone: str, count: int) -> RunInputs:
    before = last_run(place, day)
    return RunInputs(
        history=place.url,
        day=day,
        zone=civil_day(day, zone).zone,
        buckets=count,
        previous=None if before is None else before.run,
        inputs=inputs_of(place, day, count),
    )


def _find_run(place: Place, inputs: RunInputs) -> BaselineRun | None:
    stored = read_run(place, inputs.day, inputs.id)
    return stored.run if stored is not None and is_whole(place, stored.run) else None


def _run_tasks(session: SparkSession, place: Place, inputs: RunInputs) -> list[BucketOutcome]:
    context = session.sparkContext
    size = sum(place.files.get_file_info(place.path(name)).size or 0 for name in inputs.inputs)
    if inputs.previous is not None:
        folder = run_folder(inputs.previous.day, inputs.previous.id)
        size += sum(file.size for file in place.listed(folder))
    tasks = max(context.defaultParallelism, size // TASK_BYTES)
    every = buckets(session, inputs.buckets, tasks)
    with (
        spark_errors(f"the baseline run of {inputs.day}"),
        progress(context, day=inputs.day.isoformat()),
    ):
        rows = make_buckets(every, inputs).collect()
    outcomes = [
        BucketOutcome.from_json(row["outcome"])
        for row in sorted(rows, key=lambda row: row["bucket"])
    ]
    broken = next((outcome.broken for outcome in outcomes if outcome.broken is not None), None)
    if broken is not None and inputs.previous is not None:
        day = inputs.previous.day
        raise RunFailedError(
            f"the run of {day} is damaged, and that of {inputs.day} continues it: make it "
            f"again with `tidemark nightly run --date {day}` ({broken})"
        )
    if len(outcomes) != inputs.buckets:
        raise RunFailedError(
            f"the baseline run of {inputs.day} made {len(outcomes)} of {inputs.buckets} buckets"
        )
    return outcomes


def _sum_stages(outcomes: Sequence[BucketOutcome]) -> dict[str, float]:
    """Return seconds by stage, over all tasks."""
    stages: dict[str, float] = {}
    for outcome in outcomes:
        for stage, seconds in outcome.seconds.items():
            stages[stage] = stages.get(stage, 0.0) + seconds
    return stages


def _report_run(run: BaselineRun, *, is_new: bool, seconds: Mapping[str, float]) -> None:
    report(
        "baseline_run",
        day=run.day.isoformat(),
        run=run.id,
        digest=run.digest,
        is_new=is_new,
        series=run.series,
        outcomes=run.outcomes,
        damaged={bucket.bucket: bucket.damaged for bucket in run.damaged},
        seconds={name: round(value, 3) for name, value in seconds.items()},
    )


def _options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="spark.jobs.nightly", description=__doc__)
    parser.add_argument("days", nargs="+", type=date.fromisoformat, metavar="DAY")
    parser.add_argument("--history", required=True, metavar="URL")
    parser.add_argument("--zone", default="UTC", metavar="ZONE", help="IANA time zone of the days")
    add_spark_options(parser)
    parser.add_argument(
        "--keep", type=int, default=3, metavar="DAYS", help="days with runs to keep"
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
