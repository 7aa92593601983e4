"""Two nights of a cluster, the second with levels of 100 more."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path

from rules.baseline.series import Metric, Series
from service.history.days import write_day
from service.history.reading import MeasuredHistory
from service.storage.baselines.publishing import publish
from tests.baseline_run_files import DAY, DICTIONARY, Usual, write_run, write_series
from tests.factories import at
from tests.integration.api.given import Api
from tests.packed import block, history_folder

TUESDAY = "2026-03-03T13:10:00Z"  # 14:10 on the wall clock of Berlin
LAG, RATE = Metric.READ_COMMITTED_LAG_SECONDS, Metric.PRODUCE_RATE
ORDERS = Series(cluster="c", metric=LAG, topic="orders", partition=3, group="billing")
AUDIT = Series(cluster="c", metric=RATE, topic="audit_log", partition=0)
QUIET = Series(cluster="c", metric=LAG, topic="quiet", partition=0, group="billing")
CLIENT = Series(
    cluster="c",
    metric=Metric.CLIENT_RECORD_RETRY_RATE,
    topic="refunds",
    client_id="app/1:blue",
)
SERIES = (ORDERS, AUDIT, QUIET)
NAN = float("nan")


def measured_orders(path: Path) -> MeasuredHistory:
    """Return history in which `ORDERS` has four minutes from `TUESDAY` on, with a gap in the second one."""
    folder = history_folder(path)
    start = datetime.fromisoformat(TUESDAY)
    samples = block(
        [ORDERS.series_id],
        [[176.5, 178, NAN, NAN, 190, 200, 12_345, 180]],
        start_ms=int(start.timestamp()) * 1000,
    )
    write_day(folder, start.date(), [samples])
    return MeasuredHistory(path / "ahead", lambda: folder)


def publish_two_nights(api: Api, history: Path) -> None:
    """Publish run r0, then r1."""
    write_series(history, SERIES, schema=DICTIONARY)
    write_series(history, [CLIENT], part="0002")
    for night in range(2):
        level = 100.0 * night
        usual = [
            Usual(series=ORDERS, slots=336, profile="weekly", level=level, slope=0.5),
            Usual(series=CLIENT, level=level),
            Usual(series=AUDIT, level=level, changed_at_ms=1_772_409_600_000),
            Usual(series=QUIET, slots=0, outcome="sparse", reason="mostly_zero", profile="none"),
        ]
        place = write_run(history, usual, day=DAY + timedelta(days=night), run_id=f"r{night}")
        publish(api.engine, place, cluster=api.cluster, now=at(night))
