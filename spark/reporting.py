"""What the job says: one JSON object per line on stdout, for whoever started it.

`{"event": "progress", ...}` while a night is made, `{"event": "night", ...}` for each one that is
there, `{"event": "failed", "why": ...}` at most once, as the last.
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


def tell(event: str, **stats: object) -> None:
    """Say one thing now."""
    sys.stdout.write(json.dumps({"event": event} | stats) + "\n")
    sys.stdout.flush()


@contextmanager
def progress(context: SparkContext, day: str) -> Iterator[None]:
    """Say how many tasks are done, whenever that has changed."""
    is_over = threading.Event()

    def watch() -> None:
        told = -1
        while not is_over.wait(PROGRESS_SECONDS):
            done, tasks = _tasks(context)
            if tasks and done != told:
                told = done
                tell("progress", day=day, done=done, of=tasks)

    watcher = threading.Thread(target=watch, name="progress", daemon=True)
    watcher.start()
    try:
        yield
    finally:
        is_over.set()
        watcher.join(PROGRESS_SECONDS)


def _tasks(context: SparkContext) -> tuple[int, int]:
    tracker = context.statusTracker()
    stages = [
        tracker.getStageInfo(getActiveStageId) for getActiveStageId in tracker.getActiveStageIds()
    ]
    known = [stage for stage in stages if stage is not None]
    return sum(one.numCompletedTasks for one in known), sum(one.numTasks for one in known)
