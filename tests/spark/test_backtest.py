"""A backtest on real Spark: what opens, with two settings, and that later days change nothing of earlier ones."""

from __future__ import annotations

import importlib.util
import json
import re
import shutil
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, date, datetime, time, timedelta
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as f

from rules.baseline.blocks import METRIC_CODES, Float32s
from rules.baseline.civil import civil_day
from rules.baseline.layout import DAYS as DAYS_FOLDER
from rules.baseline.layout import hour_folder
from rules.baseline.naming import name_of
from rules.baseline.series import Metric, Series
from rules.errors import StoreError
from service.cli.main import run
from service.history.blocks import Block
from service.history.days import write_day
from service.history.dictionary import Dictionary
from service.history.folder import Described, Folder, open_folder
from service.history.labels import add_windows
from service.jobs.backtest.planning import BacktestRequest, plan_backtest
from service.terminal.exit_codes import ExitCode
from spark.backtest.bucket import replay_bucket
from spark.backtest.order import BacktestOrder
from spark.backtest.transforms import buckets_and_settings, replay_buckets
from spark.long_form import read_samples

ZONE: Final = "Europe/Berlin"
FIRST: Final = date(2026, 3, 9)  # on the 29th the clocks go forward
DAYS: Final = 24
STEP_MS: Final = 300_000
HOUR_MS: Final = 3_600_000
BUCKETS: Final = 2
LONG, SHORT = 18, 20  # days with an incident of three hours, and with one of 40 minutes
SERIES: Final = [
    Series(cluster="c", metric=Metric.PRODUCE_RATE, topic="orders", partition=number)
    for number in range(4)
]
IDS: Final = np.array(sorted(series.series_id for series in SERIES), np.int64)
NAMES: Final = {series.series_id: name_of(series) for series in SERIES}
LONGER: Final = "produce_rate.open_seconds=3600"


def day_at(place: int) -> date:
    return FIRST + timedelta(days=place)


def noon(place: int) -> int:
    """Return 12 hours after a day's midnight."""
    return civil_day(day_at(place), ZONE).start_ms + 12 * HOUR_MS


def write(folder: Folder, place: int, factor: float = 1) -> None:
    """Write a day: rates with a daily cycle, of which one falls to zero at noon on two days."""
    calendar = civil_day(day_at(place), ZONE)
    count = calendar.samples(STEP_MS)
    hours = np.arange(count) * STEP_MS / HOUR_MS
    cycle = 1000 + 400 * np.sin(hours / 24 * 2 * np.pi)
    noise = np.random.default_rng(place).normal(0, 15, (len(IDS), count))
    values: Float32s = ((cycle + noise) * factor).astype(np.float32)
    lasts = {LONG: 36, SHORT: 8}.get(place, 0)  # samples
    values[0, 144 : 144 + lasts] = 0
    block = Block(
        series_id=IDS,
        metric=np.full(len(IDS), METRIC_CODES[Metric.PRODUCE_RATE], np.uint8),
        start_ms=calendar.start_ms,
        step_ms=STEP_MS,
        values=values,
    )
    write_day(folder, day_at(place), [block])


@pytest.fixture(scope="module")
def past(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a history with two incidents, one of them labelled; nobody changes it."""
    path = tmp_path_factory.mktemp("past")
    described = Described(cluster="c", time_zone=ZONE, buckets=BUCKETS)
    folder = open_folder(str(path), described)
    for place in range(DAYS):
        write(folder, place)
    Dictionary(folder).add({series.series_id: series for series in SERIES}, 0)
    label = [[int(IDS[0]), noon(LONG), noon(LONG) + 3 * HOUR_MS]]
    add_windows(folder, day_at(LONG), np.array(label, np.int64))
    return path


def order(path: Path, **changes: Any) -> BacktestOrder:
    options: dict[str, Any] = {
        "history": str(path),
        "zone": ZONE,
        "buckets": BUCKETS,
        "first_day": FIRST,
        "from_day": day_at(15),
        "to_day": day_at(DAYS - 1),
    }
    return BacktestOrder(**options | changes)


def openings(session: SparkSession, replayed: BacktestOrder) -> list[Mapping[str, Any]]:
    every = buckets_and_settings(session, replayed)
    rows = replay_buckets(every, replayed).collect()
    assert len(rows) == BUCKETS * len(replayed.settings)
    return [opening for row in rows for opening in json.loads(row["replayed"])["openings"]]


def test_the_command_shows_what_would_have_fired_with_two_settings(
    past: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = {path: path.stat().st_mtime_ns for path in past.rglob("*")}
    place = ["--history", str(past), "--data-dir", str(tmp_path), "--master", "local[2]"]
    words = ["backtest", *place, "--from", day_at(15).isoformat(), "--set", LONGER, "-o", "json"]
    assert run(words) == ExitCode.OK
    shown = json.loads(capsys.readouterr().out)
    now, changed = shown["results"]
    assert [opening["series"] for opening in now["openings"]] == [NAMES[int(IDS[0])]] * 2
    first, second = (datetime.fromisoformat(opening["opened_at"]) for opening in now["openings"])
    assert 0 <= first.timestamp() * 1000 - noon(LONG) <= 2 * STEP_MS
    assert 0 <= second.timestamp() * 1000 - noon(SHORT) <= 2 * STEP_MS
    assert [len(changed["openings"]), len(shown["only_now"]), shown["only_changed"]] == [1, 1, []]
    assert shown["only_now"] == [now["openings"][1]], "40 minutes are less than an hour"
    assert now["total"]["series_days"] == len(IDS) * (DAYS - 15)
    labels = now["labels"]
    assert (labels["incidents"], labels["found"], labels["false_openings"]) == (1, 1, 1)
    assert now["openings"][0]["explanation"].startswith("0 offsets/s; usual for ")
    assert {path: path.stat().st_mtime_ns for path in past.rglob("*")} == before


def test_later_days_change_nothing_of_earlier_ones(
    past: Path, session: SparkSession, tmp_path: Path
) -> None:
    shutil.copytree(past, tmp_path / "changed")
    folder = open_folder(str(tmp_path / "changed"))
    for place in range(SHORT + 1, DAYS):
        write(folder, place, factor=3)
    edge = civil_day(day_at(SHORT + 1), ZONE).start_ms
    usual, changed = (openings(session, order(path)) for path in (past, tmp_path / "changed"))
    early = [opening for opening in changed if opening["opened_ms"] < edge]
    assert early == usual
    assert len(usual) == 2
    assert len(changed) > len(early), "three times as much is unusual"


def test_what_is_labelled_as_an_incident_is_not_learnt(past: Path, tmp_path: Path) -> None:
    """With the whole day before it labelled, the band of an incident is that of the days before."""
    shutil.copytree(past, tmp_path / "labelled")
    folder = open_folder(str(tmp_path / "labelled"))
    day = civil_day(day_at(SHORT - 1), ZONE)
    label = [[int(IDS[0]), day.start_ms, day.end_ms]]
    add_windows(folder, day.day, np.array(label, np.int64))
    bucket = int(IDS[0]) % BUCKETS
    plain, labelled = (
        replay_bucket(order(path), bucket, 0).openings[1]["expected"]
        for path in (past, tmp_path / "labelled")
    )
    assert plain != labelled
    assert plain == pytest.approx(labelled, rel=0.05)


def test_a_damaged_file_is_a_day_without_data(past: Path, tmp_path: Path) -> None:
    shutil.copytree(past, tmp_path / "torn")
    bucket = int(IDS[0]) % BUCKETS
    name = f"day={day_at(LONG).isoformat()}/bucket={bucket:03d}.parquet"
    file = tmp_path / "torn" / DAYS_FOLDER / name
    file.write_bytes(file.read_bytes()[:-20])
    replayed = replay_bucket(order(tmp_path / "torn"), bucket, 0)
    assert list(replayed.damaged) == [day_at(LONG).isoformat()]
    [opening] = replayed.openings
    assert opening["opened_ms"] >= noon(SHORT), "what cannot be read opens nothing"


OUTSIDE: Final = ": it is from 2026-03-09 to 2026-04-01"


@pytest.mark.parametrize(
    ("words", "error"),
    [
        ("--from 2026-03-01", (ExitCode.USAGE, OUTSIDE)),
        ("--to 2026-04-02", (ExitCode.USAGE, OUTSIDE)),
        ("--from 2026-03-20 --to 2026-03-19", (ExitCode.USAGE, "is after --to 2026-03-19")),
        ("--series payments", (ExitCode.NOTHING_MATCHED, "no series of history")),
        ("--series orders --metric open_span", (ExitCode.NOTHING_MATCHED, "no series of history")),
        ("--master nonsense", (ExitCode.FAILED, "Spark does not start on nonsense")),
    ],
)
def test_what_cannot_be_replayed_is_said(
    words: str,
    error: tuple[ExitCode, str],
    past: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    place = ["--history", str(past), "--data-dir", str(tmp_path)]
    assert run(["backtest", *place, *words.split()]) == error[0]
    assert error[1] in capsys.readouterr().err


def test_a_day_that_is_not_folded_is_named_and_no_default(past: Path, tmp_path: Path) -> None:
    path = tmp_path / "waiting"
    shutil.copytree(past, path)
    hour = path / hour_folder(datetime.combine(day_at(DAYS - 1), time(12), UTC))
    hour.mkdir(parents=True)
    (hour / "waits.parquet").touch()
    request = BacktestRequest(
        history=str(path), master="local[1]", conf={}, timeout_seconds=60, environment={}
    )
    plan = plan_backtest(request)
    assert (plan.order.to_day, plan.not_folded) == (day_at(DAYS - 2), ())
    asked = plan_backtest(replace(request, to_day=day_at(DAYS - 1)))
    assert (asked.order.to_day, asked.not_folded) == (day_at(DAYS - 1), (day_at(DAYS - 1),))


def test_series_are_not_chosen_by_names_that_are_damaged(past: Path, tmp_path: Path) -> None:
    path = tmp_path / "unnamed"
    shutil.copytree(past, path)
    (path / "series" / "torn.parquet").write_bytes(b"torn")
    request = BacktestRequest(
        history=str(path), master="local[1]", conf={}, timeout_seconds=60, environment={}
    )
    assert plan_backtest(request).labels.unreadable == ("torn.parquet",)
    with pytest.raises(StoreError, match=r"damaged \(torn.parquet\)"):
        plan_backtest(replace(request, pattern=re.compile("orders")))


def test_without_spark_nothing_is_replayed(
    past: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _name: None)
    place = ["--history", str(past), "--data-dir", str(tmp_path)]
    assert run(["backtest", *place]) == ExitCode.NOT_INSTALLED
    assert "tidemark[nightly]" in capsys.readouterr().err


def test_samples_are_read_in_long_form(past: Path, session: SparkSession) -> None:
    samples = read_samples(session, str(past), day_at(LONG), day_at(LONG))
    zeros = samples.where(f.col("value") == 0)
    [row] = (
        zeros.groupBy("metric", "topic", "partition", "group", "client_id")
        .agg(f.count("*").alias("samples"), f.min(f.unix_millis("time")).alias("first"))
        .collect()
    )
    known = next(series for series in SERIES if series.series_id == int(IDS[0]))
    assert row.asDict() == {
        "metric": known.metric.value,
        "topic": known.topic,
        "partition": known.partition,
        "group": None,
        "client_id": None,
        "samples": 36,
        "first": noon(LONG),
    }
    assert samples.count() == len(IDS) * 288
    assert datetime.fromtimestamp(row["first"] / 1000, UTC).date() == day_at(LONG)
