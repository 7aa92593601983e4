"""Stats of our own process from the operating system, and the settings of its garbage collector."""

from __future__ import annotations

import gc
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Final

import psutil

from service.metrics.totals import ProcessStats
from service.scheduling.job import JobStats

# Python's own are 700, 10 and 10. A large round makes hundreds of thousands of objects, nearly all of
# which are freed without the collector; it would scan them thousands of times, which is a
# sixth of such a round. At most this many objects in cycles, some MB, wait for it longer.
SELDOM: Final = (50_000, 20, 50)


@contextmanager
def seldom_collected() -> Iterator[None]:
    """Run the garbage collector less often than Python does by default."""
    usual = gc.get_threshold()
    gc.set_threshold(*SELDOM)
    try:
        yield
    finally:
        gc.set_threshold(*usual)


def process_stats(
    restarts: Mapping[str, int], log_lines_lost: int, jobs: tuple[JobStats, ...] = ()
) -> ProcessStats:
    """Return the stats of the process; values that the system does not provide are absent."""
    process = psutil.Process()
    try:
        with process.oneshot():
            used = process.cpu_times()
            return ProcessStats(
                restarts=dict(restarts),
                log_lines_lost=log_lines_lost,
                cpu_seconds=used.user + used.system,
                resident_bytes=process.memory_info().rss,
                open_files=process.num_fds(),
                started_at=datetime.fromtimestamp(process.create_time(), UTC),
                jobs=jobs,
            )
    except (psutil.Error, OSError):  # out of file descriptors, say: the round goes on
        return ProcessStats(restarts=dict(restarts), log_lines_lost=log_lines_lost, jobs=jobs)
