"""The whole command: missed baseline runs in order, masks of each, the last one published, also at a later try."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from rules.errors import ConflictError, StoreError
from service.history.folding import Folded
from service.jobs.baseline_run.lock import alone
from service.jobs.baseline_run.reporting import JsonObject, line_of
from service.jobs.baseline_run.running import CompletedRuns, NightlyOrder, planned, run_missing
from service.storage.baselines.alert_windows import AlertWindow
from service.storage.baselines.publishing import Published, Publishing
from service.storage.baselines.run_files import RunPlace
from tests.spark.weeks import DAYS, day_at, make_weeks

NOW = datetime(2026, 4, 1, 1, 0, tzinfo=UTC)  # the night after the last day


@dataclass
class Store:
    """A database without one: it remembers what it was asked for."""

    is_away: bool = False
    queries: list[tuple[str, datetime, datetime]] = field(default_factory=list)
    published: list[RunPlace] = field(default_factory=list)

    def windows(self, cluster: str, begin: datetime, end: datetime) -> Sequence[AlertWindow]:
        self.queries.append((cluster, begin, end))
        return []

    def publish(self, place: RunPlace, cluster: str, now: datetime) -> Published:
        if self.is_away:
            raise StoreError("the connection was lost", retryable=True)
        assert cluster == "c"
        assert now <= NOW
        self.published.append(place)
        return Published(
            outcome=Publishing.PUBLISHED,
            run_id=place.run_id,
            series=40,
            unlabelled=0,
            dropped=(),
            seconds=0.1,
        )


def order(path: Path) -> NightlyOrder:
    return NightlyOrder(
        history=str(path / "history"),
        data_directory=path / "data",
        master="local[1]",
        conf={},
        timeout_seconds=600,
        keep_days=3,
        environment=os.environ,
    )


def make(path: Path, store: Store, told: list[JsonObject]) -> CompletedRuns:
    return run_missing(order(path), store, lambda: NOW, told.append)


def test_baseline_runs_are_made_in_order_and_published_when_the_database_is_back(
    tmp_path: Path,
) -> None:
    make_weeks(tmp_path / "history")
    store, told = Store(is_away=True), list[JsonObject]()
    with pytest.raises(StoreError, match="lost"):
        make(tmp_path, store, told)
    days = [day_at(one).isoformat() for one in range(DAYS)]
    assert [one["day"] for one in told if one["event"] == "baseline_run"] == days
    assert [end - begin for _, begin, end in store.queries][2].total_seconds() == 23 * 3600
    store.is_away = False
    done = make(tmp_path, store, told)
    assert done.runs == []
    assert [one.day for one in store.published] == [day_at(DAYS - 1)]
    assert told[-1]["event"] == "published"
    kept = sorted(one.name for one in (tmp_path / "history" / "runs").iterdir())
    assert kept == [f"day={day}" for day in days[-3:]]
    assert not (tmp_path / "data" / "nightly-scratch").exists()


def test_runs_of_days_that_are_not_over_are_removed(made: Path, tmp_path: Path) -> None:
    shutil.copytree(made, tmp_path / "history")
    store, told = Store(), list[JsonObject]()
    done = run_missing(order(tmp_path), store, lambda: NOW - timedelta(days=2), told.append)
    assert done.published_day == day_at(DAYS - 3)
    assert (told[0]["event"], told[0]["days"]) == ("removed", ["2026-03-30", "2026-03-31"])
    assert line_of(told[0]).endswith("a clock that was ahead: 2026-03-30, 2026-03-31")
    kept = sorted(one.name for one in (tmp_path / "history" / "runs").iterdir())
    assert kept == [f"day={day_at(one).isoformat()}" for one in range(3)]


def test_a_day_whose_hours_wait_is_not_learnt_without_them(tmp_path: Path) -> None:
    make_weeks(tmp_path / "history", days=1)
    told = list[JsonObject]()
    folded = Folded(unfinished={day_at(0): "hours/hour=2026-03-27T00 cannot be read: SLOW_DOWN"})
    with pytest.raises(StoreError, match=r"2026-03-27: .* SLOW_DOWN"):
        run_missing(order(tmp_path), Store(), lambda: NOW, told.append, lambda _: folded)
    assert not (tmp_path / "history" / "runs").exists()


def test_without_history_there_is_nothing_to_do(tmp_path: Path) -> None:
    told = list[JsonObject]()
    assert make(tmp_path, Store(), told).published is None
    where = tmp_path / "history"  # a mistyped folder is seen
    assert [one["why"] for one in told] == [f"there is no history yet at {where}"]
    assert planned(order(tmp_path), NOW) is None


def test_a_second_run_on_a_history_is_rejected(tmp_path: Path) -> None:
    make_weeks(tmp_path / "history", days=1)
    with alone(tmp_path / "history"), pytest.raises(ConflictError, match="another"):
        make(tmp_path, Store(), [])
