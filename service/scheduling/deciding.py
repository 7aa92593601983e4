"""Decides whether a job is run now, and which due times were missed. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from service.scheduling.job import CatchUp, Job, Known
from service.scheduling.triggers import Passed, passed

MAX_INTERRUPTED: Final = 3  # runs in a row that did not end: whatever ends them will do so again


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """What to do about the due times up to now."""

    settled_to: datetime  # nothing up to here is to be decided any more
    run: datetime | None = None  # the due time to run it for
    missed: Passed | None = None


def at_start(job: Job, history: Known, now: datetime) -> Decision:
    """Return up to when due times count as settled at start, and whether to run the job at once.

    `decide` handles what was missed since the last run. A job that never ran, and that makes up for missed
    runs, is run now: in a service that is only ever started for an hour it might never be due. A clock that
    was set back leaves runs in the future, which settle no time before then.
    """
    if job.catch_up is CatchUp.SKIP or history.interrupted >= MAX_INTERRUPTED:
        return Decision(settled_to=now)
    if history.last_due is None:
        return Decision(settled_to=now, run=now)
    return Decision(settled_to=min(history.last_due, now))


def decide(job: Job, settled_to: datetime, now: datetime, *, is_running: bool) -> Decision:
    """Return the decision for now; while the job runs, a due time waits for as long as its grace."""
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
