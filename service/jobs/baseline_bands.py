"""Keeps what is usual now of chosen series, so that no scrape and no round waits for the database.

Read once a minute: a band changes with its half hour, and with the baseline run in force. While the
database does not answer, the last bands hold for half an hour.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, Protocol

from rules.baseline.policy import policy_of
from rules.errors import StoreError
from service.metrics.baseline_bands import BaselineBand, BaselineBands
from service.runtime.clock import set_within
from service.runtime.events import Event
from service.runtime.log import Log
from service.runtime.threads import in_thread
from service.storage.baselines.reading import (
    MINUTES_PER_SLOT,
    SeriesFilter,
    SeriesPage,
    StoredBaseline,
)

REFRESH_SECONDS: Final = 60.0
HELD: Final = timedelta(minutes=MINUTES_PER_SLOT)
_FAILURES_LOGGED: Final = 2  # in a row: the database may still be starting at the first


class BaselineSource(Protocol):
    """The baselines of the run in force; every call may raise StoreError."""

    def page(self, filters: SeriesFilter, at: datetime, limit: int, /) -> SeriesPage | None:
        """Return series with their bands at a time; None if there is no run."""

    def count(self, filters: SeriesFilter, /) -> int:
        """Return the number of series."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChosenSeries:
    """Which series, and how many of them at most."""

    filters: Sequence[SeriesFilter]
    limit: int


class BaselineBandWatch:
    """Keeps the bands that were read last."""

    def __init__(
        self,
        source: BaselineSource,
        chosen: ChosenSeries,
        *,
        utc_now: Callable[[], datetime],
        stop: asyncio.Event,
        log: Log,
    ) -> None:
        self._source = source
        self._chosen = chosen
        self._utc_now = utc_now
        self._stop = stop
        self._log = log
        self._bands = BaselineBands()
        self._read_at: datetime | None = None
        self._failures = 0  # in a row

    def bands(self) -> BaselineBands:
        """Return the bands; none if they were read more than half an hour ago."""
        if self._read_at is None or self._utc_now() - self._read_at > HELD:
            return BaselineBands()
        return self._bands

    async def run(self) -> None:
        """Read the bands again and again until the service stops."""
        while not self._stop.is_set():
            await in_thread(self.refresh, name="baseline_bands")
            await set_within(self._stop, REFRESH_SECONDS)

    def refresh(self) -> None:
        """Read the bands once; blocks."""
        now = self._utc_now()
        try:
            bands = self._read(now)
        except StoreError as exc:
            self._failures += 1
            if self._failures == _FAILURES_LOGGED:
                self._log.warning(Event.BASELINE_BANDS_AWAY, error=str(exc))
            return
        self._bands, self._read_at, self._failures = bands, now, 0

    def _read(self, now: datetime) -> BaselineBands:
        rows: list[StoredBaseline] = []
        left_out = 0
        for filters in self._chosen.filters:
            spare = self._chosen.limit - len(rows)
            page = self._source.page(filters, now, spare)
            items = [] if page is None else page.items
            rows += items
            if len(items) == spare:
                left_out += max(0, self._source.count(filters) - spare)
        return BaselineBands(shown=tuple(map(_band, rows)), left_out=left_out)


def _band(series: StoredBaseline) -> BaselineBand:
    band, cut = series.band, policy_of(series.metric).cut
    return BaselineBand(
        series_id=series.series_id,
        metric=series.metric,
        topic=series.topic,
        partition=series.partition,
        group=series.consumer_group,
        client_id=series.client_id,
        least=None if band is None else cut(band.lower),
        expected=None if band is None else cut(band.mid),
        most=None if band is None else cut(band.upper),
    )
