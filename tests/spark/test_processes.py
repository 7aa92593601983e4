"""The job as it really runs: alone, on a cluster, killed, too slow."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from rules.errors import BaselineRunError
from service.jobs.baseline_run.spark_process import run_job
from service.runtime.children import TREE
from service.runtime.clock import monotonic, pause, wait_until
from spark.places import UNFINISHED
from tests.spark.processes import (
    ALL_DAYS,
    LIGHT,
    WAIT_SECONDS,
    cluster,
    family,
    kill_family,
    order,
    run,
)
from tests.spark.weeks import BUCKETS, files_of_runs, make_weeks

KILLS = int(os.environ.get("NIGHTLY_KILLS", "1"))


@pytest.fixture
def fresh(tmp_path: Path) -> Path:
    """Return a history without runs."""
    path = tmp_path / "history"
    make_weeks(path)
    return path


def test_a_cluster_makes_the_same_files(made: Path, fresh: Path, tmp_path: Path) -> None:
    small = {
        "spark.executor.memory": "512m",
        "spark.executor.cores": "1",
        "spark.executor.extraJavaOptions": LIGHT,
    }
    (tmp_path / "cluster").mkdir()
    with cluster(tmp_path / "cluster") as master:
        runs = run(order(fresh, tmp_path / "scratch", master=master, conf=small, days=ALL_DAYS[:2]))
    assert [one["is_new"] for one in runs] == [True, True]
    assert files_of_runs(fresh).items() <= files_of_runs(made).items()


def test_a_baseline_run_that_is_killed_is_made_the_same_by_the_next_try(
    made: Path, fresh: Path, tmp_path: Path
) -> None:
    """Kill everything at random points: what is complete by then is right, the rest is made anew.

    It runs on one core, and makes what two cores make.
    """
    chance = random.Random(5)
    scratch = tmp_path / "scratch"
    for place in range(KILLS):
        shutil.rmtree(fresh / "runs", ignore_errors=True)
        files = chance.randrange(BUCKETS * 2)
        killed = _killed_once(fresh, scratch, files, chance.uniform(0, 0.1))
        assert killed, f"kill {place} came too late, after more than {files} files"
        whole = {one.parent for one in (fresh / "runs").rglob("run.json")}
        for name, content in files_of_runs(fresh).items():
            is_part = (fresh / "runs" / name).parent in whole and UNFINISHED not in name
            assert not is_part or content == files_of_runs(made)[name]
    run(order(fresh, scratch))
    assert files_of_runs(fresh) == files_of_runs(made)
    assert not [name for name in files_of_runs(fresh) if UNFINISHED in name]


def _killed_once(history: Path, scratch: Path, files: int, after_seconds: float) -> bool:
    """Run the job, and kill -9 all of it shortly after it has begun one file more than so many."""
    ended: list[bool] = []
    own = {one.pid for one in family(os.getpid())}

    def work() -> None:
        with suppress(BaselineRunError):
            run(order(history, scratch))
        ended.append(True)

    thread = threading.Thread(target=work)
    thread.start()
    runs = history / "runs"
    # A worker that was being forked may outlive the kill before, and write a file of its run.
    assert wait_until(
        lambda: bool(ended) or (len(_begun(runs)) > files and bool(_new_children(own))),
        timeout_seconds=WAIT_SECONDS,
        poll_seconds=0.01,
    )
    pause(after_seconds)
    # What psutil has waited for has ended with 0 for whoever waits after it: the job's word says nothing.
    killed = _new_children(own)
    for one in killed:
        kill_family(one.pid)
    thread.join(WAIT_SECONDS)
    return bool(killed)


def _new_children(own: set[int]) -> list[psutil.Process]:
    children = psutil.Process().children()
    return [one for one in children if one.pid not in own and one.status() != psutil.STATUS_ZOMBIE]


def _begun(runs: Path) -> set[Path]:
    """Return the files of runs, also those that are being written."""
    return set(runs.rglob("*bucket=*"))


def test_a_baseline_run_that_takes_too_long_is_ended_with_all_that_it_started(
    fresh: Path, tmp_path: Path
) -> None:
    own = {one.pid for one in family(os.getpid())}
    begun = monotonic()
    with pytest.raises(BaselineRunError, match="did not end within 3 s"):
        list(run_job(order(fresh, tmp_path / "scratch", timeout_seconds=3), os.environ))
    assert monotonic() - begun < WAIT_SECONDS
    assert not [one for one in family(os.getpid()) if one.pid not in own]
    assert not (fresh / "runs").exists()


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_spark_ends_with_whoever_started_it(
    fresh: Path, tmp_path: Path, number: signal.Signals
) -> None:
    program = (
        "import os, pathlib, sys\n"
        "from tests.spark.processes import order, run\n"
        "run(order(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])))\n"
    )
    starter = subprocess.Popen(
        [sys.executable, "-c", program, str(fresh), str(tmp_path / "scratch")],
        cwd=TREE,
        stderr=subprocess.DEVNULL,
    )
    assert wait_until(
        lambda: any(one.name() == "java" for one in family(starter.pid)),
        timeout_seconds=WAIT_SECONDS,
    )
    started = family(starter.pid)
    starter.send_signal(number)
    assert starter.wait(WAIT_SECONDS) != 0
    _, alive = psutil.wait_procs(started, timeout=WAIT_SECONDS)
    assert not alive


def test_a_failed_task_says_what_was_raised(fresh: Path, tmp_path: Path) -> None:
    """The folder of the first run is a file: no task can write there."""
    (fresh / "runs").write_bytes(b"")
    with pytest.raises(BaselineRunError, match="runs") as told:
        run(order(fresh, tmp_path / "scratch", days=ALL_DAYS[:1]))
    assert "\n" not in str(told.value)
    assert "Traceback" not in str(told.value)
