"""Builds what keeps the bands of chosen series for the page of metrics."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

from rules.baseline.series import Metric
from service.history.series_ids import COMMIT_METRICS
from service.jobs.baseline_bands import BaselineBandWatch, ChosenSeries
from service.runtime.clock import utc_now
from service.runtime.log import Log
from service.settings.groups import MetricsSettings
from service.storage.baselines.reading import BaselineList, SeriesFilter
from service.storage.rounds.store import PostgresStore


def baseline_band_watch(
    settings: MetricsSettings, store: PostgresStore, cluster: str, stop: asyncio.Event, log: Log
) -> BaselineBandWatch | None:
    """Build it for one cluster, by its configured name; None: no series are chosen."""
    chosen = chosen_series(settings)
    if not chosen.filters:
        return None
    return BaselineBandWatch(
        BaselineList(lambda: store.engine, cluster),
        chosen,
        utc_now=utc_now,
        stop=stop,
        log=log,
    )


def chosen_series(settings: MetricsSettings) -> ChosenSeries:
    """Return which series the settings choose."""
    return ChosenSeries(filters=tuple(_filters(settings)), limit=settings.max_baseline_series)


def _filters(settings: MetricsSettings) -> Iterator[SeriesFilter]:
    """Yield one filter per metric; patterns of names that its series do not have are left out."""
    for metric in settings.chosen_metrics():
        yield SeriesFilter(
            metric=metric.value,
            topic=None if metric is Metric.ABORT_RATIO else settings.baseline_topics,
            group=settings.baseline_groups if metric in COMMIT_METRICS else None,
            has_band=True,
        )
