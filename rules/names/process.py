"""The metrics of the process and its jobs, whatever it observes: they have no cluster label."""

from __future__ import annotations

from typing import Final

from rules.names.metric import Metric, Unit

_JOB_LABELS: Final = ("job_name",)  # `job` is Prometheus' own

JOB_RUNS: Final = Metric(
    name="tidemark_job_runs_total",
    help="Runs of a job by outcome; missed counts due times at which it was not begun in time.",
    unit=Unit.RUNS,
    labels=(*_JOB_LABELS, "outcome"),
)
JOB_LATE_RUNS: Final = Metric(
    name="tidemark_job_late_runs_total",
    help="Runs of a job that were begun more than a minute after their due time.",
    unit=Unit.RUNS,
    labels=_JOB_LABELS,
)
JOB_RUNNING: Final = Metric(
    name="tidemark_job_running",
    help="Whether a job runs now, in this process.",
    unit=Unit.FLAG,
    labels=_JOB_LABELS,
)
JOB_DURATION: Final = Metric(
    name="tidemark_job_duration_seconds",
    help="How long the latest run of a job took.",
    unit=Unit.SECONDS,
    labels=_JOB_LABELS,
)
JOB_LAST_SUCCESS: Final = Metric(
    name="tidemark_job_last_success_timestamp_seconds",
    help="When the latest run of a job that went well ended, also in another process.",
    unit=Unit.TIMESTAMP,
    labels=_JOB_LABELS,
)

JOB_METRICS: Final = (JOB_RUNS, JOB_LATE_RUNS, JOB_RUNNING, JOB_DURATION, JOB_LAST_SUCCESS)

TASK_RESTARTS: Final = Metric(
    name="tidemark_task_restarts_total",
    help="Times that a task of the service died and was started again; the log says why.",
    unit=Unit.RESTARTS,
    labels=("task",),
)
LOG_LINES_LOST: Final = Metric(
    name="tidemark_log_lines_lost_total",
    help="Log lines that could not be written, as to a full disk.",
    unit=Unit.LINES,
    labels=(),
)
BUILD_INFO: Final = Metric(
    name="tidemark_build_info",
    help="The version of Tidemark that runs.",
    unit=Unit.INFO,
    labels=("version",),
)

# Names that every exporter has, so that dashboards of processes know Tidemark too.
PROCESS_CPU: Final = Metric(
    name="process_cpu_seconds_total",
    help="Processor time that the process has used.",
    unit=Unit.SECONDS,
    labels=(),
)
PROCESS_MEMORY: Final = Metric(
    name="process_resident_memory_bytes",
    help="Resident memory of the process, an embedded PostgreSQL left out.",
    unit=Unit.BYTES,
    labels=(),
)
PROCESS_FILES: Final = Metric(
    name="process_open_fds",
    help="File descriptors that the process has open.",
    unit=Unit.DESCRIPTORS,
    labels=(),
)
PROCESS_START: Final = Metric(
    name="process_start_time_seconds",
    help="When the process started.",
    unit=Unit.TIMESTAMP,
    labels=(),
)

STANDARD_METRICS: Final = (PROCESS_CPU, PROCESS_MEMORY, PROCESS_FILES, PROCESS_START)
# Without a cluster.
PROCESS_METRICS: Final = (
    TASK_RESTARTS,
    LOG_LINES_LOST,
    *JOB_METRICS,
    BUILD_INFO,
    *STANDARD_METRICS,
)
