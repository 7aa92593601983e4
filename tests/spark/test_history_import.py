"""Import of history on real Spark: odd rows, own samples, labels; and weeks of a real Prometheus up to a shown band."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from rules.baseline.naming import parse_name
from rules.baseline.series import Metric, Series
from rules.facts.times import EPOCH
from service.cli.main import run
from service.history.blocks import CODE_OF, Block
from service.history.days import DayReader, day_bounds, write_day
from service.history.folder import Described, Folder, open_folder
from service.history.folding import alone_folding
from service.history.importing import Merged, merge
from service.history.labels import read_windows
from service.jobs.baseline_run.reporting import JsonObject
from service.jobs.history_import.input_files import inspect, with_plain_names
from service.jobs.history_import.running import ImportRequest, Surroundings, import_history
from service.runtime import clock
from service.settings import read_settings
from service.storage.database.opening import open_at_head
from service.terminal.exit_codes import ExitCode
from spark.history_import import transforms
from spark.history_import.order import ImportOrder
from spark.history_import.reading import read_files
from spark.job import RunFailedError
from spark.jobs import history_import
from tests.folders import new_folder
from tests.integration.api.given import Api
from tests.integration.api.shell import Shell
from tests.integration.serve.scraping import program, prometheus
from tests.integration.serving import serving

DAY = date(2026, 11, 20)
ZONE = "Europe/Berlin"
LAG = Series(cluster="c", metric=Metric.READ_COMMITTED_LAG, topic="a", partition=0, group="g/1")
NAME = "read_committed_lag/a/0/g/1"
MINUTE_MS = 60_000


@pytest.fixture(scope="module")
def configured(session: SparkSession) -> Iterator[SparkSession]:
    """Give the session with the job's own settings."""
    chosen = {
        name: value for name, value in history_import.CONF.items() if name.startswith("spark.sql.")
    }
    before = {name: session.conf.get(name, None) for name in chosen}
    for name, value in (chosen | {"spark.sql.shuffle.partitions": "2"}).items():
        session.conf.set(name, value)
    yield session
    for name, old in before.items():
        if old is None:
            session.conf.unset(name)
        else:
            session.conf.set(name, old)


def import_files(
    session: SparkSession,
    path: Path,
    *files: Path,
    capsys: pytest.CaptureFixture[str],
    times_zone: str | None = None,
) -> tuple[Folder, Mapping[str, Any], Merged]:
    """Import as the command does, on this session; return the folder, the survey and what was merged."""
    folder = open_folder(str(path), Described(cluster="c", time_zone=ZONE, buckets=2))
    order = order_of(path, files, times_zone=times_zone)
    history_import.run(session, replace(order, files=tuple(with_plain_names(order.files, path))))
    events = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    merged = merge(folder, order.staging, lambda *_: None)
    folder.remove_folder("imports")
    return folder, next(event for event in events if event["event"] == "survey"), merged


def order_of(
    path: Path, files: Sequence[Path], *, times_zone: str | None = None, dry_run: bool = False
) -> ImportOrder:
    return ImportOrder(
        files=inspect(files, has_zone=times_zone is not None).files,
        history=str(path),
        staging="imports/import=1",
        cluster="c",
        buckets=2,
        zone=ZONE,
        not_before_ms=day_bounds(DAY - timedelta(days=30), ZONE)[0],
        not_after_ms=day_bounds(DAY + timedelta(days=5), ZONE)[0],
        times_zone=times_zone,
        dry_run=dry_run,
    )


def samples(folder: Folder, day: date, series: Series = LAG) -> dict[int, float]:
    """Return the samples of a series by their times in ms."""
    reader, found = DayReader(folder, day), dict[int, float]()
    for bucket in reader.buckets():
        for block in reader.blocks(bucket):
            for row in np.flatnonzero(block.series_id == series.series_id):
                for place in np.flatnonzero(~np.isnan(block.values[row])):
                    at_ms = block.start_ms + int(place) * block.step_ms
                    assert at_ms not in found
                    found[at_ms] = float(block.values[row, place])
    return found


def ms(text: str) -> int:
    return (datetime.fromisoformat(text) - EPOCH) // timedelta(milliseconds=1)


def test_each_row_is_imported_or_counted_by_reason(
    configured: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "odd.csv"
    rows = [
        "series,time,value,label,comment",
        f"{NAME},2026-11-20T10:00:00Z,5,,x",
        f"{NAME},2026-11-20T11:01:00+01:00,6,,x",
        f'"read_committed_lag{{topic=""a"",partition=""0"",group=""g/1""}}",{ms("2026-11-20T10:02Z")},7,outage,',
        f"{NAME},{ms('2026-11-20T10:03Z') // 1000},8,no,",
        f"{NAME},2026-11-20T10:03:00Z,9,,the greater one of the same time",
        f"{NAME},2026-11-20T10:04:00,1,,",
        f"{NAME},yesterday,1,,",
        f"{NAME},2026-11-20T10:05:00Z,many,,",
        f"{NAME},2026-11-20T10:06:00Z,NaN,,",
        f"{NAME},2026-11-20T10:07:00Z,-1,,",
        f"{NAME},2025-11-20T10:06:00Z,1,,",
        f"{NAME},2036-11-20T10:06:00Z,1,,",
        "nonsense/a/0/g,2026-11-20T10:06:00Z,1,,",
        "read_committed_lag/a/x/g,2026-11-20T10:06:00Z,1,,",
        ",2026-11-20T10:06:00Z,1,,",
    ]
    file.write_text("\ufeff" + "\n".join(rows), encoding="utf-8")
    folder, survey, merged = import_files(configured, tmp_path / "h", file, capsys=capsys)
    reasons = (
        *("time_without_zone", "bad_time", "bad_value", "no_value", "negative_value", "too_old"),
        *("in_the_future", "unknown_metric", "wrong_labels", "series_syntax"),
    )
    assert survey["rejected"] == dict.fromkeys(sorted(reasons), 1)
    assert survey["examples"]["bad_time"] == f"{NAME}, yesterday, 1"
    begin = ms("2026-11-20T10:00Z")
    expected = {begin + place * MINUTE_MS: value for place, value in enumerate([5, 6, 7, 9])}
    assert samples(folder, DAY) == expected
    assert merged.samples == 4
    window = [LAG.series_id, begin + 2 * MINUTE_MS, begin + 3 * MINUTE_MS]
    assert read_windows(folder, DAY).tolist() == [window]


def test_times_of_parquet_are_read_by_their_type(
    configured: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    times = [ms("2026-11-20T10:00Z"), ms("2026-11-20T10:01Z")]
    civil = pa.array([at + 3_600_000 for at in times], pa.timestamp("ms"))
    kinds = {
        "zoned": (pa.array(times, pa.timestamp("ms", "UTC")), 0),
        "ns": (pa.array([at * 10**6 for at in times], pa.timestamp("ns", "UTC")), 1),
        "civil": (civil, 2),
        "seconds": (pa.array([at / 1000 for at in times], pa.float64()), 3),
    }
    files = []
    for kind, (column, partition) in kinds.items():
        table = {"series": [f"open_span/a/{partition}"] * 2, "time": column, "value": [1, 2]}
        files.append(tmp_path / f"{kind}.parquet")
        pq.write_table(pa.table(table), files[-1])
    folder, survey, _ = import_files(
        configured, tmp_path / "h", *files, capsys=capsys, times_zone=ZONE
    )
    assert survey["rejected"] == {}
    for _, partition in kinds.values():
        series = parse_name(f"open_span/a/{partition}", "c")
        assert samples(folder, DAY, series) == {times[0]: 1.0, times[1]: 2.0}


def test_own_samples_win_and_a_second_import_changes_nothing(
    configured: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, file = tmp_path / "h", tmp_path / "lag.csv"
    folder = open_folder(str(path), Described(cluster="c", time_zone=ZONE, buckets=2))
    begin = ms("2026-11-20T10:00Z")
    own = np.array([[100, np.nan, np.nan, np.nan, 104]], np.float32)  # at 0, 60 and a half, 120 s
    block = Block(
        series_id=np.array([LAG.series_id]),
        metric=np.array([CODE_OF[LAG.metric]], np.uint8),
        start_ms=begin,
        step_ms=30_000,
        values=own,
    )
    write_day(folder, DAY, [block])
    lines = [f"{NAME},{begin + place * MINUTE_MS},{place}" for place in range(4)]
    file.write_text("\n".join(["series,time,value", *lines]), encoding="utf-8")
    _, _, merged = import_files(configured, path, file, capsys=capsys)
    expected = {
        begin: 100.0,
        begin + MINUTE_MS: 1.0,
        begin + 2 * MINUTE_MS: 104.0,
        begin + 3 * MINUTE_MS: 3.0,
    }
    assert samples(folder, DAY) == expected
    assert (merged.samples, merged.kept) == (2, 2)
    before = contents(path)
    _, _, again = import_files(configured, path, file, capsys=capsys)
    assert (again.samples, again.kept, again.days) == (0, 4, [])
    assert contents(path) == before


def test_files_that_are_named_are_read_and_no_others(
    configured: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "_weeks[1]"
    folder.mkdir()
    names = [
        "lag[1].csv",
        "w*.csv",
        "_x.csv",
        ".y.csv",
        "{a}?\\.csv",
        "1:00.csv",
        "week.csv",
        "lag1.csv",
    ]
    for partition, name in enumerate(names):
        row = f"open_span/a/{partition},2026-11-20T10:00:00Z,1"
        (folder / name).write_text(f"series,time,value\n{row}\n", encoding="utf-8")
    files = [folder / name for name in names[:6]]
    _, survey, merged = import_files(configured, tmp_path / "h", *files, capsys=capsys)
    assert survey["metrics"]["open_span"]["rows"] == survey["series"] == merged.samples == 6


def test_a_survey_is_small_however_many_names_are_wrong(
    configured: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "many.csv"
    at = "2026-11-20T10:00:00Z,1"
    wrong = [f"{'x' * 200}{place}/a,{at}" for place in range(1000)]
    right = [f"open_span/a/{place},{at}" for place in range(3)]
    file.write_text("\n".join(["series,time,value", *wrong, *right]), encoding="utf-8")
    order = order_of(tmp_path / "h", [file], dry_run=True)
    rows = [row.asDict() for row in transforms.survey(read_files(configured, order)).collect()]
    assert len(rows) == 4
    found = history_import.survey_of(rows, "c")
    assert found.rejected == {"unknown_metric": 1000}
    assert found.examples == {"unknown_metric": "x" * 160}
    monkeypatch.setattr(history_import, "MOST_SERIES", 2)
    with pytest.raises(RunFailedError, match="more than 2 series: import them in parts"):
        history_import.run(configured, order)


def contents(path: Path) -> dict[str, bytes]:
    return {str(file): file.read_bytes() for file in path.rglob("*") if file.is_file()}


def test_a_dry_run_counts_and_writes_nothing(
    configured: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, path = tmp_path / "lag.csv", tmp_path / "h"
    file.write_text(f"series,time,value\n{NAME},2026-11-20T10:00:00Z,1\n", encoding="utf-8")
    history_import.run(configured, order_of(path, [file], dry_run=True))
    events = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [event["series"] for event in events if event["event"] != "progress"] == [1]
    assert not path.exists()


def test_an_interrupted_import_leaves_nothing(tmp_path: Path) -> None:
    file, path = tmp_path / "lag.csv", tmp_path / "h"
    at = clock.utc_now() - timedelta(days=1)
    file.write_text(f"series,time,value\n{NAME},{at.isoformat()},1\n", encoding="utf-8")
    request = ImportRequest(
        files=[file],
        queries=[],
        span=None,
        history=str(path),
        described=Described(cluster="c"),
        data_directory=tmp_path / "data",
        times_zone=None,
        kept=timedelta(days=90),
        master="local[1]",
        conf={},
        timeout_seconds=600,
        environment=os.environ,
        dry_run=False,
    )

    def report(event: JsonObject) -> None:
        if event["event"] == "packed":
            assert list(path.glob("imports/*/days/*/*.parquet"))
            raise KeyboardInterrupt

    here = Surroundings(
        now=clock.utc_now(),
        report=report,
        pause=clock.pause,
        folding=lambda folder: alone_folding(path / folder.described.cluster),
    )
    with pytest.raises(KeyboardInterrupt):
        import_history(request, None, here)
    assert {file.name for file in path.rglob("*")} == {"history.json", "nightly.lock"}
    assert not (tmp_path / "data" / "nightly-scratch").exists()


DAYS = 7
STEP = 300
REWIND_AT = 4 * 86_400  # seconds after the begin: a reset of the group's offsets


@contextmanager
def days_of_prometheus(folder: Path, begin: int) -> Iterator[str]:
    """Run a server that has days of kafka_exporter's series."""
    times = range(begin, begin + DAYS * 86_400, STEP)
    lines = ["# TYPE kafka_consumergroup_lag gauge"]
    labels = 'consumergroup="billing",topic="orders",partition="3"'
    for at in times:
        busy = 300 if 8 <= at // 3600 % 24 < 18 else 0
        lines.append(f"kafka_consumergroup_lag{{{labels}}} {1000 + busy + at // STEP % 7} {at}")
    lines.append("# TYPE kafka_consumergroup_current_offset gauge")
    for at in times:
        offset = 10**6 + 20 * (at - begin) - (500_000 if at - begin >= REWIND_AT else 0)
        lines.append(f"kafka_consumergroup_current_offset{{{labels}}} {offset} {at}")
    text = folder / "weeks.om"
    text.write_text("\n".join([*lines, "# EOF", ""]), encoding="utf-8")
    words = ["tsdb", "create-blocks-from", "openmetrics", str(text), str(folder / "tsdb")]
    subprocess.run([program("promtool"), *words], check=True, capture_output=True)
    kept = "--storage.tsdb.retention.time=90d"
    with prometheus(folder, [], options=[kept]) as server:
        yield server.address


@pytest.fixture
def data() -> Iterator[Path]:
    """Give a data directory in which PostgreSQL can work."""
    folder = new_folder()
    yield folder
    shutil.rmtree(folder)


def test_days_of_a_prometheus_become_a_band_that_is_shown(
    tmp_path: Path, data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    today = datetime.combine(clock.utc_now().date(), datetime.min.time(), UTC)
    begin = int((today - timedelta(days=DAYS)).timestamp())
    place = ["--data-dir", str(data), "--cluster", "c"]
    with days_of_prometheus(tmp_path, begin) as address:
        words = ["history", "import", "--prometheus", address, "--exporter", "kafka_exporter"]
        span = ["--from", datetime.fromtimestamp(begin, UTC).isoformat(), "--step", "5m"]
        assert run([*words, *span, *place, "-o", "json"]) == ExitCode.OK
    imported = json.loads(capsys.readouterr().out)
    assert imported["metrics"]["read_uncommitted_lag"]["rows"] >= DAYS * 288
    assert "1 offsets went back: no rate is made of that" in imported["notes"]
    folder = open_folder(str(data / "history"))
    rate = parse_name("consume_rate/orders/3/billing", "c")
    rates = samples(folder, (today - timedelta(days=DAYS - 4)).date(), rate)
    assert set(rates.values()) == {20.0}  # the step back is a gap
    assert (begin + REWIND_AT) * 1000 not in rates
    assert run(["nightly", "run", *place]) == ExitCode.OK
    settings = read_settings(
        os.environ, flags={"kafka": {"name": "c"}, "service": {"data_dir": str(data)}}
    )
    capsys.readouterr()
    with open_at_head(settings) as engine:
        api = Api(engine, "c", now=clock.utc_now())
        with serving(api.app) as running:
            shell = Shell(api, "http://{}:{}".format(*running.address), capsys)
            shown = shell(
                "baselines show --topic orders --metric read_uncommitted_lag --at",
                f"{(today - timedelta(days=1)).date()}T12:10:00Z",
            )
    assert "usual for" in shown
