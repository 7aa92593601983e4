"""A real service keeps history: rounds survive kill -9, become hours and then days."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from datetime import date
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from rules.baseline.series import Metric, Series
from service.history.days import DayReader, days_of
from service.history.folder import Folder, open_folder
from service.history.folding import fold_due
from service.runtime.clock import wait_until
from tests.integration.serve.conftest import Serve
from tests.integration.serve.kafka import Kafka
from tests.integration.serve.served import ROOT, Document, Served, plain_environment
from tests.packed import read_series, samples_of

pytestmark = pytest.mark.integration

OFFSETS = ("log_start_offset", "last_stable_offset", "high_watermark", "log_end_offset")
LAGS = ("committed_offset", "read_committed_lag", "read_uncommitted_lag")
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


def read_between_rounds(served: Served, kafka: Kafka) -> Document:
    """Return what `collect` reads while nothing changes, with a round before it and one after it."""
    served.wait_rounds(2)
    words = ("--once", "-o", "json", "--bootstrap-servers", kafka.bootstrap)
    scope = ("--topics", kafka.topic, "--groups", f"{kafka.topic}.*")
    read: Document = json.loads(run("collect", *words, *scope).stdout)
    served.wait_rounds(2)
    return read


def offsets_of(read: Document) -> list[dict[str, Any]]:
    """Return the four offsets of each partition in a document of `collect`."""
    return [{name: row[name] for name in OFFSETS} for row in read["partitions"]]


def assert_known_later(served: Served, kafka: Kafka, read: Document) -> None:
    """Assert that a service knows what `collect` has read once: offsets, commits and lags."""
    group = quote(kafka.group("past"))
    asked = served.document(f"/api/v1/at?time={quote(read['taken_at'])}&group={group}")
    when = asked["read_at"] or asked["before"]  # a slow round may be further away than an interval
    server = ("--server", served.address, "-o", "json")
    told = run("at", when, f"{kafka.topic}-0", *server)
    assert told.returncode == 0, told.stdout + told.stderr
    found = json.loads(told.stdout)
    assert [{name: found["partition"][name] for name in OFFSETS}] == offsets_of(read)
    for row in read["groups"]:
        path = f"/api/v1/at?time={quote(when)}&group={quote(row['group'])}"
        (commit,), (truth,) = served.document(path)["commits"], row["commits"]
        assert {name: commit[name] for name in LAGS} == {name: truth[name] for name in LAGS}


def run(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "service", *words],
        cwd=ROOT,
        env=plain_environment(),
        capture_output=True,
        text=True,
        check=False,
        timeout=180,
    )


def test_rounds_survive_a_kill_and_become_a_day(serve: Serve, kafka: Kafka, folder: Path) -> None:
    kafka.commit("reader", 4)
    kafka.commit("past", 3)
    first = serve(settings={"HISTORY__TIME_ZONE": "Europe/Berlin"})
    first.wait_ready()
    assert wait_until(lambda: first.metrics().get(WRITTEN, 0) >= ROUNDS, timeout_seconds=180)
    before = read_between_rounds(first, kafka)
    first.kill()
    kafka.commit("past", 9)
    kafka.expire_below(2)
    again = serve(settings={"HISTORY__TIME_ZONE": "Europe/Berlin"})
    again.wait_rounds(ROUNDS)
    after = read_between_rounds(again, kafka)
    assert offsets_of(before) != offsets_of(after)
    for truth in (before, after):
        assert_known_later(again, kafka, truth)
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
