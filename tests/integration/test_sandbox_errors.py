"""What goes wrong with a sandbox before it runs: interrupts, ports, Java, folders."""

from __future__ import annotations

import os
import signal
import socket
from pathlib import Path

import pytest

from rules.errors import SandboxError
from service.runtime.clock import wait_until
from service.sandbox.cluster import processes
from service.sandbox.cluster.cluster import Sandbox, SandboxOptions
from service.sandbox.cluster.commands import marker
from service.sandbox.cluster.layout import default_cache
from service.sandbox.cluster.state import (
    PORTS_NEEDED,
)
from tests.integration.sandbox_commands import NODES, fake_java, run, tidemark

pytestmark = pytest.mark.integration


@pytest.mark.brokers
def test_ctrl_c_while_starting_leaves_no_process(tmp_path: Path) -> None:
    directory = tmp_path / "interrupted"
    with tidemark("up", directory=directory) as process:
        assert wait_until(
            lambda: len(processes.find_marked(marker(directory))) == len(NODES),
            timeout_seconds=180,
        )
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=120)
    assert process.returncode == 130
    assert str(directory) in err
    assert processes.find_marked(marker(directory)) == []
    assert run("down", directory=directory)[0] == 0
    assert not directory.exists()


def test_without_a_sandbox_status_tells_how_to_start_one(tmp_path: Path) -> None:
    code, out, _ = run("status", directory=tmp_path / "none")
    assert (code, "tidemark sandbox up" in out) == (1, True)
    code, _, err = run("kill", "1", directory=tmp_path / "none")
    assert (code, err.count("\n"), "no sandbox" in err) == (7, 1, True)
    assert list(tmp_path.iterdir()) == []


def test_a_port_in_use_is_named_and_nothing_is_left(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        taken: int = server.getsockname()[1]
        options = SandboxOptions(port_base=min(taken, 65_535 - PORTS_NEEDED))
        with pytest.raises(SandboxError, match=r"port \d+ on 127\.0\.0\.1 is in use"):
            Sandbox(tmp_path / "sandbox", options=options).up()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("version", "told"),
    [(None, "Java is not installed.*install one"), ("11.0.22", "Java 11, and Kafka needs 17")],
    ids=["no Java", "old Java"],
)
def test_a_missing_or_old_java_is_told_with_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str | None, told: str
) -> None:
    if version is not None:
        fake_java(tmp_path / "bin", f"echo 'openjdk version \"{version}\" 2024-01-16' >&2")
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    with pytest.raises(SandboxError, match=told):
        Sandbox(tmp_path / "sandbox").up()
    assert not (tmp_path / "sandbox").exists()


def test_an_unwritable_folder_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(SandboxError, match=r"cannot use .*file"):
        Sandbox(tmp_path / "file/sandbox").up()
    with pytest.raises(SandboxError, match=r"cannot write the jar cache .*file/cache"):
        Sandbox(tmp_path / "sandbox", cache=tmp_path / "file/cache").up()
    assert not (tmp_path / "sandbox").exists()


def test_a_cache_that_java_would_take_for_a_list_is_rejected(tmp_path: Path) -> None:
    with pytest.raises(SandboxError, match=r"colon or an equals sign: .*a:b"):
        Sandbox(tmp_path / "sandbox", cache=tmp_path / "a:b").up()
    assert not (tmp_path / "sandbox").exists()


def test_the_cache_follows_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TIDEMARK_SANDBOX__CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", "/somewhere")
    assert default_cache() == Path("/somewhere/tidemark")
    monkeypatch.setenv("TIDEMARK_SANDBOX__CACHE", "/elsewhere")
    assert default_cache() == Path("/elsewhere")
    assert os.environ["XDG_CACHE_HOME"] == "/somewhere"
