"""The sample lines of jobs."""

from __future__ import annotations

from collections.abc import Sequence

from rules import names
from rules.names import Metric
from service.metrics.lines import line
from service.scheduling.job import JobStats


def job_samples(jobs: Sequence[JobStats]) -> dict[Metric, bytes]:
    """Return the lines of all jobs; every outcome has a value from the start, for alerts on it."""
    ends = (
        line(names.JOB_RUNS, {"job_name": job.name, "outcome": outcome.value}, count)
        for job in jobs
        for outcome, count in job.ends.items()
    )
    return {
        names.JOB_RUNS: b"".join(ends),
        names.JOB_LATE_RUNS: _each(names.JOB_LATE_RUNS, {job.name: job.late for job in jobs}),
        names.JOB_RUNNING: _each(names.JOB_RUNNING, {job.name: job.is_running for job in jobs}),
        names.JOB_DURATION: _each(
            names.JOB_DURATION,
            {job.name: job.took_seconds for job in jobs if job.took_seconds is not None},
        ),
        names.JOB_LAST_SUCCESS: _each(
            names.JOB_LAST_SUCCESS,
            {job.name: job.last_success.timestamp() for job in jobs if job.last_success},
        ),
    }


def _each(metric: Metric, values: dict[str, float] | dict[str, int] | dict[str, bool]) -> bytes:
    return b"".join(line(metric, {"job_name": name}, +value) for name, value in values.items())
