"""Events of a job: one JSON object per line on stdout, for the process that started it.

`{"event": "progress", ...}` while Spark works, `{"event": "survey", ...}` and `{"event": "packed", ...}` of an import, `{"event": "baseline_run", ...}` for each complete one,
`{"event": "replayed", ...}` for each bucket of a backtest,
`{"event": "failed", "why": ...}` at most once, as the last.
"""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from pyspark import SparkContext

PROGRESS_SECONDS: Final = 2.0


def report(event: str, **stats: object) -> None:
    """Write one event."""
    sys.stdout.write(json.dumps({"event": event} | stats) + "\n")
    sys.stdout.flush()


@contextmanager
def progress(context: SparkContext, **subject: str) -> Iterator[None]:
    """Report how many tasks are done, whenever that has changed; `subject` says of what."""
    is_over = threading.Event()

    def watch() -> None:
        reported = -1
        while not is_over.wait(PROGRESS_SECONDS):
            done, tasks = _tasks(context)
            if tasks and done != reported:
                reported = done
                report("progress", **subject, done=done, of=tasks)

    watcher = threading.Thread(target=watch, name="progress", daemon=True)
    watcher.start()
    try:
        yield
    finally:
        is_over.set()
        watcher.join(PROGRESS_SECONDS)


def _tasks(context: SparkContext) -> tuple[int, int]:
    tracker = context.statusTracker()
    stages = [tracker.getStageInfo(stage_id) for stage_id in tracker.getActiveStageIds()]
    running = [stage for stage in stages if stage is not None]
    return sum(stage_info.numCompletedTasks for stage_info in running), sum(
        stage_info.numTasks for stage_info in running
    )
