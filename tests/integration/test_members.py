"""The owner of every partition, through rebalances and killed members, for both protocols.

And the rules that judge them: what breaches, and what happens on purpose and does not. Between two
observations nothing waits for the time that a rule leaves a group: the clock of the observer is moved.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest
from confluent_kafka import Consumer
from confluent_kafka.admin import AdminClient

from rules.catalogue import consumer_group_rebalancing, consumer_partitions_unowned
from rules.facts.member_memory import Rebalance
from rules.verdict import Verdict
from service.cli.main import run
from service.observe.cluster_reader import ClusterReader
from service.runtime.clock import wait_until
from service.sandbox.cluster.admin import SandboxAdmin
from service.sandbox.cluster.cluster import Sandbox
from tests.integration.clients import commit_offset, produce
from tests.integration.group_observer import GroupObserver, Owners

pytestmark = pytest.mark.integration

PARTITIONS = 4
RECORDS = 20  # per partition: so many unread ones are no transaction markers
MEMBER = """
import json, sys
from confluent_kafka import Consumer
consumer = Consumer(json.loads(sys.argv[1]))
consumer.subscribe(sys.argv[2:])
while True:
    consumer.poll(0.1)
"""
UNOWNED, REBALANCING = consumer_partitions_unowned.judge, consumer_group_rebalancing.judge
PROTOCOLS = pytest.mark.parametrize("protocol", ["classic", "consumer"])


@contextmanager
def process(config: dict[str, str], *topics: str) -> Iterator[subprocess.Popen[bytes]]:
    """Run a member in a process of its own, which is killed at the end at the latest."""
    command = [sys.executable, "-c", MEMBER, json.dumps(config), *topics]
    with subprocess.Popen(command) as child:
        try:
            yield child
        finally:
            child.kill()


def true_owners(admin: AdminClient, name: str) -> Owners:
    """Return the client id that owns each partition, as another client describes the group."""
    described = admin.describe_consumer_groups([name])[name].result(timeout=20)
    return {
        (owned.topic, owned.partition): member.client_id
        for member in described.members
        for owned in member.assignment.topic_partitions
    }


def make_topics(cluster: Sandbox, group: str, partitions: dict[str, int]) -> None:
    """Create topics of which the group has read nothing."""
    for topic, count in partitions.items():
        SandboxAdmin(cluster.bootstrap_servers).create_topic(topic, partitions=count)
        for number in range(count):
            produce(cluster.bootstrap_servers, topic, RECORDS, partition=number)
            commit_offset(cluster.bootstrap_servers, group, topic, 0, partition=number)


def member_config(cluster: Sandbox, name: str, protocol: str) -> dict[str, str]:
    config = {
        "bootstrap.servers": cluster.bootstrap_servers,
        "group.id": name,
        "group.protocol": protocol,
        "enable.auto.commit": "false",
    }
    session = {"session.timeout.ms": "4000", "heartbeat.interval.ms": "300"}
    return config | (session if protocol == "classic" else {})


@dataclass
class Survivor:
    """A member that shares a topic with a victim, which alone subscribes to another topic."""

    consumer: Consumer
    other: AdminClient  # describes the group as well
    observer: GroupObserver
    shared: str
    alone: str

    def has_owners(self, accept: Callable[[Owners], bool]) -> bool:
        """Observe once; what is said to be the survivor's was its own before or is after."""
        before = self._assignment()
        self.consumer.poll(0.1)
        owners = self.observer.observe()
        self.consumer.poll(0.1)
        own = {partition for partition, client_id in owners.items() if client_id == "survivor"}
        truth = self._true_owners()
        of_truth = {partition for partition, client_id in truth.items() if client_id == "survivor"}
        assert own <= before | self._assignment() | of_truth
        return accept(owners) and owners == truth

    def are_shared(self, owners: Owners) -> bool:
        own = {client for (topic, _), client in owners.items() if topic == self.shared}
        return own == {"survivor", "victim"} and owners.get((self.alone, 0)) == "victim"

    def are_its_own(self, owners: Owners) -> bool:
        return owners == {(self.shared, number): "survivor" for number in range(PARTITIONS)}

    def await_owners(self, accept: Callable[[Owners], bool]) -> None:
        assert wait_until(lambda: self.has_owners(accept), timeout_seconds=60)

    def kill(self, victim: subprocess.Popen[bytes]) -> None:
        """Kill a member: until its session times out the coordinator counts on it, as an owner."""
        victim.kill()
        victim.wait()
        assert self.has_owners(self.are_shared)
        self.await_owners(self.are_its_own)

    def _assignment(self) -> set[tuple[str, int]]:
        return {(entry.topic, entry.partition) for entry in self.consumer.assignment()}

    def _true_owners(self) -> Owners:
        return true_owners(self.other, self.observer.name)


@PROTOCOLS
def test_owners_are_right_through_killed_members_and_what_they_leave_breaches(
    cluster: Sandbox,
    reader: ClusterReader,
    new_name: Callable[[str], str],
    protocol: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    shared, alone, name = new_name("shared"), new_name("alone"), new_name(protocol)
    make_topics(cluster, name, {shared: PARTITIONS, alone: 2})
    base = member_config(cluster, name, protocol)
    consumer = Consumer({**base, "client.id": "survivor"})
    observer = GroupObserver(reader, name, (shared, alone))
    other = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    survivor = Survivor(consumer, other, observer, shared, alone)
    victim_config = {**base, "client.id": "victim"}
    try:
        consumer.subscribe([shared])
        survivor.await_owners(survivor.are_its_own)
        observer.forget()  # of the first rebalance it may have seen the end
        survivor.await_owners(survivor.are_its_own)
        first_epoch = observer.group.epoch
        assert observer.reason(UNOWNED) == (Verdict.BREACH, "never_owned")  # information
        with process(victim_config, shared, alone) as victim:
            survivor.await_owners(survivor.are_shared)
            assert observer.reason(UNOWNED) == (Verdict.OK, "owned")
            [victim_id] = [m.member_id for m in observer.members if m.client_id == "victim"]
            survivor.kill(victim)
        assert observer.reason(UNOWNED) == (Verdict.UNKNOWN, "being_reassigned")
        observer.pass_seconds(30)
        assert observer.reason(UNOWNED) == (Verdict.BREACH, "member_left")
        left = {
            "owner": "nobody",
            "committed_offset": 0,
            "lag": RECORDS,
            "last_member_id": victim_id,
            "last_client_id": "victim",
            "last_host": "127.0.0.1",
        }
        assert observer.evidence(UNOWNED)["partitions"] == [
            {"topic": alone, "partition": number, **left} for number in range(2)
        ]
        arguments = ["lag", name, "-o", "json", "--bootstrap-servers", cluster.bootstrap_servers]
        assert run(arguments) == 0
        with process(victim_config, shared, alone) as victim:
            survivor.await_owners(survivor.are_shared)
            assert observer.reason(UNOWNED) == (Verdict.OK, "owned")
            survivor.kill(victim)
        assert observer.reason(REBALANCING) == (Verdict.OK, "settled")  # four of them
        with process(victim_config, shared, alone):
            survivor.await_owners(survivor.are_shared)
            assert observer.reason(REBALANCING) == (Verdict.BREACH, "repeated")
    finally:
        consumer.close()
    check_rebalances(observer, first_epoch)
    rows = json.loads(capsys.readouterr().out)["partitions"]
    assert {
        (row["topic"], row["partition"]): (row["owner"], row["client_id"], row["host"])
        for row in rows
    } == {
        **{(shared, n): ("member", "survivor", "127.0.0.1") for n in range(PARTITIONS)},
        **{(alone, n): ("nobody", None, None) for n in range(2)},
    }


def check_rebalances(observer: GroupObserver, first_epoch: int | None) -> None:
    """Check that three members that joined, and two that were killed, are five rebalances."""
    evidence = observer.evidence(REBALANCING)
    rebalances: Any = evidence["rebalances"]
    changes = [
        (entry["joined"], entry["left"], entry["short_lived"])
        for entry in rebalances
        if entry["joined"] or entry["left"]
    ]
    assert changes == [(1, 0, 0), (0, 1, 1), (1, 0, 0), (0, 1, 1), (1, 0, 0)]
    epoch = observer.group.epoch
    true_count = 5 if epoch is None or first_epoch is None else epoch - first_epoch
    assert evidence["rebalances_in_15_minutes"] == true_count


@dataclass
class Deployment:
    """Members of a group that are started and stopped in this process."""

    config: dict[str, str]
    observer: GroupObserver
    members: dict[str, Consumer] = field(default_factory=dict)

    def start(self, client_id: str) -> None:
        """Start a member; with a callback of its own it gives partitions up only when it polls."""
        self.members[client_id] = Consumer({**self.config, "client.id": client_id})
        self.members[client_id].subscribe(list(self.observer.topics), on_revoke=lambda *_: None)

    def await_all(self) -> None:
        """Wait until each member owns something, and together they own everything."""
        assert wait_until(self._all_own, timeout_seconds=60)

    def await_unobserved(self) -> None:
        """Wait for the same before anything is observed: a partition that is first seen in a rebalance has no owner."""

        def all_own() -> bool:
            for member in self.members.values():
                member.poll(0.02)
            counts = [len(member.assignment()) for member in self.members.values()]
            return sum(counts) == PARTITIONS and all(counts)

        assert wait_until(all_own, timeout_seconds=60)

    def await_between(self, newcomer: str) -> None:
        """Wait until a newcomer waits for what the others, that do not poll, have to give up."""

        def is_between() -> bool:
            self.members[newcomer].poll(0.1)
            self.observer.observe()
            finding = self.observer.reason(UNOWNED)
            return finding is not None and finding[0] is Verdict.UNKNOWN

        assert wait_until(is_between, timeout_seconds=60)

    def stop(self, client_id: str) -> None:
        self.members.pop(client_id).close()

    def stop_all(self) -> None:
        for client_id in list(self.members):
            self.stop(client_id)

    def _all_own(self) -> bool:
        for member in self.members.values():
            member.poll(0.02)
        owners = self.observer.observe()
        return len(owners) == PARTITIONS and set(owners.values()) == set(self.members)


@PROTOCOLS
def test_what_is_done_on_purpose_does_not_breach(
    cluster: Sandbox, reader: ClusterReader, new_name: Callable[[str], str], protocol: str
) -> None:
    topic, name = new_name("deployed"), new_name(protocol)
    make_topics(cluster, name, {topic: PARTITIONS})
    base = member_config(cluster, name, protocol)
    if protocol == "classic":
        base["partition.assignment.strategy"] = "cooperative-sticky"
    observer = GroupObserver(reader, name, (topic,))
    deployment = Deployment(base, observer)
    try:
        for number in range(3):
            deployment.start(f"old-{number}")
        deployment.await_unobserved()
        deployment.await_all()
        for number in range(3):  # one after the other
            deployment.start(f"new-{number}")
            if number == 0:
                deployment.await_between("new-0")
            deployment.await_all()
            deployment.stop(f"old-{number}")
            deployment.await_all()
        count: Any = observer.evidence(REBALANCING)["rebalances_in_15_minutes"]
        assert count >= consumer_group_rebalancing.LEAST
        assert observer.reason(REBALANCING) == (Verdict.OK, "settled")
    finally:
        deployment.stop_all()
    check_stopped_and_deleted(cluster, observer)
    assert observer.breached == set()


def check_stopped_and_deleted(cluster: Sandbox, observer: GroupObserver) -> None:
    """Check what is said of a group that has no members any more, later on, and without the group."""
    assert wait_until(lambda: observer.observe() == {} and not observer.members, timeout_seconds=60)
    for _ in range(2):
        assert observer.reason(UNOWNED) == (Verdict.OK, "no_members")
        assert observer.reason(REBALANCING) == (Verdict.OK, "no_members")
        observer.pass_seconds(600)
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    admin.delete_consumer_groups([observer.name])[observer.name].result(timeout=20)
    observer.observe()
    assert (observer.reason(UNOWNED), observer.reason(REBALANCING)) == (None, None)


@PROTOCOLS
def test_a_static_member_that_restarts_in_time_has_not_left(
    cluster: Sandbox, reader: ClusterReader, new_name: Callable[[str], str], protocol: str
) -> None:
    topic, name = new_name("static"), new_name(protocol)
    make_topics(cluster, name, {topic: 1})
    config = member_config(cluster, name, protocol) | {"group.instance.id": "pod-0"}
    observer = GroupObserver(reader, name, (topic,))
    ids: list[str] = []
    rebalances: list[tuple[Rebalance, ...]] = []
    for _ in range(2):
        consumer = Consumer({**config, "client.id": "pod-0"})
        try:
            consumer.subscribe([topic])

            def owns(member: Consumer = consumer) -> bool:
                member.poll(0.05)
                is_owner = observer.observe() == {(topic, 0): "pod-0"}
                return is_owner and bool(member.assignment()) and observer.group.state == "Stable"

            assert wait_until(owns, timeout_seconds=60)
            ids += [member.member_id for member in observer.members]
            rebalances.append(observer.history.rebalances)
        finally:
            consumer.close()
        observer.pass_seconds(60)
        assert observer.members
    assert len(set(ids)) == 2
    assert rebalances[0] == rebalances[1]
    assert observer.breached == set()
