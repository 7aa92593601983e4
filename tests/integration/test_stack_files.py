"""Prometheus and Alertmanager themselves accept the stack's files, and its rules record and fire what they must.

The programs are Debian's, older than the stack's images: what they accept, the images accept too.
The image's check of its health is run as the image would run it, against an answer of ours.
"""

from __future__ import annotations

import http.server
import json
import shutil
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import pytest

from dashboards.prometheus.alerting import ALERTING
from dashboards.prometheus.files import FILES, STACK_FOLDERS
from dashboards.prometheus.recording import RECORDING
from dashboards.prometheus.rule import RuleFile
from dashboards.prometheus.watching import WATCHING
from tests.unit.dashboards.prometheus.alerting_cases import ALERTING_CASES
from tests.unit.dashboards.prometheus.cases import Case, promtool_file
from tests.unit.dashboards.prometheus.recording_cases import RECORDING_CASES
from tests.unit.dashboards.prometheus.watching_cases import WATCHING_CASES

pytestmark = pytest.mark.integration

STACK: Final = Path(__file__).parents[2] / "dashboards" / "stack"
INSTALL: Final = "apt-get install prometheus prometheus-alertmanager"


def run(program: str, *arguments: str) -> None:
    found = shutil.which(program)
    assert found, f"{program} is missing: {INSTALL}"
    done = subprocess.run(
        [found, *arguments], cwd=STACK, capture_output=True, text=True, timeout=240, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_prometheus_accepts_its_configuration_and_finds_the_files_that_it_names() -> None:
    run("promtool", "check", "config", "prometheus.yml")


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_prometheus_accepts_the_rules_without_a_complaint_of_style(file: RuleFile) -> None:
    path = str(STACK_FOLDERS[file.name] / file.name)
    run("promtool", "check", "rules", "--lint=all", "--lint-fatal", path)


@pytest.mark.parametrize(
    ("file", "cases"),
    [(RECORDING, RECORDING_CASES), (ALERTING, ALERTING_CASES), (WATCHING, WATCHING_CASES)],
    ids=["recording", "alerting", "watching"],
)
def test_rules_record_and_fire_what_they_must_and_only_that(
    file: RuleFile, cases: Sequence[Case], tmp_path: Path
) -> None:
    path = tmp_path / "cases.json"
    path.write_text(json.dumps(promtool_file(STACK_FOLDERS[file.name] / file.name, cases)), "utf-8")
    run("promtool", "test", "rules", str(path))


def test_alertmanager_accepts_its_configuration() -> None:
    run("amtool", "check-config", "alertmanager.yml")


@pytest.mark.parametrize(
    ("severity", "receiver"), [("critical", "pager"), ("warning", "nobody"), ("info", "nobody")]
)
def test_only_what_is_critical_goes_to_the_pager(severity: str, receiver: str) -> None:
    route = ("config", "routes", "test", "--config.file=alertmanager.yml")
    run("amtool", *route, f"--verify.receivers={receiver}", f"severity={severity}")


def health_check() -> list[str]:
    """Return the command of the image's HEALTHCHECK, for this Python."""
    lines = (STACK.parents[1] / "Dockerfile").read_text("utf-8").splitlines()
    (command,) = [line.strip().removeprefix("CMD ") for line in lines if line.startswith("    CMD")]
    program, *arguments = json.loads(command)
    assert program == "python"
    return [sys.executable, *arguments]


@pytest.mark.parametrize(("status", "is_healthy"), [(200, True), (503, False)])
def test_the_image_is_healthy_when_the_port_that_is_set_says_ready(
    status: int, *, is_healthy: bool
) -> None:
    asked = []

    class Answer(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_response(status)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Say nothing: the test's output is pytest's."""

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answer) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        port = str(server.server_address[1])
        environment = {"TIDEMARK_HTTP__PORT": port, "http_proxy": "http://127.0.0.1:9"}
        done = subprocess.run(
            health_check(), env=environment, capture_output=True, timeout=120, check=False
        )
        server.shutdown()
    assert (done.returncode == 0) is is_healthy, done.stderr
    assert asked == ["/readyz"]
