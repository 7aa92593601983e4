"""Clusters and class path of the applications."""

from __future__ import annotations

import os
import shutil
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Final

import pytest

from service.sandbox.cluster.cluster import Sandbox, SandboxOptions
from tests.applications.application import Ground
from tests.applications.java_classes import make_class_path
from tests.folders import new_folder
from tests.kafka_release import VERSION

WHOLE: Final = "APPLICATION_SECONDS" in os.environ

MakeGround = Callable[[int], Ground]


@pytest.fixture(scope="session")
def class_path(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Compile what is ours, and fetch what is published."""
    return make_class_path(tmp_path_factory.mktemp("classes"))


@pytest.fixture
def undo() -> Iterator[ExitStack]:
    """End what a test started, the last first."""
    with ExitStack() as stack:
        yield stack


@pytest.fixture
def make_ground(class_path: str, undo: ExitStack) -> MakeGround:
    """Make clusters with Kafka's own time-outs, and a short path for what else there is."""

    def make(count: int) -> Ground:
        folder = new_folder()
        undo.callback(shutil.rmtree, folder)
        folder.chmod(0o755)  # the database's user passes through
        clusters = []
        for number in range(count):
            options = SandboxOptions(realistic=True, kafka_version=VERSION)
            clusters.append(Sandbox(folder / f"kafka-{number}", options=options))
            undo.callback(clusters[-1].down)
            clusters[-1].up()
        return Ground(tuple(clusters), class_path, folder, uuid.uuid4().hex[:6], not WHOLE)

    return make
