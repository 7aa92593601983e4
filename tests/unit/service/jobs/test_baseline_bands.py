"""Bands of chosen series: read in the background, limited, and held for a while."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from rules.baseline.series import Metric
from rules.errors import StoreError
from service.jobs.baseline_bands import HELD, BaselineBandWatch, ChosenSeries
from service.metrics.baseline_bands import BaselineBand
from service.runtime.events import Event
from service.storage.baselines.reading import (
    Band,
    SeriesFilter,
    SeriesPage,
    StoredBaseline,
    StoredRun,
)
from tests.factories import NOON
from tests.unit.service.runtime.recorded_log import RecordedLog

AWAY = StoreError("the database has not answered yet", retryable=True)
RUN = StoredRun(
    run_id="r1",
    day=NOON.date(),
    time_zone="UTC",
    series=2,
    stats={},
    loaded_at=NOON,
    current_since=NOON,
)
LAG = StoredBaseline(
    series_id=1,
    metric=Metric.READ_COMMITTED_LAG_SECONDS,
    topic="orders",
    partition=3,
    consumer_group="billing",
    client_id=None,
    outcome="banded",
    reason="learnt",
    profile="daily",
    slots=48,
    threshold=3.0,
    threshold_below=3.0,
    drift_threshold=3.0,
    fall_share=0.0,
    threshold_by="limit",
    delta=0.0,
    slope=0.0,
    changed_at=None,
    changed_before=None,
    changed_after=None,
    days=28,
    band=Band(mid=3.0, upper=11.0, lower=-2.0),
)
LAGS, RATES = SeriesFilter(metric=LAG.metric), SeriesFilter(metric="produce_rate")


@dataclass
class Source:
    """Series by metric, and the times that were requested."""

    items: Sequence[StoredBaseline] = (LAG,)
    has_run: bool = True
    fails: StoreError | None = None
    at: list[datetime] = field(default_factory=list)

    def page(self, filters: SeriesFilter, at: datetime, limit: int) -> SeriesPage | None:
        if self.fails is not None:
            raise self.fails
        self.at.append(at)
        return SeriesPage(run=RUN, items=self._of(filters)[:limit]) if self.has_run else None

    def count(self, filters: SeriesFilter) -> int:
        return len(self._of(filters)) if self.has_run else 0

    def _of(self, filters: SeriesFilter) -> list[StoredBaseline]:
        return [item for item in self.items if item.metric == filters.metric]


class Watch(BaselineBandWatch):
    """A watch whose clock is set by hand."""

    def __init__(self, source: Source, *, limit: int = 10) -> None:
        self.now = NOON
        self.told = RecordedLog()
        super().__init__(
            source,
            ChosenSeries(filters=(LAGS, RATES), limit=limit),
            utc_now=lambda: self.now,
            stop=asyncio.Event(),
            log=self.told.log,
        )


def test_a_band_is_within_what_its_metric_can_have() -> None:
    source = Source()
    watch = Watch(source)
    assert watch.bands().shown == (), "nothing was read yet"
    watch.refresh()
    assert watch.bands().shown == (
        BaselineBand(
            series_id=1,
            metric="read_committed_lag_seconds",
            topic="orders",
            partition=3,
            group="billing",
            client_id=None,
            least=0.0,
            expected=3.0,
            most=11.0,
        ),
    )
    assert set(source.at) == {NOON}


def test_all_metrics_share_the_limit_and_the_rest_is_counted() -> None:
    rate = replace(LAG, metric="produce_rate")
    watch = Watch(Source([LAG, LAG, LAG, rate, rate]), limit=2)
    watch.refresh()
    assert [band.metric for band in watch.bands().shown] == [LAG.metric] * 2
    assert (watch.bands().left_out, watch.bands().dropped_series) == (3, 9)


def test_exactly_as_many_as_the_limit_are_whole() -> None:
    watch = Watch(Source([LAG, LAG]), limit=2)
    watch.refresh()
    assert (len(watch.bands().shown), watch.bands().left_out) == (2, 0)


def test_without_a_run_there_is_no_band() -> None:
    watch = Watch(Source(has_run=False), limit=0)
    watch.refresh()
    assert (watch.bands().shown, watch.bands().left_out) == ((), 0)


def test_bands_hold_for_half_an_hour_without_the_database_and_it_is_logged_once() -> None:
    source = Source()
    watch = Watch(source)
    watch.refresh()
    source.fails = AWAY
    for _ in range(4):
        watch.refresh()
    assert watch.told.names == [Event.BASELINE_BANDS_AWAY]
    watch.now = NOON + HELD
    assert len(watch.bands().shown) == 1
    watch.now += timedelta(seconds=1)
    assert watch.bands().shown == ()
    source.fails = None
    watch.refresh()
    assert len(watch.bands().shown) == 1
