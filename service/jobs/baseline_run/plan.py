"""Plans baseline runs: which days are missing. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, timedelta
from typing import Final

MAX_RUNS: Final = 35  # days: as many as a profile covers, older ones have no influence
DAY: Final = timedelta(days=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Past:
    """The history and the runs that exist."""

    first_day: date | None  # the first day of history; None: there is none
    runs: tuple[date, ...]  # days that have a complete run, in order
    yesterday: date  # the last civil day that is over


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Baseline runs to make, by day and in order, each from the one before."""

    days: tuple[date, ...]
    goes_on_from: date | None = None  # day of the run that the first one continues; None: no run
    skipped: int = 0  # days that are missing and too long ago

    @property
    def begins_anew(self) -> bool:
        """Whether the first one continues no run."""
        return bool(self.days) and self.goes_on_from is None

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to make."""
        return not self.days


def missing(past: Past) -> Plan:
    """Return the missing days, from the one after the last run to yesterday."""
    before = [day for day in past.runs if day <= past.yesterday]
    return _from(before[-1] if before else None, past.yesterday, past)


def again(past: Past, day: date) -> Plan:
    """Return a day to make again, with the later runs that continue it; or the missing days up to it.

    Raises:
        ValueError: the day is not over, or before all history.
    """
    if day > past.yesterday:
        raise ValueError(f"{day} is not over: the last day that is, is {past.yesterday}")
    if past.first_day is None or day < past.first_day:
        reason = "there is none" if past.first_day is None else f"it begins on {past.first_day}"
        raise ValueError(f"{day} is before all history: {reason}")
    before = [run for run in past.runs if run < day]
    last = max([day, *past.runs])
    return _from(before[-1] if before else None, min(last, past.yesterday), past)


def _from(run: date | None, until: date, past: Past) -> Plan:
    """Return the days after a run, or from the first day of history on; only the last ones, if many."""
    first = past.first_day if run is None else run + DAY
    missing_days = 0 if first is None else max(0, (until - first).days + 1)
    count = min(missing_days, MAX_RUNS)
    return Plan(
        days=tuple(until - DAY * back for back in reversed(range(count))),
        goes_on_from=run,
        skipped=missing_days - count,
    )
