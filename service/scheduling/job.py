"""Jobs: plain values, defined in code."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import TypeAlias

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

    The last few kilobytes of its output are stored. Its last line, if that is a JSON object, is its
    stats.
    """

    argv: tuple[str, ...]
    patience_seconds: float = 5.0  # from the request to end until it is killed


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
