"""What was measured of a series between two times, as the API shows it beside what is usual."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Annotated, Final

from pydantic import Field

from rules.baseline.wording import UNITS
from service.api.core.ports import Sources
from service.api.core.problems import conflict, invalid
from service.history.reading import (
    MOST_DAYS,
    MOST_SAMPLES,
    MeasuredSamples,
    TooManySamplesError,
)
from service.views.model import Model

BY_DEFAULT: Final = timedelta(hours=1)
TURNED_OFF: Final = "history is turned off (history.enabled): no measured values are kept"

Window = tuple[datetime, datetime]  # begin and end, which is excluded; UTC


class MeasuredValue(Model):
    """One sample."""

    at: Annotated[datetime, Field(description="When its step began")]
    value: Annotated[float | None, Field(description="null: not known")]


class UnreadableFile(Model):
    """A file of history that cannot be read, or not whole."""

    file: Annotated[str, Field(examples=["days/day=2026-01-31/bucket=007.parquet"])]
    reason: str


class Measured(Model):
    """What was measured of a series between two times, by history."""

    from_: Annotated[datetime, Field(alias="from")]
    to: Annotated[datetime, Field(description="Excluded")]
    step_seconds: Annotated[float | None, Field(examples=[15.0])]
    """From one value to the next, by the newest one; null: there are no values"""
    unit: Annotated[str | None, Field(examples=["offsets/s"])]
    """null: the metric is a share"""
    values: list[MeasuredValue]
    """In order of time. A gap is a value of null; there is none for a step that is not over"""
    unreadable: list[UnreadableFile]
    """Files whose values are missing here"""


def window_of(begin: datetime | None, end: datetime | None, now: datetime) -> Window | None:
    """Return from when to when measured values are requested; None if they are not.

    Raises:
        ProblemError: there is no such time, or it is too long (422).
    """
    if begin is None and end is None:
        return None
    return window_until(begin, end or now)


def window_until(begin: datetime | None, end: datetime) -> Window:
    """Return from when to when measured values are requested; errors are those of `window_of`."""
    begin = begin or end - BY_DEFAULT
    if begin >= end:
        raise invalid("from", "must be before `to`, which is now by default")
    if end - begin > timedelta(days=MOST_DAYS):
        raise invalid("from", f"must be at most {MOST_DAYS} days before `to`")
    return begin, end


async def read_measured(
    sources: Sources, series_id: int, window: Window, now: datetime
) -> MeasuredSamples:
    """Return the samples of a series, read away from the event loop.

    Raises:
        ProblemError: history is turned off (409), or there are too many samples (422).
        StoreError: the folder of history is away.
    """
    history = sources.measured
    if history is None:
        raise conflict(TURNED_OFF)
    try:
        return await sources.in_history(lambda: history.read(series_id, *window, now=now))
    except TooManySamplesError as exc:
        most = MOST_SAMPLES * exc.step / timedelta(hours=1)
        message = f"{exc}: at most {MOST_SAMPLES:,} are returned, here of {most:.3g} hours"
        raise invalid("from", message) from exc


def measured_view(samples: MeasuredSamples, window: Window, metric: str) -> Measured:
    """Return samples as the API shows them."""
    return Measured(
        from_=window[0],
        to=window[1],
        step_seconds=None if samples.step is None else samples.step.total_seconds(),
        unit=UNITS.get(metric),
        values=[MeasuredValue(at=at, value=value) for at, value in samples.samples],
        unreadable=[
            UnreadableFile(file=file, reason=reason) for file, reason in samples.unreadable.items()
        ],
    )
