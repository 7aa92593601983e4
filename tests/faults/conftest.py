"""The run's sandbox, and one service that sees every fault."""

from __future__ import annotations

import contextlib
import random
import shutil
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from rules.facts.broker_log import SequenceForm
from rules.facts.identity import TopicPartition
from service.sandbox.cluster.cluster import Sandbox
from service.sandbox.faults import SequenceTruth, prepare_sequence
from service.sandbox.workloads.clients import ensure_topics
from service.sandbox.workloads.raw_cluster import RawCluster
from service.sandbox.workloads.raw_producer import new_producer
from tests.conftest import mending
from tests.faults.matrix import FaultPanels, GivenUp, Matrix
from tests.faults.printed import inject_by_command, undo_by_command
from tests.folders import new_folder
from tests.integration.conftest import (  # noqa: F401 - fixtures
    admin,
    faults,
    make_reader,
    new_name,
    reader,
    sandbox_options,
)
from tests.integration.conftest import brokers as cluster  # noqa: F401 - the fixture
from tests.integration.counting import counting
from tests.integration.serve.scraping import job, prometheus
from tests.integration.serve.served import end_processes


@pytest.fixture(scope="session")
def short_folder() -> Iterator[Path]:
    """Give a short path that the database's unprivileged user may pass through."""
    folder = new_folder()
    yield folder
    shutil.rmtree(folder)


@pytest.fixture(scope="session")
def matrix(
    cluster: Sandbox,  # noqa: F811 - the fixture
    short_folder: Path,
    pytestconfig: pytest.Config,
) -> Iterator[Matrix]:
    started = Matrix(cluster, short_folder)
    try:
        jobs = [job("tidemark", started.served.address)]
        with (
            mending(pytestconfig, started.ensure_running),
            prometheus(short_folder, jobs, seconds=1) as server,
            counting(cluster, "sequence-.*") as started.counting,
        ):
            started.panels = FaultPanels(server)
            yield started
    finally:
        started.served.kill()
        end_processes(short_folder / "data")


@pytest.fixture(scope="session")
def undo(cluster: Sandbox) -> Iterator[contextlib.ExitStack]:  # noqa: F811
    """Take back at the end what has to stay until then, while the cluster is there."""
    with contextlib.ExitStack() as stack:
        yield stack


# Three of the faults are sure only when a client's delivery timeout has passed: they come first, and
# are asked for when that time is over anyway. What is forgotten is sure only while its leader stays,
# and so it is asked for before any other broker dies.
@pytest.fixture(scope="session", autouse=True)
def burst(
    cluster: Sandbox,  # noqa: F811
    matrix: Matrix,
) -> SequenceTruth:
    """Lose, by the command, what was written between two observations; all brokers run again then."""
    topic = f"sequence-loss-burst-{uuid.uuid4().hex[:8]}"
    truth = inject_by_command(matrix, cluster, topic, "--burst")
    undo_by_command(truth)
    return truth


@pytest.fixture(scope="session", autouse=True)
def forgotten(
    cluster: Sandbox,  # noqa: F811
    matrix: Matrix,
    undo: contextlib.ExitStack,
    burst: SequenceTruth,  # that moves leaders
) -> SequenceTruth | None:
    """Let a leader forget a producer, which is rejected from then on: with transactions v2."""
    if not cluster.state.release.has_transactions_v2:
        return None
    form = SequenceForm.EXPECTED_ZERO
    prepared = undo.enter_context(prepare_sequence("sequence-state-expired", cluster, form=form))
    matrix.await_watched(prepared.topic)
    return prepared.inject()


@pytest.fixture(scope="session", autouse=True)
def given_up(
    cluster: Sandbox,  # noqa: F811
    matrix: Matrix,
    burst: SequenceTruth,  # that moves leaders
) -> GivenUp:
    """Let clients give up batches that a broker rejected again and again; nothing is lost."""
    topic = f"sequence-given-up-{uuid.uuid4().hex[:8]}"
    ensure_topics(cluster.bootstrap_servers, topic, partitions=1)
    where, gap, times = TopicPartition(topic, 0), random.randint(5, 60), random.randint(3, 9)
    with RawCluster(cluster) as brokers:
        ends, goes_on = new_producer(brokers, f"{topic}-1"), new_producer(brokers, f"{topic}-2")
        for producer in (ends, goes_on):
            producer.send(where, 0, 3)
        matrix.await_watched(topic)
        for producer in (ends, goes_on):
            for _ in range(times):
                producer.expect_rejection(where, 3 + gap, 30)
        goes_on.producer_epoch = 1
        goes_on.send(where, 0, 4)
    return GivenUp(
        topic=topic,
        gap=gap,
        times=times,
        ends=ends.producer_id,
        goes_on=goes_on.producer_id,
    )
