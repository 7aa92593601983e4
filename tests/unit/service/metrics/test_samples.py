"""Every metric of a partition or a commit has its column, so that the limits count rightly."""

from __future__ import annotations

from rules import names
from service.metrics.samples import COMMIT_COLUMNS, PARTITION_COLUMNS, samples_of
from service.metrics.selection import SeriesLimits
from service.metrics.table import SeriesTable
from service.metrics.totals import SelfMetrics
from tests.factories import snapshot


def test_every_metric_of_a_partition_has_a_column() -> None:
    assert tuple(PARTITION_COLUMNS) == names.PARTITION_METRICS


def test_every_metric_of_a_commit_has_a_column() -> None:
    assert tuple(COMMIT_COLUMNS) == names.COMMIT_METRICS


def test_metrics_come_in_the_order_of_the_names() -> None:
    seen = snapshot()
    table = SeriesTable.of(seen, SeriesLimits())
    assert tuple(samples_of(seen, SelfMetrics(version="0.1.0"), table)) == names.METRICS
