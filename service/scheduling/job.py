"""Jobs, defined in code; the records of their runs, the port to their store, and their state."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Protocol, TypeAlias

from service.scheduling.triggers import Trigger

Stats = Mapping[str, int | str]  # what a run counted, for people


class CatchUp(StrEnum):
    """What happens to due times at which a job could not be run."""

    ONCE = "once"  # one run makes up for all of them, also after a restart
    SKIP = "skip"  # nothing does: the next due time is soon enough


@dataclass(frozen=True, slots=True, kw_only=True)
class RunContext:
    """The context of a run."""

    due_at: datetime  # aware, UTC
    now: datetime  # aware, UTC: when it began
    is_over: Callable[[], bool]  # its time is up or the service stops: end soon


@dataclass(frozen=True, slots=True)
class Call:
    """A function that blocks; it is run in a thread of its own, which cannot be ended.

    It may raise a `TidemarkError`, whose text is stored as the reason of the failure.
    """

    function: Callable[[RunContext], Stats]


@dataclass(frozen=True, slots=True)
class Command:
    """A program; it ends, with all that it started, when its time is up or the service dies.

    It runs in the root folder, not in that of the service. The last few kilobytes of its output are stored. Its last line, if that is a JSON object, is its
    stats.
    """

    argv: tuple[str, ...]
    patience_seconds: float = 5.0  # from the request to end until it is killed
    environment: Mapping[str, str] = field(default_factory=dict)  # beside that of the service


Work: TypeAlias = Call | Command


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """Work that is repeated at due times."""

    name: str  # lasting: runs are kept under it
    trigger: Trigger
    grace: timedelta  # a run that has not begun so long after its due time was missed
    timeout: timedelta
    catch_up: CatchUp
    work: Work
    what: str = ""  # for people, one line


class RunOutcome(StrEnum):
    """The outcome of a run, or of due times without one."""

    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    TIMED_OUT = "timed_out"
    INTERRUPTED = "interrupted"  # the service stopped or died meanwhile
    MISSED = "missed"


ENDS = tuple(outcome for outcome in RunOutcome if outcome is not RunOutcome.RUNNING)


class Rejected(StrEnum):
    """Why a run does not begin."""

    ELSEWHERE = "elsewhere"  # another process runs the job
    DONE = "done"  # another process has run it for this due time


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """How a run ended."""

    outcome: RunOutcome
    detail: str = ""
    stats: Stats = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """The history of one job: its last runs."""

    last_due: datetime | None = None  # up to here nothing is to be made up for; None: it never ran
    interrupted: int = 0  # runs since then that did not come to an end
    last_success: datetime | None = None  # when it ended


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
    trigger: str
    next_due: datetime  # aware, UTC
    waits_for: str | None  # what keeps any run from beginning now; None: nothing
    stats: JobStats


class Turn(Protocol):
    """A run that has begun; no other process runs the job until it is released."""

    def end(self, ended: Ended, now: datetime) -> None:
        """Store how it ended; StoreError if that failed, and may be tried again."""

    def release(self) -> None:
        """Let other processes run the job."""


class RunStore(Protocol):
    """Stores runs; every call may raise StoreError."""

    def known(self, names: Sequence[str], now: datetime) -> Mapping[str, Known]:
        """Return the history of each job; runs that a dead process left as running become interrupted."""

    def begin(self, name: str, due_at: datetime, now: datetime) -> Turn | Rejected:
        """Begin a run unless another process has."""

    def missed(self, name: str, due_at: datetime, now: datetime, times: int) -> None:
        """Store that a job was not run when it was due, the last time at `due_at`."""
