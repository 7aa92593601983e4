"""The metrics of the process, whatever it observes: they have no cluster label."""

from __future__ import annotations

from typing import Final

from rules.names.jobs import JOB_METRICS
from rules.names.metric import Metric, MetricType, Unit

TASK_RESTARTS: Final = Metric(
    name="tidemark_task_restarts_total",
    help="Times that a task of the service died and was started again; the log says why.",
    unit=Unit.RESTARTS,
    labels=("task",),
    type=MetricType.COUNTER,
)
LOG_LINES_LOST: Final = Metric(
    name="tidemark_log_lines_lost_total",
    help="Log lines that could not be written, as to a full disk.",
    unit=Unit.LINES,
    labels=(),
    type=MetricType.COUNTER,
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
    type=MetricType.COUNTER,
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
PROCESS_METRICS: Final = (
    TASK_RESTARTS,
    LOG_LINES_LOST,
    *JOB_METRICS,
    BUILD_INFO,
    *STANDARD_METRICS,
)  # no cluster
