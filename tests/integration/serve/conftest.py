"""Services that tests start, and their folders; nothing of them is left when a test ends."""

from __future__ import annotations

import itertools
import shutil
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from service.sandbox.cluster.admin import SandboxAdmin
from service.sandbox.cluster.cluster import Sandbox
from tests.folders import new_folder
from tests.integration.serve.kafka import Kafka
from tests.integration.serve.served import Served, Start, end_processes

Serve = Callable[..., Served]


@pytest.fixture
def folder() -> Iterator[Path]:
    """Give a short path that the server's unprivileged user may pass through."""
    made = new_folder()
    yield made
    shutil.rmtree(made)


@pytest.fixture
def kafka(cluster: Sandbox, admin: SandboxAdmin, new_name: Callable[[str], str]) -> Kafka:
    """Give a topic of this test's own, and names of groups that read it."""
    return Kafka.with_topic(cluster.bootstrap_servers, admin, new_name("served"))


@pytest.fixture
def serve(kafka: Kafka, folder: Path) -> Iterator[Serve]:
    """Start services that watch this test's topic, all in one data directory unless told."""
    made: list[Served] = []
    numbers = itertools.count()

    def start(*, stdout: Path | None = None, **given: Any) -> Served:
        defaults = {
            "bootstrap": kafka.bootstrap,
            "directory": folder / "data",
            "topics": f"{kafka.topic}.*",
            "groups": f"{kafka.topic}.*",
        }
        log = folder / f"{next(numbers)}.log"
        made.append(Served(Start(**{**defaults, **given}), log, stdout=stdout))
        return made[-1]

    yield start
    for served in made:
        if served.process.poll() is None:
            served.kill()
    for directory in {served.start.directory for served in made}:
        end_processes(directory)


@pytest.fixture
def closed_port() -> Iterator[int]:
    """Hold a port on which nothing answers."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        yield held.getsockname()[1]


@pytest.fixture
def alone(folder: Path, closed_port: int) -> Iterator[Serve]:
    """Start services whose cluster is away, so that no round reads what comes."""
    made: list[Served] = []
    numbers = itertools.count()

    def start(**given: object) -> Served:
        base = {"bootstrap": f"127.0.0.1:{closed_port}", "directory": folder / "data"}
        made.append(Served(Start(**{**base, **given}), folder / f"{next(numbers)}.log"))  # type: ignore[arg-type]
        return made[-1].wait_ready()

    yield start
    for served in made:
        if served.process.poll() is None:
            served.kill()
    end_processes(folder / "data")
