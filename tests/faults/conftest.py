"""The run's sandbox, and one service that sees every fault."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from rules.facts.broker_log import SequenceForm
from service.sandbox.cluster import Sandbox
from service.sandbox.faults import SequenceTruth, prepare_sequence
from tests.conftest import mending
from tests.faults.matrix import Matrix
from tests.faults.printed import strike_by_command, undo_by_command
from tests.integration.conftest import (  # noqa: F401 - fixtures
    admin,
    faults,
    make_reader,
    new_name,
    reader,
    sandbox_options,
)
from tests.integration.conftest import brokers as cluster  # noqa: F401 - the fixture
from tests.integration.serve.served import end_processes


@pytest.fixture(scope="session")
def short_folder() -> Iterator[Path]:
    """Give a short path that the database's unprivileged user may pass through."""
    made = Path(tempfile.mkdtemp(prefix="tm-"))
    yield made
    shutil.rmtree(made)


@pytest.fixture(scope="session")
def matrix(
    cluster: Sandbox,  # noqa: F811 - the fixture
    short_folder: Path,
    pytestconfig: pytest.Config,
) -> Iterator[Matrix]:
    made = Matrix(cluster, short_folder)
    try:
        with mending(pytestconfig, made.ensure_running):
            yield made
    finally:
        made.served.kill()
        end_processes(short_folder / "data")


@pytest.fixture(scope="session")
def undo(cluster: Sandbox) -> Iterator[contextlib.ExitStack]:  # noqa: F811
    """Take back at the end what has to stay until then, while the cluster is there."""
    with contextlib.ExitStack() as stack:
        yield stack


# Two of the faults are sure only when a client's delivery timeout has passed: they come first, and
# are asked for when that time is over anyway. What is forgotten is sure only while its leader stays,
# and so it is asked for before any other broker dies.
@pytest.fixture(scope="session", autouse=True)
def burst(
    cluster: Sandbox,  # noqa: F811
    matrix: Matrix,
) -> SequenceTruth:
    """Lose, by the command, what was written between two looks; all brokers run again then."""
    topic = f"sequence-loss-burst-{uuid.uuid4().hex[:8]}"
    truth = strike_by_command(matrix, cluster, topic, "--burst")
    undo_by_command(truth)
    return truth


@pytest.fixture(scope="session", autouse=True)
def forgotten(
    cluster: Sandbox,  # noqa: F811
    matrix: Matrix,
    undo: contextlib.ExitStack,
    burst: SequenceTruth,  # that moves leaders
) -> SequenceTruth | None:
    """Let a leader forget a producer, which is refused from then on: with transactions v2."""
    if not cluster.state.release.has_transactions_v2:
        return None
    form = SequenceForm.EXPECTED_ZERO
    made = undo.enter_context(prepare_sequence("sequence-state-expired", cluster, form=form))
    matrix.await_watched(made.topic)
    return made.strike()
