"""Prometheus and Alertmanager themselves accept the stack's files, and its alerts fire when they must.

The programs are Debian's, older than the stack's images: what they accept, the images accept too.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Final

import pytest

pytestmark = pytest.mark.integration

STACK: Final = Path(__file__).parents[2] / "dashboards" / "stack"
INSTALL: Final = "apt-get install prometheus prometheus-alertmanager"


def run(program: str, *arguments: str) -> None:
    found = shutil.which(program)
    assert found, f"{program} is missing: {INSTALL}"
    done = subprocess.run(
        [found, *arguments], cwd=STACK, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_prometheus_accepts_its_configuration_and_finds_the_files_that_it_names() -> None:
    run("promtool", "check", "config", "prometheus.yml")


def test_prometheus_accepts_the_alerts_without_a_complaint_of_style() -> None:
    run("promtool", "check", "rules", "--lint=all", "--lint-fatal", "tidemark_alerts.yml")


def test_the_alerts_fire_when_they_must_and_only_then() -> None:
    run("promtool", "test", "rules", "tidemark_alerts_test.yml")


def test_alertmanager_accepts_its_configuration() -> None:
    run("amtool", "check-config", "alertmanager.yml")


@pytest.mark.parametrize(
    ("severity", "receiver"), [("critical", "pager"), ("warning", "nobody"), ("info", "nobody")]
)
def test_only_what_is_critical_goes_to_the_pager(severity: str, receiver: str) -> None:
    route = ("config", "routes", "test", "--config.file=alertmanager.yml")
    run("amtool", *route, f"--verify.receivers={receiver}", f"severity={severity}")
