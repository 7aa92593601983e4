"""Stats and states of jobs, for metrics and the API: plain values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from service.scheduling.runs import RunOutcome

ENDS = tuple(outcome for outcome in RunOutcome if outcome is not RunOutcome.RUNNING)


@dataclass(frozen=True, slots=True, kw_only=True)
class JobStats:
    """One job, since the start of the process unless said otherwise."""

    name: str
    ends: Mapping[RunOutcome, int] = field(default_factory=lambda: dict.fromkeys(ENDS, 0))
    late: int = 0  # runs that began late, in time or not
    is_running: bool = False
    took_seconds: float | None = None  # the latest run that ended
    last_success: datetime | None = None  # aware, UTC; also by an earlier process


@dataclass(frozen=True, slots=True, kw_only=True)
class JobState:
    """The state of one job, for the API."""

    name: str
    what: str
    trigger: str
    grace_seconds: float
    timeout_seconds: float
    catch_up: str
    next_due: datetime  # aware, UTC
    waits_for: str | None  # what keeps any run from beginning now; None: nothing
    stats: JobStats
