"""`tidemark sandbox history` writes what history reads, and removes nobody's history."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from datetime import date
from pathlib import Path

import numpy as np
import pytest

from rules.errors import ConflictError, SandboxError, StoreError
from service.cli.main import run
from service.history.days import DayReader, days_of
from service.history.dictionary import Dictionary
from service.history.folder import Described, open_folder
from service.jobs.baseline_run.lock import alone
from service.runtime.children import TREE
from service.runtime.clock import wait_until
from service.sandbox.simulator.defaults import CLUSTER
from service.sandbox.simulator.simulation import Simulation, SimulationRequest
from service.sandbox.simulator.writing import LABELS_FILE, write_history
from service.terminal.exit_codes import ExitCode
from spark.inputs import buckets_of
from spark.places import Place
from tests.packed import read_series

pytestmark = pytest.mark.integration

WANTED = SimulationRequest(
    seed=3, series=40, weeks=1, end=date(2026, 3, 30), zones=("Europe/Berlin",)
)
COMMAND = ["sandbox", "history", "--weeks", "1", "--series", "20", "--end", "2026-03-30"]


def test_what_is_simulated_is_read_back(tmp_path: Path) -> None:
    told: list[date] = []
    written = write_history(
        Simulation(WANTED), str(tmp_path), replace=False, progress=lambda day, _: told.append(day)
    )
    folder = open_folder(str(tmp_path))
    assert days_of(folder) == told == WANTED.days
    made = Simulation(WANTED)
    assert {labels for _, labels, _ in read_series(folder)} == set(made.series)
    for day, blocks in made.days():
        reader = DayReader(folder, day)
        found = {
            one: row
            for bucket in reader.buckets()
            for block in reader.blocks(bucket)
            for one, row in zip(block.series_id.tolist(), block.values, strict=True)
        }
        for block in blocks:
            for one, row in zip(block.series_id.tolist(), block.values, strict=True):
                np.testing.assert_array_equal(found.pop(one), row)
        assert not found
    assert written.samples == sum(b.values.size for _, d in Simulation(WANTED).days() for b in d)


def test_the_command_writes_the_truth_beside_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    url = f"file://{tmp_path}/simulated"
    assert run([*COMMAND, "--history", url, "-o", "json"]) == ExitCode.OK
    told = json.loads(capsys.readouterr().out)
    kept = json.loads((tmp_path / "simulated" / LABELS_FILE).read_text(encoding="utf-8"))
    assert kept == told["simulated"]
    assert told["samples"] == 20 * 120 * (7 * 24 - 1)
    assert run([*COMMAND, "--history", url]) == ExitCode.SANDBOX
    assert "--replace" in capsys.readouterr().err
    again = [*COMMAND, "--history", url, "--replace", "--zone", "UTC"]
    assert run(again) == ExitCode.OK
    assert open_folder(url).described.time_zone == "UTC"


def test_a_dry_run_writes_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*COMMAND, "--history", str(tmp_path / "none"), "--dry-run"]) == ExitCode.OK
    assert "Would simulate 1 week, 2026-03-24 to 2026-03-30" in capsys.readouterr().out
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "options", [["--zone", "Moon/Crater"], ["--end", "1970-01-05"], ["--step", "7"]]
)
def test_what_cannot_be_simulated_is_a_usage_error(options: list[str]) -> None:
    assert run([*COMMAND, *options, "--dry-run"]) == ExitCode.USAGE


@pytest.mark.parametrize("cluster", ["production", CLUSTER])
@pytest.mark.parametrize("replace", [False, True])
def test_a_history_that_is_not_simulated_stays(
    tmp_path: Path, cluster: str, *, replace: bool
) -> None:
    theirs = open_folder(
        str(tmp_path), Described(cluster=cluster, time_zone="Europe/Berlin", buckets=4)
    )
    made = Simulation(WANTED)
    Dictionary(theirs).add({one.series_id: one for one in made.series}, 0)
    before = sorted(path for path in tmp_path.rglob("*") if path.is_file())
    with pytest.raises((SandboxError, StoreError)):
        write_history(made, str(tmp_path), replace=replace, progress=lambda *_: None)
    assert sorted(path for path in tmp_path.rglob("*") if path.is_file()) == before


@pytest.mark.parametrize("part", ["runs", "hours", "masks"])
def test_a_folder_of_somebody_else_stays(tmp_path: Path, part: str) -> None:
    theirs = tmp_path / part / "mine.txt"
    theirs.parent.mkdir()
    theirs.write_text("mine", encoding="utf-8")
    with pytest.raises(SandboxError, match="not simulated"):
        write_history(Simulation(WANTED), str(tmp_path), replace=True, progress=lambda *_: None)
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == [theirs]


@pytest.mark.parametrize("is_replaced", [False, True])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_weeks_that_were_broken_off_are_no_history(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    number: signal.Signals,
    *,
    is_replaced: bool,
) -> None:
    folder = tmp_path / "weeks"
    command = [*COMMAND, "--history", str(folder)]
    if is_replaced:
        assert run(command) == ExitCode.OK
    _broken_off([*command, "--weeks", "104", "--replace"], folder, number)
    capsys.readouterr()
    nights = ["nightly", "run", "--data-dir", str(tmp_path / "data"), "--history", str(folder)]
    for one in ([*nights, "--dry-run"], nights):
        assert run(one) == ExitCode.STORE
        told = capsys.readouterr().err
        assert "is not whole" in told
        assert "run it again, or remove the folder" in told
    with pytest.raises(OSError, match="broken off"):
        buckets_of(Place(str(folder)))
    # A service must not take it for its own either.
    with pytest.raises(StoreError, match="not whole"):
        open_folder(str(folder), Described(cluster=CLUSTER, time_zone="Europe/Berlin"))
    assert run(command) == ExitCode.OK
    assert "made from the start" in capsys.readouterr().err
    assert len(days_of(open_folder(str(folder)))) == 7
    assert buckets_of(Place(str(folder))) == 8


def _broken_off(command: list[str], folder: Path, number: signal.Signals) -> None:
    """Run a command of many weeks, and end it when it has written some days."""
    process = subprocess.Popen(
        [sys.executable, "-m", "service", *command],
        cwd=TREE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    before = "day=2024-04-05"  # the fourth of 104 weeks that end on 2026-03-30
    assert wait_until(
        lambda: process.poll() is not None or (folder / "days" / before).exists(),
        timeout_seconds=180,
        poll_seconds=0.01,
    )
    process.send_signal(number)
    assert process.wait(60) in {-number, ExitCode.INTERRUPTED}


def test_weeks_are_not_removed_while_a_night_learns_from_them(tmp_path: Path) -> None:
    made = Simulation(WANTED)
    write_history(made, str(tmp_path), replace=False, progress=lambda *_: None)
    with alone(tmp_path), pytest.raises(ConflictError, match="wait for its end"):
        write_history(made, str(tmp_path), replace=True, progress=lambda *_: None)
    assert days_of(open_folder(str(tmp_path))) == WANTED.days
