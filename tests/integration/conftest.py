"""One sandbox for the whole run, and what tests need to look at it."""

from __future__ import annotations

import itertools
import uuid
from collections.abc import Callable, Iterator

import pytest

from rules.facts.snapshot import Snapshot
from service.app import cluster_reader
from service.clock import wait_until
from service.rounds import ClusterReader, Scope
from service.sandbox.admin import SandboxAdmin
from service.sandbox.cluster import Sandbox
from service.sandbox.processes import Liveness
from service.settings import KafkaSettings
from tests.conftest import mending

HEAL_SECONDS = 90
SANDBOXES = frozenset({"cluster", "sandbox"})  # fixtures that start brokers

MakeReader = Callable[..., ClusterReader]


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests that start brokers: all others can run beside them."""
    for item in items:
        if isinstance(item, pytest.Function) and SANDBOXES.intersection(item.fixturenames):
            item.add_marker("brokers")


@pytest.fixture(scope="session")
def cluster(
    tmp_path_factory: pytest.TempPathFactory, pytestconfig: pytest.Config
) -> Iterator[Sandbox]:
    """Start the run's cluster; tests make topics of their own in it."""
    made = Sandbox(tmp_path_factory.mktemp("cluster") / "kafka")
    made.up()
    try:
        with mending(pytestconfig, lambda: let_all_run(made)):
            yield made
    finally:
        made.down()


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
    reader = make_reader()
    assert wait_until(
        lambda: is_whole(reader.read(Scope())), timeout_seconds=HEAL_SECONDS, poll_seconds=0.3
    ), "the cluster did not heal after the test"


def let_all_run(cluster: Sandbox) -> None:
    """Resume and start what a test froze and killed."""
    for status in cluster.status():
        if status.liveness is Liveness.PAUSED:
            cluster.resume(status.node.id)
    cluster.up()


def is_whole(snapshot: Snapshot) -> bool:
    """Whether nothing is missing and every replica is in sync."""
    partitions = snapshot.partitions
    whole = partitions.isr.lengths == partitions.replicas.lengths
    return not snapshot.gaps and bool(whole.all()) and bool(partitions.leader.valid.all())
