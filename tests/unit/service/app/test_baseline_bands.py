"""The settings choose series by the names that these have."""

from __future__ import annotations

from rules.baseline.series import Metric
from service.app.baseline_bands import chosen_series
from service.settings.groups import MetricsSettings
from service.storage.baselines.reading import SeriesFilter


def test_nothing_is_chosen_by_default() -> None:
    assert chosen_series(MetricsSettings()).filters == ()


def test_a_pattern_chooses_only_among_series_that_have_such_a_name() -> None:
    settings = MetricsSettings(
        baseline_metrics="read_committed_lag, produce_rate,abort_ratio",
        baseline_topics="orders*",
        baseline_groups="billing",
        max_baseline_series=7,
    )
    chosen = chosen_series(settings)
    assert chosen.limit == 7
    assert chosen.filters == (
        SeriesFilter(
            metric=Metric.READ_COMMITTED_LAG, topic="orders*", group="billing", has_band=True
        ),
        SeriesFilter(metric=Metric.PRODUCE_RATE, topic="orders*", has_band=True),
        SeriesFilter(metric=Metric.ABORT_RATIO, has_band=True),
    )
