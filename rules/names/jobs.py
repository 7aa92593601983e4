"""The metrics of jobs: scheduled work beside the rounds. They have no cluster label."""

from __future__ import annotations

from typing import Final

from rules.names.metric import Metric, MetricType, Unit

JOB_LABELS: Final = ("job_name",)  # `job` is Prometheus' own

JOB_RUNS: Final = Metric(
    name="tidemark_job_runs_total",
    help="Runs of a job by outcome; missed counts due times at which it was not begun in time.",
    unit=Unit.RUNS,
    labels=(*JOB_LABELS, "outcome"),
    type=MetricType.COUNTER,
)
JOB_LATE_RUNS: Final = Metric(
    name="tidemark_job_late_runs_total",
    help="Runs of a job that were begun more than a minute after their due time.",
    unit=Unit.RUNS,
    labels=JOB_LABELS,
    type=MetricType.COUNTER,
)
JOB_RUNNING: Final = Metric(
    name="tidemark_job_running",
    help="Whether a job runs now, in this process.",
    unit=Unit.FLAG,
    labels=JOB_LABELS,
)
JOB_DURATION: Final = Metric(
    name="tidemark_job_duration_seconds",
    help="How long the latest run of a job took.",
    unit=Unit.SECONDS,
    labels=JOB_LABELS,
)
JOB_LAST_SUCCESS: Final = Metric(
    name="tidemark_job_last_success_timestamp_seconds",
    help="When the latest run of a job that went well ended, also in another process.",
    unit=Unit.TIMESTAMP,
    labels=JOB_LABELS,
)

JOB_METRICS: Final = (JOB_RUNS, JOB_LATE_RUNS, JOB_RUNNING, JOB_DURATION, JOB_LAST_SUCCESS)
