"""Reads drop-in pages back with prometheus-client's parsers."""

from __future__ import annotations

from rules.facts.snapshot import Snapshot
from rules.time_lag import TimeLags
from service.metrics.dropin.exporter import Exporter
from service.metrics.exposition import Exposition
from service.metrics.selection import SeriesLimits
from service.metrics.totals import SelfMetrics
from tests.unit.service.metrics.reading import OPENMETRICS, TOTALS, Family, families


def rendered(
    exporter: Exporter,
    seen: Snapshot,
    accept: str = OPENMETRICS,
    *,
    totals: SelfMetrics = TOTALS,
    limits: SeriesLimits | None = None,
    lags: TimeLags | None = None,
) -> dict[str, Family]:
    """Return what a scraper of an exporter's page gets; OpenMetrics is parsed strictly."""
    exposition = Exposition(limits)
    exposition.update(seen, totals, None, lags)
    body, _ = exposition.body(accept, gzip=False, exporter=exporter)
    return families(body, accept)
