"""What the operating system tells about our own process; cheap enough for every round."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime

import psutil

from service.metrics.totals import ProcessFigures
from service.scheduling.figures import JobFigures


def process_figures(
    restarts: Mapping[str, int], log_lines_lost: int, jobs: tuple[JobFigures, ...] = ()
) -> ProcessFigures:
    """Return how the process is now; what the system does not tell is absent."""
    process = psutil.Process()
    try:
        with process.oneshot():
            used = process.cpu_times()
            return ProcessFigures(
                restarts=dict(restarts),
                log_lines_lost=log_lines_lost,
                cpu_seconds=used.user + used.system,
                resident_bytes=process.memory_info().rss,
                open_files=process.num_fds(),
                started_at=datetime.fromtimestamp(process.create_time(), UTC),
                jobs=jobs,
            )
    except (psutil.Error, OSError):  # out of file descriptors, say: the round goes on
        return ProcessFigures(restarts=dict(restarts), log_lines_lost=log_lines_lost, jobs=jobs)
