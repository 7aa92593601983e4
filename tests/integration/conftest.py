"""One sandbox for the whole run, and what tests need to observe it."""

from __future__ import annotations

import itertools
import uuid
from collections.abc import Callable, Iterator

import numpy as np
import pytest
from confluent_kafka.admin import AdminClient

from rules.facts.snapshot import Snapshot
from service.app import cluster_reader
from service.observe.cluster_reader import ClusterReader, Scope
from service.runtime.clock import wait_until
from service.sandbox.cluster.admin import SandboxAdmin
from service.sandbox.cluster.cluster import Sandbox, SandboxOptions
from service.sandbox.cluster.processes import Liveness
from service.settings import KafkaSettings
from tests.conftest import mending
from tests.kafka_release import VERSION

HEAL_SECONDS = 180

MakeReader = Callable[..., ClusterReader]


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests that start brokers, and those of them that break some.

    All others can run beside them, and both kinds side by side, each with brokers of its own.
    """
    for item in items:
        for fixture, marker in (("brokers", "brokers"), ("faults", "breaking")):
            if isinstance(item, pytest.Function) and fixture in item.fixturenames:
                item.add_marker(marker)


@pytest.fixture(scope="session")
def sandbox_options() -> SandboxOptions:
    """Return how the run's cluster is made; SANDBOX_KAFKA_VERSION names its Kafka release."""
    return SandboxOptions(kafka_version=VERSION)


@pytest.fixture(scope="session")
def brokers(
    tmp_path_factory: pytest.TempPathFactory,
    pytestconfig: pytest.Config,
    sandbox_options: SandboxOptions,
) -> Iterator[Sandbox]:
    """Start the run's cluster."""
    made = Sandbox(tmp_path_factory.mktemp("cluster") / "kafka", options=sandbox_options)
    made.up()
    try:
        with mending(pytestconfig, lambda: let_all_run(made)):
            yield made
    finally:
        made.down()


@pytest.fixture(scope="module")
def cluster(brokers: Sandbox) -> Iterator[Sandbox]:
    """Give the run's cluster; tests make topics of their own, which are gone after their file.

    Whatever is left, each broker that was killed loads again, and each observation of all topics reads.
    """
    yield brokers
    remove_topics(brokers)


@pytest.fixture
def admin(cluster: Sandbox) -> SandboxAdmin:
    return SandboxAdmin(cluster.bootstrap_servers)


@pytest.fixture
def make_reader(cluster: Sandbox) -> Iterator[MakeReader]:
    """Make readers of the run's cluster that are closed when the test ends."""
    made: list[ClusterReader] = []

    def make(**settings: object) -> ClusterReader:
        given = {"bootstrap_servers": cluster.bootstrap_servers, **settings}
        made.append(cluster_reader(KafkaSettings.model_validate(given)))
        return made[-1]

    yield make
    for reader in made:
        reader.close()


@pytest.fixture
def reader(make_reader: MakeReader) -> ClusterReader:
    return make_reader()


@pytest.fixture
def new_name() -> Callable[[str], str]:
    """Make names that no other test uses."""
    numbers = itertools.count()
    mark = uuid.uuid4().hex[:8]
    return lambda stem: f"{stem}-{mark}-{next(numbers)}"


@pytest.fixture
def faults(cluster: Sandbox, make_reader: MakeReader) -> Iterator[Sandbox]:
    """Give the cluster for breaking; afterwards every node runs and every ISR is whole again."""
    yield cluster
    let_all_run(cluster)
    assert_heals(make_reader())


def remove_topics(cluster: Sandbox) -> None:
    """Delete all topics but Kafka's own, and wait until nothing tells of them any more."""
    servers = cluster.bootstrap_servers
    admin = AdminClient({"bootstrap.servers": servers, "log_level": 2})
    found = admin.list_topics(timeout=HEAL_SECONDS).topics
    if doomed := [name for name in found if not name.startswith("__")]:
        for answer in admin.delete_topics(doomed).values():
            answer.result(HEAL_SECONDS)
    reader = cluster_reader(KafkaSettings.model_validate({"bootstrap_servers": servers}))
    try:
        assert_heals(reader)
    finally:
        reader.close()


def assert_heals(reader: ClusterReader) -> None:
    """Wait until nothing of the cluster is missing and every ISR is whole."""
    missing: list[str] = []

    def is_whole() -> bool:
        missing[:] = missing_from(reader.read(Scope()))
        return not missing

    assert wait_until(is_whole, timeout_seconds=HEAL_SECONDS, poll_seconds=0.3), missing


def let_all_run(cluster: Sandbox) -> None:
    """Resume and start what a test froze and killed."""
    for status in cluster.status():
        if status.liveness is Liveness.PAUSED:
            cluster.resume(status.node.id)
    cluster.up()


def missing_from(snapshot: Snapshot) -> list[str]:
    """Return what was not seen, and each partition without a leader or with a replica out of sync."""
    partitions = snapshot.partitions
    is_whole = (partitions.isr.lengths == partitions.replicas.lengths) & partitions.leader.valid
    return [f"{gap.what}: {gap.why}" for gap in snapshot.gaps] + [
        f"{partitions.index.topic_partition(row)}: leader {partitions.leader[row]}, "
        f"replicas {partitions.replicas[row]}, ISR {partitions.isr[row]}"
        for row in np.flatnonzero(~is_whole).tolist()
    ]
