"""Which nights are to be made: pure."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, timedelta
from typing import Final

MAX_RUNS: Final = (
    35  # the weeks that a profile observations back on: what is older is forgotten anyway
)
DAY: Final = timedelta(days=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Past:
    """What history and earlier nights have left."""

    first_day: date | None  # the first day of history; None: there is none
    runs: tuple[date, ...]  # days that have a complete run, in order
    yesterday: date  # the last civil day that is over


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Nights to make, in order, each from the one before."""

    nights: tuple[date, ...]
    goes_on_from: date | None = None  # the day of the run before the first of them; None: no run
    skipped: int = 0  # nights that are missing and too long ago

    @property
    def begins_anew(self) -> bool:
        """Whether the first of them goes on from no run."""
        return bool(self.nights) and self.goes_on_from is None

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to make."""
        return not self.nights


def missing(past: Past) -> Plan:
    """Return the nights that are missing: from the last run's day on, to yesterday."""
    before = [day for day in past.runs if day <= past.yesterday]
    return _from(before[-1] if before else None, past.yesterday, past)


def again(past: Past, day: date) -> Plan:
    """Return a night that was made, with the later ones that go on from it; or what leads to one.

    Raises:
        ValueError: the day is not over, or before all history.
    """
    if day > past.yesterday:
        raise ValueError(f"{day} is not over: the last day that is, is {past.yesterday}")
    if past.first_day is None or day < past.first_day:
        told = "there is none" if past.first_day is None else f"it begins on {past.first_day}"
        raise ValueError(f"{day} is before all history: {told}")
    before = [run for run in past.runs if run < day]
    last = max([day, *past.runs])
    return _from(before[-1] if before else None, min(last, past.yesterday), past)


def _from(run: date | None, until: date, past: Past) -> Plan:
    """Return the nights after a run, or after the first day of history; the last ones, if many."""
    first = past.first_day if run is None else run + DAY
    wanted = 0 if first is None else max(0, (until - first).days + 1)
    made = min(wanted, MAX_RUNS)
    return Plan(
        nights=tuple(until - DAY * back for back in reversed(range(made))),
        goes_on_from=run,
        skipped=wanted - made,
    )
