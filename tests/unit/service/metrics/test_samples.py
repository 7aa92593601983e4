"""Every metric of a partition or a commit has its column, so that the limits count rightly."""

from __future__ import annotations

from rules import names
from service.metrics.open_transactions import OpenTransactions
from service.metrics.samples import (
    COMMIT_COLUMNS,
    PARTITION_COLUMNS,
    TIME_LAGS,
    blind_samples,
    write_samples,
)
from service.metrics.selection import SeriesLimits
from service.metrics.table import SeriesTable
from tests.factories import snapshot
from tests.unit.service.metrics.reading import TOTALS


def test_every_metric_of_a_partition_has_a_column() -> None:
    needs_memory = {names.LAST_STABLE_OFFSET_AGE}
    assert {*PARTITION_COLUMNS} == {*names.PARTITION_METRICS} - needs_memory


def test_every_metric_of_a_commit_has_a_column() -> None:
    assert {*COMMIT_COLUMNS, *TIME_LAGS} == {*names.COMMIT_METRICS}


def test_metrics_come_in_the_order_of_the_names() -> None:
    seen = snapshot()
    table = SeriesTable.of(seen, SeriesLimits())
    found = OpenTransactions.unjudged(len(seen.partitions))
    written = write_samples(seen, TOTALS, table, found)
    assert tuple(metric for metric, _ in written) == names.METRICS


def test_metrics_of_a_blind_round_come_in_the_same_order() -> None:
    assert tuple(blind_samples("default", TOTALS)) == (
        *names.ENDED_METRICS,
        *names.SEQUENCE_METRICS,
        *names.SELF_METRICS,
    )
