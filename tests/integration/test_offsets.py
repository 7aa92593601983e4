"""Offsets are right to the last one: open transactions, paused followers, dead leaders."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
from confluent_kafka import Consumer, IsolationLevel, TopicPartition
from confluent_kafka.admin import (  # type: ignore[attr-defined] # re-exports without saying so
    AdminClient,
    OffsetSpec,
)

from rules.facts.gap import GapCause
from rules.facts.last_observation import remember
from rules.facts.matching import matching_rows
from rules.facts.snapshot import Snapshot
from rules.verdict import Verdict
from service.observe.cluster_reader import ClusterReader, Scope
from service.runtime.clock import monotonic, wait_until
from service.sandbox.cluster.admin import SandboxAdmin
from service.sandbox.cluster.cluster import Sandbox
from service.sandbox.workloads.standard import WorkloadPlan, standard_workload
from tests.integration.clients import (
    commit_position,
    produce,
    produce_in_transaction,
    transactional_producer,
)
from tests.integration.conftest import MakeReader
from tests.integration.observing import commit, ends, only, partition, why_of
from tests.integration.watching import Watch

pytestmark = pytest.mark.integration

NewName = Callable[[str], str]

EARLIEST, LATEST = OffsetSpec.earliest(), OffsetSpec.latest()  # type: ignore[no-untyped-call]


@pytest.mark.smoke
def test_open_transaction_holds_the_lso_until_commit_and_until_abort(
    cluster: Sandbox, admin: SandboxAdmin, reader: ClusterReader, new_name: NewName
) -> None:
    topic = new_name("lso")
    admin.create_topic(topic)
    producer = transactional_producer(cluster.bootstrap_servers, new_name("tx"))
    produce_in_transaction(producer, topic, 5)
    assert ends(reader, topic) == (0, 5, 5)
    producer.commit_transaction()
    assert wait_until(lambda: ends(reader, topic) == (6, 6, 6), timeout_seconds=180)
    produce_in_transaction(producer, topic, 3)
    assert ends(reader, topic) == (6, 9, 9)
    producer.abort_transaction()
    assert wait_until(lambda: ends(reader, topic) == (10, 10, 10), timeout_seconds=180)


def test_leo_runs_ahead_of_hwm_while_followers_are_paused(
    faults: Sandbox, admin: SandboxAdmin, make_reader: MakeReader, new_name: NewName
) -> None:
    topic = new_name("leo")
    reader = make_reader(request_timeout_seconds=2.0)
    admin.create_topic(topic, assignment=[[1, 2, 3]], configs={"min.insync.replicas": "2"})
    produce(faults.bootstrap_servers, topic, 10)
    assert wait_until(
        lambda: replica_ends(reader, topic) == {"1": 10, "2": 10, "3": 10}, timeout_seconds=180
    )
    faults.pause(2)
    faults.pause(3)
    # The last fetches of the frozen followers still wait at the leader, and would take the next
    # records with them. When both have left the ISR these fetches have ended long since.
    assert wait_until(lambda: shrunk(reader, topic), timeout_seconds=180)
    produce(faults.broker_address(1), topic, 5, acks="1")

    snapshot = reader.read(only(topic))
    row = partition(snapshot, topic)
    assert (row["last_stable_offset"], row["high_watermark"], row["log_end_offset"]) == (10, 10, 15)
    assert row["min_insync_replicas"] == 2
    assert row["replica_log_end_offsets"] == {"1": 15, "2": None, "3": None}

    faults.resume(2)
    faults.resume(3)
    assert wait_until(
        lambda: replica_ends(reader, topic) == {"1": 15, "2": 15, "3": 15}, timeout_seconds=180
    )
    assert wait_until(lambda: ends(reader, topic) == (15, 15, 15), timeout_seconds=180)


def test_each_replica_answers_its_own_log_end_while_followers_lag(
    faults: Sandbox, admin: SandboxAdmin, make_reader: MakeReader, new_name: NewName
) -> None:
    topic = new_name("throttled")
    reader = make_reader(request_timeout_seconds=2.0)
    configs = {
        "leader.replication.throttled.replicas": "*",
        "follower.replication.throttled.replicas": "*",
    }
    admin.create_topic(topic, assignment=[[1, 2, 3]], configs=configs)
    produce(faults.bootstrap_servers, topic, 10)
    throttle(admin, "20")
    try:
        faults.pause(2)
        faults.pause(3)
        assert wait_until(lambda: shrunk(reader, topic), timeout_seconds=180)
        produce(faults.broker_address(1), topic, 200, acks="1")
        faults.resume(2)
        faults.resume(3)
        assert wait_until(lambda: None not in lagging(reader, topic), timeout_seconds=180)
        leader, *followers = lagging(reader, topic)
        assert leader == 210
        assert all(10 <= end < 210 for end in followers), followers
    finally:
        throttle(admin, None)
    assert wait_until(lambda: set(lagging(reader, topic)) == {210}, timeout_seconds=180)


@pytest.mark.smoke
def test_offsets_equal_those_of_librdkafka_for_every_partition(
    cluster: Sandbox, admin: SandboxAdmin, reader: ClusterReader, new_name: NewName
) -> None:
    topic = new_name("compared")
    admin.create_topic(topic, partitions=12)
    for number in range(12):
        produce(cluster.bootstrap_servers, topic, number, partition=number)
    snapshot = reader.read(only(topic))
    client = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    asked = [TopicPartition(topic, number) for number in range(12)]
    for name, spec, isolation in (
        ("log_start_offset", EARLIEST, IsolationLevel.READ_UNCOMMITTED),
        ("high_watermark", LATEST, IsolationLevel.READ_UNCOMMITTED),
        ("last_stable_offset", LATEST, IsolationLevel.READ_COMMITTED),
    ):
        answers = client.list_offsets(dict.fromkeys(asked, spec), isolation_level=isolation)
        expected = [answers[place].result().offset for place in asked]
        assert [partition(snapshot, topic, n)[name] for n in range(12)] == expected


def test_recreated_topic_is_another_topic_and_no_rewind(
    cluster: Sandbox, admin: SandboxAdmin, reader: ClusterReader, new_name: NewName
) -> None:
    topic = new_name("again")
    admin.create_topic(topic)
    produce(cluster.bootstrap_servers, topic, 20)
    before = reader.read(only(topic))
    memory = remember(before)
    admin.delete_topic(topic)
    admin.create_topic(topic)
    produce(cluster.bootstrap_servers, topic, 3)
    assert wait_until(lambda: ends(reader, topic) == (3, 3, 3), timeout_seconds=180)
    after = reader.read(only(topic))
    assert partition(after, topic)["topic_id"] != partition(before, topic)["topic_id"]
    assert matching_rows(after.partitions, before.partitions).tolist() == [-1]
    observation = remember(after, memory)[0]
    assert observation is not None
    assert observation.high_watermark == 3


def test_killed_broker_costs_its_own_partitions_until_a_new_leader_answers(
    faults: Sandbox, admin: SandboxAdmin, make_reader: MakeReader, new_name: NewName
) -> None:
    topic, lonely = new_name("killed"), new_name("lonely")
    reader = make_reader(request_timeout_seconds=2.0)
    # With two in-sync replicas demanded, a new leader that is alone cannot raise a high
    # watermark that it learned too late, and answers OFFSET_NOT_AVAILABLE for good.
    alone_is_enough = {"min.insync.replicas": "1"}
    admin.create_topic(topic, assignment=[[1, 2], [2, 3], [3, 1]], configs=alone_is_enough)
    admin.create_topic(lonely, assignment=[[2]])
    for number in range(3):
        produce(faults.bootstrap_servers, topic, 7, partition=number)
    before = reader.read(only(topic))
    assert before.gaps == (), why_of(before)
    memory = remember(before)
    faults.kill(2)
    during = reader.read(only(topic))
    marks = [partition(during, topic, number)["high_watermark"] for number in range(3)]
    assert marks == [7, None, 7]
    assert GapCause.UNREACHABLE in {gap.cause for gap in during.gaps}, why_of(during)
    assert any(gap.broker_id == 2 for gap in during.gaps)

    observation = remember(during, memory)
    row = during.partitions.index.row(topic, 1)
    assert row is not None
    kept = observation[row]
    assert kept is not None
    assert (kept.high_watermark, kept.leader_epoch) == (7, 0)

    def as_the_new_leader_says() -> tuple[Any, ...]:
        row = partition(reader.read(only(topic)), topic, 1)
        return row["leader"], row["leader_epoch"], row["high_watermark"], row["log_end_offset"]

    assert wait_until(
        lambda: as_the_new_leader_says() == (3, 1, 7, 7), timeout_seconds=180, poll_seconds=0.2
    )
    alone = reader.read(only(lonely))
    assert partition(alone, lonely)["leader"] is None
    assert any(gap.topic == lonely and gap.cause is GapCause.NO_LEADER for gap in alone.gaps)


def test_lag_is_never_negative_in_rounds_back_to_back_under_load(
    cluster: Sandbox, reader: ClusterReader, new_name: NewName
) -> None:
    rounds = commits = 0
    plan = WorkloadPlan(topic=new_name("load"), rate=500, abort_every=5)
    with standard_workload(cluster, plan):
        assert wait_until(lambda: is_running(reader.read(Scope())), timeout_seconds=180)
        until = monotonic() + 5
        while monotonic() < until or rounds <= 30:
            snapshot = reader.read(Scope())
            rounds += 1
            commits += len(snapshot.commits)
            behind = snapshot.commits.beyond_high_watermark(snapshot.offsets)
            assert len(behind) == 0, why_of(snapshot)
            for lag in (
                snapshot.commits.read_committed_lag(snapshot.offsets),
                snapshot.commits.read_uncommitted_lag(snapshot.offsets),
            ):
                assert lag.valid.all()
                assert int(np.min(lag.values, initial=0)) >= 0
            assert snapshot.gaps == (), why_of(snapshot)
    assert commits > rounds


@pytest.fixture
def passing_group(cluster: Sandbox, reader: ClusterReader, new_name: NewName) -> Iterator[str]:
    """Give a group's name; afterwards the group is gone, and with it the gap that it makes."""
    name = new_name("group")
    yield name
    client = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    for answer in client.delete_consumer_groups([name]).values():
        answer.result(timeout=180)
    assert wait_until(lambda: knows_nothing_of(reader.read(Scope()), name), timeout_seconds=180)


def knows_nothing_of(snapshot: Snapshot, name: str) -> bool:
    """Whether a complete round has no trace of the group."""
    return not snapshot.gaps and name not in {group.group_id for group in snapshot.groups}


def test_commit_above_the_high_watermark_is_evidence_and_no_clamped_lag(
    cluster: Sandbox,
    admin: SandboxAdmin,
    reader: ClusterReader,
    new_name: NewName,
    passing_group: str,
) -> None:
    topic, group = new_name("beyond"), passing_group
    admin.create_topic(topic)
    produce(cluster.bootstrap_servers, topic, 5)
    with member(cluster.bootstrap_servers, group, topic) as client:
        client.commit(offsets=[TopicPartition(topic, 0, 9)], asynchronous=False)
        snapshot = reader.read(only(topic, groups=group))
        assert snapshot.commits.read_uncommitted_lag(snapshot.offsets).to_list() == [None]
        [gap] = snapshot.gaps
        assert (gap.cause, gap.group, gap.topic) == (GapCause.IMPOSSIBLE_VALUE, group, topic)
        assert "9" in gap.why
        assert "5" in gap.why


@contextmanager
def member(servers: str, group: str, topic: str) -> Iterator[Consumer]:
    """Give a member of a group that has its partitions, and reads nothing of them."""
    client = Consumer(
        {"bootstrap.servers": servers, "group.id": group, "enable.auto.commit": False}
    )
    try:
        client.subscribe([topic])
        assert wait_until(
            lambda: client.poll(0.1) is None and bool(client.assignment()), timeout_seconds=180
        ), f"{group} was given nothing of {topic}"
        yield client
    finally:
        client.close()


@pytest.mark.parametrize(("read", "now"), [(20, 5), (43, 0)])
def test_a_commit_that_outlived_its_topic_is_no_gap_and_no_trace_of_a_loss(
    cluster: Sandbox,
    make_reader: MakeReader,
    new_name: NewName,
    passing_group: str,
    *,
    read: int,
    now: int,
) -> None:
    """Its group has no members; who begins to watch by then has never seen the earlier topic."""
    topic, group, servers = new_name("again"), passing_group, cluster.bootstrap_servers
    admin = SandboxAdmin(servers)
    for count in (read, now):
        admin.create_topic(topic)
        produce(servers, topic, count)
        if count == read:
            admin.delete_topic(topic)
    reader = make_reader()
    assert wait_until(
        lambda: partition(reader.read(only(topic)), topic)["log_end_offset"] == now,
        timeout_seconds=180,
    )
    position = TopicPartition(topic, 0, read, leader_epoch=0)
    commit_position(servers, group, position)
    watch = Watch(make_reader())
    for made in (watch.round(), watch.round()):
        assert made.snapshot is not None
        assert commit(made.snapshot, group, topic)["read_uncommitted_lag"] is None
        assert made.snapshot.gaps == (), why_of(made.snapshot)
        beyond = [
            (finding.rule.rule_id, finding.reason)
            for judgement in made.judged.judgements
            for finding in judgement.findings(Verdict.BREACH)
            if finding.labels.get("topic") == topic
        ]
        assert beyond == []


def is_running(snapshot: Snapshot) -> bool:
    """Whether the load's groups have committed and no coordinator is still loading."""
    return len(snapshot.commits) > 0 and not snapshot.gaps


def replica_ends(reader: ClusterReader, topic: str) -> object:
    return partition(reader.read(only(topic, all_replicas=True)), topic)["replica_log_end_offsets"]


def lagging(reader: ClusterReader, topic: str) -> list[Any]:
    row = partition(reader.read(only(topic, all_replicas=True)), topic)
    return list((row["replica_log_end_offsets"] or {}).values())


def shrunk(reader: ClusterReader, topic: str) -> bool:
    isr: list[int] | None = partition(reader.read(only(topic)), topic)["isr"]
    return isr == [1]


def throttle(admin: SandboxAdmin, rate: str | None) -> None:
    for broker in (1, 2, 3):
        names = ("leader.replication.throttled.rate", "follower.replication.throttled.rate")
        admin.set_broker_config(broker, dict.fromkeys(names, rate))
