"""`make demo` as a user runs it: seen to the end, interrupted, and left running.

It starts a cluster of its own, so that it runs by itself, after the other tests.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import httpx2
import psutil
import pytest

from service.runtime import clock
from service.terminal.exit_codes import ExitCode
from tests.areas import slowness
from tests.folders import new_folder

pytestmark = [pytest.mark.integration, pytest.mark.timeout(2000)]

DEMO = (sys.executable, "-m", "service", "sandbox", "demo")
ACTS = 11
STORY_SECONDS = 360  # at most, on the machine of `tests/areas.toml`
END_SECONDS = 180
# A line of what the pager got: number, webhook-id, status, rule, and why or how it was answered.
GOT = re.compile(
    r"(?m)^ +(\d+)  [\d:]{8} UTC  ([0-9a-f-]{36})  \[(FIRING|RESOLVED):\d+\] (\w+) .*\((.+)\)"
    r"(?:  \[[\d.]+ s\])?$"  # behind the last one: how long the step took
)


@pytest.fixture
def folder() -> Iterator[Path]:
    made = new_folder()
    yield made
    shutil.rmtree(made)


@pytest.fixture
def home(folder: Path) -> Iterator[Mapping[str, str]]:
    """Give an environment whose temporary and state folders nobody else uses."""
    for name in ("tmp", "state"):
        (folder / name).mkdir()
    yield {
        **os.environ,
        "TMPDIR": str(folder / "tmp"),
        "XDG_STATE_HOME": str(folder / "state"),
    }
    left = processes_of(folder)
    for process in left:  # else they slow down every test that follows
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()
    assert left == [], "the demo left a process"


def processes_of(folder: Path) -> list[psutil.Process]:
    """Return the processes that name a folder or work in it."""

    def names_it(process: psutil.Process) -> bool:
        words = [*(process.info["cmdline"] or []), process.info["cwd"] or ""]
        return any(str(folder) in word for word in words)

    return [process for process in psutil.process_iter(["cmdline", "cwd"]) if names_it(process)]


def test_the_whole_story_is_seen_and_leaves_nothing(home: Mapping[str, str], folder: Path) -> None:
    told = subprocess.run(
        DEMO,
        env=home,
        capture_output=True,
        text=True,
        timeout=STORY_SECONDS * slowness(),
        check=False,
    )
    assert told.returncode == ExitCode.OK, told.stdout + told.stderr
    assert "was killed" not in told.stderr, told.stderr
    summary = told.stdout.partition("Summary")[2]
    assert summary.count(" seen ") == ACTS
    assert "NOT" not in summary
    check_what_the_pager_got(told.stdout)
    check_what_is_usual(told.stdout)
    assert list((folder / "tmp").iterdir()) == []


def check_what_the_pager_got(story: str) -> None:
    """Each notification arrived once, in order; the first request had been rejected."""
    got = GOT.findall(story.partition("What the pager got")[2])
    assert [int(row[0]) for row in got] == list(range(1, len(got) + 1))
    taken = [row for row in got if "answered" not in row[4]]
    assert len({row[1] for row in taken}) == len(taken) == len(got) - 1
    assert "answered 500" in got[0][4]
    last = {row[3]: row[2] for row in taken}
    assert last["Broker"] == last["sequence_gap_loss"] == "FIRING", "incidents, and what they did"
    # That it fires may be what was rejected: if it has ended by then, its end takes that place.
    assert last["transaction_hanging"] == "RESOLVED"
    [*_, end] = [row for row in taken if row[3] == "sequence_gap_reordering"]
    assert (end[2], end[4]) == ("FIRING", "some alerts resolved"), (
        "one was closed by hand, the other cost a transaction"
    )


def check_what_is_usual(story: str) -> None:
    """What the last run published is read from PostgreSQL, in plain words."""
    told = story.partition("What is usual")[2]
    assert re.search(
        r"21 baseline runs of 40 series, .* run [0-9a-f]{20} is in PostgreSQL", told
    ), told
    for metric in ("read_committed_lag_seconds", "produce_rate"):
        assert re.search(rf"{metric} of [a-z]+-\d+-0\b.*: usual for .+ is \S+ ", told), told
    assert re.search(
        r"tidemark backtest --rule record_error_rate_unusual --from [\d-]{10}: record_error_rate_unusual .* "
        r"would have fired 1 time: .*\n +.* UTC on \S+: .*; usual for .* is .*"
        r"\(simulated incident: error_step\)",
        told,
    ), told


def test_ctrl_c_ends_it_and_leaves_nothing(home: Mapping[str, str], folder: Path) -> None:
    with subprocess.Popen(DEMO, env=home, stdout=subprocess.PIPE, text=True) as demo:
        assert demo.stdout is not None
        for line in demo.stdout:
            if line.startswith("   did"):
                break
        demo.send_signal(signal.SIGINT)
        rest = demo.stdout.read()
        assert demo.wait(END_SECONDS) == ExitCode.INTERRUPTED, rest
    assert "Interrupted" in rest
    assert list((folder / "tmp").iterdir()) == []


def test_a_kept_demo_goes_on_until_it_is_ended(home: Mapping[str, str], folder: Path) -> None:
    kept = subprocess.run(
        [*DEMO, "--keep", "--acts", "1"],
        env=home,
        capture_output=True,
        text=True,
        timeout=STORY_SECONDS,
        check=False,
    )
    try:
        assert kept.returncode == ExitCode.OK, kept.stdout + kept.stderr
        (metrics,) = [line.split()[1] for line in kept.stdout.splitlines() if "/metrics" in line]
        page = httpx2.get(metrics).text
        assert "tidemark_kafka_partition_last_stable_offset{" in page
        status = metrics.replace("/metrics", "/api/v1/status")
        before = httpx2.get(status).json()["round"]["number"]
        assert clock.wait_until(
            lambda: httpx2.get(status).json()["round"]["number"] > before, timeout_seconds=180
        )
        again = subprocess.run(
            [*DEMO, "--keep"], env=home, capture_output=True, text=True, check=False
        )
        assert again.returncode == ExitCode.SANDBOX
        assert "--end" in again.stderr
    finally:
        ended = subprocess.run(
            [*DEMO, "--end"], env=home, capture_output=True, text=True, check=False
        )
    assert ended.returncode == ExitCode.OK, ended.stderr
    assert not (folder / "state/tidemark/demo").exists()


def test_there_may_be_nothing_to_end(home: Mapping[str, str]) -> None:
    ended = subprocess.run([*DEMO, "--end"], env=home, capture_output=True, text=True, check=False)
    assert ended.returncode == ExitCode.SANDBOX
    assert "No demo" in ended.stderr
    assert json.dumps(ended.stdout) == '""'
