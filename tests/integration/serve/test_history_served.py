"""A real service keeps history: rounds survive kill -9, become hours and then days."""

from __future__ import annotations

import math
from datetime import date
from pathlib import Path

import pytest

from rules.baseline.series import Metric, Series
from service.history.days import DayReader, days_of
from service.history.folder import Folder, open_folder
from service.history.folding import fold_due
from service.runtime.clock import wait_until
from tests.integration.serve.conftest import Serve
from tests.integration.serve.kafka import Kafka
from tests.packed import read_series, samples_of

pytestmark = pytest.mark.integration

ROUNDS = 6
WRITTEN = 'tidemark_history_rounds_total{cluster="default",outcome="written"}'


def samples(folder: Folder) -> dict[int, list[float]]:
    """Return all samples by series, in the order of time."""
    found: dict[int, list[float]] = {}
    for day in days_of(folder):
        reader = DayReader(folder, day)
        rows = [one for bucket in reader.buckets() for one in reader.blocks(bucket)]
        for series_id, by_time in samples_of(rows).items():
            found.setdefault(series_id, []).extend(by_time[at] for at in sorted(by_time))
    return found


def test_rounds_survive_a_kill_and_become_a_day(serve: Serve, kafka: Kafka, folder: Path) -> None:
    kafka.commit("reader", 4)
    first = serve(settings={"HISTORY__TIME_ZONE": "Europe/Berlin"})
    first.wait_ready()
    assert wait_until(lambda: first.metrics().get(WRITTEN, 0) >= ROUNDS, timeout_seconds=180)
    first.kill()
    again = serve(settings={"HISTORY__TIME_ZONE": "Europe/Berlin"})
    again.wait_rounds(ROUNDS)
    hours = folder / "data" / "history" / "hours"
    assert wait_until(lambda: any(hours.glob("*/*.parquet")), timeout_seconds=180), again.reported()
    shown = again.metrics()
    assert shown['tidemark_history_up{cluster="default"}'] == 1
    assert shown['tidemark_history_folder_up{cluster="default"}'] == 1
    assert shown['tidemark_history_rounds_total{cluster="default",outcome="lost"}'] == 0
    assert shown['tidemark_history_series{cluster="default"}'] > 0
    assert again.stop() == 0

    history = open_folder(str(folder / "data" / "history"))
    assert history.described.time_zone == "Europe/Berlin"
    assert fold_due(history, before=date(2200, 1, 1), lock=folder / "lock").days
    lag = Series(
        cluster="default",
        metric=Metric.READ_COMMITTED_LAG,
        topic=kafka.topic,
        partition=0,
        group=kafka.group("reader"),
    )
    seen = samples(history)
    assert len(seen[lag.series_id]) >= ROUNDS // 2  # of the first process; two may share a place
    assert set(seen[lag.series_id]) == {6.0}
    assert lag in {labels for _, labels, _ in read_series(history)}
    assert not any(math.isinf(value) for values in seen.values() for value in values)
