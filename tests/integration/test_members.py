"""The owner of every partition, through a rebalance and a killed member, for both protocols."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from confluent_kafka import Consumer
from confluent_kafka.admin import AdminClient

from rules.facts.memory import Memory, advance
from rules.facts.snapshot import Snapshot
from service.cli.main import run
from service.observe.cluster_reader import ClusterReader
from service.runtime.clock import wait_until
from service.sandbox.cluster.admin import SandboxAdmin
from service.sandbox.cluster.cluster import Sandbox
from tests.integration.clients import commit_offset, produce
from tests.integration.observing import group, only

pytestmark = pytest.mark.integration

PARTITIONS = 4
MEMBER = """
import json, sys
from confluent_kafka import Consumer
consumer = Consumer(json.loads(sys.argv[1]))
consumer.subscribe([sys.argv[2]])
while True:
    consumer.poll(0.1)
"""
Owners = dict[int, str | None]


@contextmanager
def process(config: dict[str, str], topic: str) -> Iterator[subprocess.Popen[bytes]]:
    """Run a member in a process of its own, which can be killed."""
    command = [sys.executable, "-c", MEMBER, json.dumps(config), topic]
    with subprocess.Popen(command) as child:
        try:
            yield child
        finally:
            child.kill()


def true_owners(admin: AdminClient, name: str) -> Owners:
    """Return the client id that owns each partition, as another client describes the group."""
    described = admin.describe_consumer_groups([name])[name].result(timeout=20)
    owners: Owners = dict.fromkeys(range(PARTITIONS))
    for member in described.members:
        for owned in member.assignment.topic_partitions:
            owners[owned.partition] = member.client_id
    return owners


def owners_in(snapshot: Snapshot, name: str) -> Owners:
    """Return the client id that owns each partition, as Tidemark says."""
    return {row["partition"]: row["client_id"] for row in group(snapshot, name)["commits"]}


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_owners_are_right_through_a_rebalance_and_a_killed_member(
    cluster: Sandbox,
    reader: ClusterReader,
    new_name: Callable[[str], str],
    protocol: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    topic, name = new_name("owned"), new_name(protocol)
    SandboxAdmin(cluster.bootstrap_servers).create_topic(topic, partitions=PARTITIONS)
    produce(cluster.bootstrap_servers, topic, 8)
    for number in range(PARTITIONS):
        commit_offset(cluster.bootstrap_servers, name, topic, 0, partition=number)
    base = {
        "bootstrap.servers": cluster.bootstrap_servers,
        "group.id": name,
        "group.protocol": protocol,
        "enable.auto.commit": "false",
    } | ({"session.timeout.ms": "6000"} if protocol == "classic" else {})
    survivor = Consumer({**base, "client.id": "survivor"})
    other = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    memory: Memory | None = None

    def has_owners(expected: dict[str | None, int]) -> bool:
        """Observe once; what is said to be the survivor's was its own before or is after."""
        nonlocal memory
        before = {entry.partition for entry in survivor.assignment()}
        survivor.poll(0.1)
        snapshot = reader.read(only(topic, groups=name))
        survivor.poll(0.1)
        after = {entry.partition for entry in survivor.assignment()}
        memory = advance(snapshot, memory)
        owners = owners_in(snapshot, name)
        own = {number for number, client_id in owners.items() if client_id == "survivor"}
        assert own <= before | after | own_of_truth()
        counts = {client: list(owners.values()).count(client) for client in set(owners.values())}
        return counts == expected and owners == true_owners(other, name)

    def own_of_truth() -> set[int]:
        return {n for n, client_id in true_owners(other, name).items() if client_id == "survivor"}

    try:
        survivor.subscribe([topic])
        assert wait_until(lambda: has_owners({"survivor": 4}), timeout_seconds=60)
        with process({**base, "client.id": "victim"}, topic) as victim:
            assert wait_until(lambda: has_owners({"survivor": 2, "victim": 2}), timeout_seconds=60)
            victim.kill()
            victim.wait()
            # Until its session times out the coordinator counts on it: it still is the owner.
            assert has_owners({"survivor": 2, "victim": 2})
        assert wait_until(lambda: has_owners({"survivor": 4}), timeout_seconds=60)
        arguments = ["lag", name, "-o", "json", "--bootstrap-servers", cluster.bootstrap_servers]
        assert run(arguments) == 0
    finally:
        survivor.close()
    assert memory is not None
    assert [entry.left for entry in memory.members.history_of(name).rebalances][-1] == 1
    rows = json.loads(capsys.readouterr().out)["partitions"]
    assert [(row["owner"], row["client_id"], row["host"]) for row in rows] == [
        ("member", "survivor", "127.0.0.1")
    ] * PARTITIONS
