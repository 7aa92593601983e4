"""Whether a job is to be run now, and what of it was missed: pure."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from service.scheduling.job import CatchUp, Job
from service.scheduling.runs import Known
from service.scheduling.triggers import Passed, passed

MAX_INTERRUPTED: Final = 3  # runs in a row that did not end: whatever ends them will do so again


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """What to do about the due times up to now."""

    settled_to: datetime  # nothing up to here is to be decided any more
    run: datetime | None = None  # the due time to run it for
    missed: Passed | None = None


def at_start(job: Job, known: Known, now: datetime) -> Decision:
    """Return what a process that starts takes for settled, and whether it runs the job at once.

    What was missed since the last run is for `decide`. A job that never ran, and makes up for what it
    misses, is run now: in a service that is only ever started for an hour it might never be due. A
    clock that was set back leaves runs in the future, which settle nothing before then.
    """
    if job.catch_up is CatchUp.SKIP or known.interrupted >= MAX_INTERRUPTED:
        return Decision(settled_to=now)
    if known.last_due is None:
        return Decision(settled_to=now, run=now)
    return Decision(settled_to=min(known.last_due, now))


def decide(job: Job, settled_to: datetime, now: datetime, *, is_running: bool) -> Decision:
    """Return what to do now; while the job runs, a due time waits for as long as its grace."""
    if settled_to > now:  # the clock was set back
        return Decision(settled_to=now)
    due = passed(job.trigger, settled_to, now)
    if due is None:
        return Decision(settled_to=settled_to)
    is_late = now - due.last > job.grace
    if is_running:
        return (
            Decision(settled_to=due.last, missed=due)
            if is_late
            else Decision(settled_to=settled_to)
        )
    runs = not is_late or job.catch_up is CatchUp.ONCE
    times = due.times if is_late else due.times - 1
    return Decision(
        settled_to=due.last,
        run=due.last if runs else None,
        missed=Passed(last=due.last, times=times) if times else None,
    )
