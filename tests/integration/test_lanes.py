"""The areas of `make test` in lanes: nothing is lost of what they say, and all of them are ended."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from service.runtime.clock import wait_until
from tests.integration.serve.served import ROOT

pytestmark = pytest.mark.integration

SOON = 60.0
# Each area of `long | beside also` waits for a file of another lane: they run at the same time.
MAKEFILE = """
first: ; @echo first said
long: ; @echo long began; touch long; until [ -e also ]; do sleep 0.01; done; echo long ended
beside: ; @echo beside began at $$(nice); until [ -e long ]; do sleep 0.01; done; echo beside ended
also: ; @echo also said at $$(nice); echo 'FAILED tests/of_it.py::test'; touch also; exit 1
endless: ; @trap 'echo told; exit 1' INT; touch endless; while :; do sleep 0.01; done
forever: ; @trap 'echo heard; exit 1' INT; touch forever; while :; do sleep 0.01; done
never: ; @echo never
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "Makefile").write_text(MAKEFILE, encoding="utf-8")
    return tmp_path


def lanes(folder: Path, *stages: str, before: tuple[str, ...] = ()) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [*before, sys.executable, "-m", "tests.lanes", *stages],
        cwd=folder,
        env={"PATH": "/usr/bin:/bin", "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        text=True,
    )


def test_lanes_run_at_once_are_shown_whole_and_fail_the_run(folder: Path) -> None:
    own, low = os.nice(0), min(os.nice(0) + 10, 19)
    with lanes(folder, "first", "long | ~beside also", "first") as run:
        told, _ = run.communicate(timeout=SOON)
    assert run.returncode == 1
    shown, _, summary = told.partition("\nTime per area\n")
    assert [block.splitlines() for block in shown.split("\n== ")[1:]] == [
        ["first", "first said"],
        ["long", "long began", "long ended"],
        ["beside", f"beside began at {low}", "beside ended"],
        ["also", f"also said at {own}", "FAILED tests/of_it.py::test", *shown_of_make(shown)],
        ["first", "first said"],
    ]
    lines = [line.split() for line in summary.splitlines()]
    assert sorted(line[0] for line in lines[:5]) == ["also", "beside", "first", "first", "long"]
    assert [line[3:] for line in lines if line[0] == "also"] == [["FAILED"]]
    assert summary.splitlines()[-2:] == ["FAILED tests/of_it.py::test", "FAILED in also"]


def shown_of_make(shown: str) -> list[str]:
    return [line for line in shown.splitlines() if line.startswith("make")]


def test_on_one_core_they_run_one_after_the_other(folder: Path) -> None:
    (folder / "also").touch()  # what `long` waits for
    with lanes(folder, "long | beside", before=("taskset", "-c", "0")) as run:
        told, _ = run.communicate(timeout=SOON)
    assert run.returncode == 0, told
    assert "long ended\n\n== beside\nbeside began" in told


def test_an_interrupt_ends_every_lane_and_begins_no_other(folder: Path) -> None:
    with lanes(folder, "endless | forever never", "never") as run:
        both = [folder / "endless", folder / "forever"]
        assert wait_until(lambda: all(one.exists() for one in both), timeout_seconds=SOON)
        run.send_signal(signal.SIGTERM)
        told, _ = run.communicate(timeout=SOON)
    assert run.returncode == 130
    assert "never" not in told
    assert told.count("told\n") == told.count("heard\n") == 1
