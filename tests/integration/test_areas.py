"""The areas of `make test` side by side: nothing is lost of what they say, and all of them are ended."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from service.runtime.clock import wait_until
from tests.areas import Area, slowness
from tests.integration.serve.served import ROOT

pytestmark = pytest.mark.integration

SOON = 180.0
# `long` and `beside` each wait for a file of the other: they run at the same time.
MAKEFILE = """
first: ; @echo first said; test ! -e long
long: ; @echo long began; touch long; until [ -e beside ]; do sleep 0.01; done; echo long ended
beside: ; @echo beside began at $$(nice); touch beside; until [ -e long ]; do sleep 0.01; done
wrong: ; @echo wrong said at $$(nice); echo 'FAILED tests/of_it.py::test'; exit 1
endless: ; @trap 'echo told; exit 1' INT; touch endless; while :; do sleep 0.01; done
forever: ; @trap 'echo heard; exit 1' INT; touch forever; while :; do sleep 0.01; done
never: ; @echo never
quiet: ; @until [ -e waiting ]; do sleep 0.01; done; test ! -e patient && touch quiet
waiting: ; @touch waiting; until [ -e quiet ]; do sleep 0.01; done
patient: ; @touch patient
"""
TABLE = """
first = { seconds = 1, cores = 0.5, alone = true }
long = { seconds = 9, cores = 1.0 }
beside = { seconds = 8, cores = 1.0, gives_way = true }
wrong = { seconds = 2, cores = 0.3 }
endless = { seconds = 9, cores = 1.0 }
forever = { seconds = 8, cores = 1.0 }
never = { seconds = 1, cores = 0.2 }
quiet = { seconds = 1, cores = 0.9, alone = true }
waiting = { seconds = 3, cores = 0.5, waits = true }
patient = { seconds = 2, cores = 0.5, waits = true }
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "Makefile").write_text(MAKEFILE, encoding="utf-8")
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests/areas.toml").write_text(TABLE, encoding="utf-8")
    return tmp_path


def areas(folder: Path, *names: str, before: tuple[str, ...] = ()) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [*before, sys.executable, "-m", "tests.areas", *names],
        cwd=folder,
        env={"PATH": "/usr/bin:/bin", "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def test_areas_run_at_once_are_shown_whole_and_fail_the_run(folder: Path) -> None:
    own, low = os.nice(0), min(os.nice(0) + 5, 19)
    two = ("taskset", "-c", "0,1")
    with areas(folder, "wrong", "beside", "long", "first", before=two) as run:
        said, _ = run.communicate(timeout=SOON)
    assert run.returncode == 1
    shown, _, summary = said.partition("\nTime per area\n")
    blocks = {
        head.partition(":")[0]: lines
        for block in shown.split("\n== ")[1:]
        for head, *lines in [block.splitlines()]
    }
    assert blocks["first"] == ["first said"], "alone, beside what gives way"
    assert blocks["long"] == ["long began", "long ended"]
    assert blocks["beside"] == [f"beside began at {low}"]
    assert blocks["wrong"][:2] == [f"wrong said at {own}", "FAILED tests/of_it.py::test"]
    lines = [line.split() for line in summary.splitlines()]
    assert sorted(line[0] for line in lines[:4]) == ["beside", "first", "long", "wrong"]
    assert [line[-1] for line in lines if line[0] == "wrong"] == ["FAILED"]
    assert summary.splitlines()[-2:] == ["FAILED tests/of_it.py::test", "FAILED in wrong"]


def test_one_area_that_waits_runs_beside_what_is_alone(folder: Path) -> None:
    names = ("patient", "waiting", "quiet")
    with areas(folder, *names, before=("taskset", "-c", "0,1")) as run:
        said, _ = run.communicate(timeout=SOON)
    assert run.returncode == 0, said


def test_on_one_core_they_run_one_after_the_other(folder: Path) -> None:
    (folder / "beside").touch()  # what `long` waits for
    with areas(folder, "beside", "long", before=("taskset", "-c", "0")) as run:
        said, _ = run.communicate(timeout=SOON)
    assert run.returncode == 0, said
    assert said.index("long ended") < said.index("== beside")


def test_an_interrupt_ends_every_area_and_begins_no_other(folder: Path) -> None:
    with areas(folder, "endless", "forever", "never", before=("taskset", "-c", "0,1")) as run:
        both = [folder / "endless", folder / "forever"]
        assert wait_until(lambda: all(one.exists() for one in both), timeout_seconds=SOON)
        run.send_signal(signal.SIGTERM)
        said, _ = run.communicate(timeout=SOON)
    assert run.returncode == 130
    assert "never" not in said
    assert said.count("told\n") == said.count("heard\n") == 1


def test_an_area_of_unknown_length_is_an_error(folder: Path) -> None:
    with areas(folder, "first", "unheard-of") as run:
        said, _ = run.communicate(timeout=SOON)
    assert run.returncode == 1
    assert said == "tests/areas.toml does not say what these take: unheard-of\n"


def test_what_waits_keeps_a_slow_machine_busier() -> None:
    waiting = Area(name="waiting", seconds=60, cores=0.5)
    assert waiting.on(1).cores == 0.5
    assert waiting.on(2).cores == pytest.approx(2 / 3)
    assert Area(name="busy", seconds=60, cores=1.0).on(2).cores == 1.0
    assert slowness() >= 1
