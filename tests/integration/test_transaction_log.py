"""`__transaction_state` of real brokers: every record, and each way of ending a transaction."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from collectors.security import Security, SecurityProtocol
from collectors.state_topic import StateTopic
from collectors.transaction_tail import CUT_SHORT, fetch
from collectors.wire.failure import Failure
from rules.facts.gap import GapCause, GapScope
from rules.facts.identity import TRANSACTION_STATE
from rules.facts.transaction_log import Cut, Outcome
from rules.facts.transactions import TransactionState
from service.runtime.clock import wait_until
from service.sandbox.cluster.admin import Permission, SandboxAdmin
from service.sandbox.cluster.cluster import Sandbox
from service.sandbox.workloads.transactions import OpenTransaction
from tests.integration.clients import (
    TRANSACTION_TIMEOUT_MS,
    produce,
    produce_in_transaction,
    transactional_producer,
)
from tests.integration.state_log import (
    SOON,
    TOOLS,
    Follower,
    as_kafka_prints,
    printed_by_kafka,
    producing,
    run_tool,
    running_tool,
)

pytestmark = pytest.mark.integration

NewName = Callable[[str], str]
PERFORMANCE = f"{TOOLS}.ProducerPerformance"
SHORT_MS = 3000  # the sandbox's coordinators observation every 2 s for what is over


@pytest.fixture
def follower(cluster: Sandbox) -> Iterator[Follower]:
    """Give a follower that is at the end of the log, which exists by then."""
    transactional_producer(cluster.bootstrap_servers, "makes-the-topic")
    made = Follower(cluster.bootstrap_servers)
    assert wait_until(lambda: made.read().is_whole, timeout_seconds=SOON), made.session.gaps
    yield made
    made.close()


@pytest.fixture
def topic(admin: SandboxAdmin, new_name: NewName) -> str:
    name = new_name("ended")
    admin.create_topic(name, partitions=3)
    return name


def wait_until_open(follower: Follower, transactional_id: str) -> None:
    """Wait until the log says that this transaction has begun."""

    def is_open() -> bool:
        of_id = [r for r in follower.everything() if r.transactional_id == transactional_id]
        value = of_id[-1].value if of_id else None
        return value is not None and value.state is TransactionState.ONGOING

    assert wait_until(is_open, timeout_seconds=SOON), transactional_id


def send_offsets(servers: str, topic: str, transactional_id: str) -> None:
    """Commit records to several partitions, and offsets of a group, in one transaction."""
    producer = transactional_producer(servers, transactional_id)
    producer.begin_transaction()
    for partition in range(3):
        producer.produce(topic, b"value", partition=partition)
    consumer = Consumer({"bootstrap.servers": servers, "group.id": transactional_id})
    positions = [TopicPartition(topic, 0, 1)]
    producer.send_offsets_to_transaction(positions, consumer.consumer_group_metadata(), SOON)
    producer.commit_transaction(SOON)
    consumer.close()


def write_tombstone(servers: str, transactional_id: str) -> None:
    """Write what a coordinator writes when an id expires; only this client id may."""
    client = Producer({"bootstrap.servers": servers, "client.id": "__admin_client"})
    key = b"\0\0" + len(transactional_id).to_bytes(2, "big") + transactional_id.encode()
    client.produce(TRANSACTION_STATE, key=key, value=None, partition=0)
    assert client.flush(SOON) == 0


def copy_with_java(cluster: Sandbox, scratch: Path, topic: str, transactional_id: str) -> None:
    """Copy records within transactions of Kafka's own client; some are aborted, at random."""
    run_tool(
        cluster,
        scratch,
        f"{TOOLS}.TransactionalMessageCopier",
        *("--broker-list", cluster.bootstrap_servers, "--consumer-group", transactional_id),
        *("--input-topic", topic, "--input-partition", "0", "--output-topic", topic),
        *("--transactional-id", transactional_id, "--transaction-size", "2"),
        *("--max-messages", "10", "--enable-random-aborts"),
    )


def write_all_kinds(
    cluster: Sandbox, scratch: Path, topic: str, new_id: NewName, follower: Follower
) -> None:
    """End transactions in every way, by librdkafka and by Kafka's own client."""
    servers = cluster.bootstrap_servers
    send_offsets(servers, topic, new_id("offsets"))
    with OpenTransaction(servers, topic=topic, transactional_id=new_id("aborted")):
        pass  # aborted at the end of the block
    fenced, late = new_id("fenced"), new_id("late")
    with OpenTransaction(servers, topic=topic, transactional_id=late, timeout_ms=SHORT_MS) as slow:
        slow.abandon()
    first = transactional_producer(servers, fenced)
    produce_in_transaction(first, topic, 1)
    transactional_producer(servers, fenced)
    write_tombstone(servers, new_id("expired"))
    produce(servers, topic, 20)
    copy_with_java(cluster, scratch, topic, new_id("copied"))
    follower.wait_for(late)


def compare(cluster: Sandbox, scratch: Path, follower: Follower) -> list[int]:
    """Compare all records of a quiet topic; return the versions of their values."""
    ours, theirs = list[str](), list[str]()

    def is_same_before_and_after() -> bool:
        ours[:] = [as_kafka_prints(record) for record in follower.everything()]
        theirs[:] = printed_by_kafka(cluster, scratch, len(ours))
        return len(follower.everything()) == len(ours)

    assert wait_until(is_same_before_and_after, timeout_seconds=SOON)
    assert len(ours) > 20
    assert Counter(ours) == Counter(theirs)
    values = [record.value for record in follower.everything()]
    assert None in values  # the tombstone
    return [value.version for value in values if value is not None]


@pytest.fixture
def transaction_version(cluster: Sandbox, tmp_path: Path) -> Iterator[Callable[[str, int], None]]:
    """Change the cluster's transaction.version; it is 2 again afterwards."""

    def change(verb: str, version: int) -> None:
        servers = ("--bootstrap-server", cluster.bootstrap_servers)
        feature = ("--feature", f"transaction.version={version}")
        run_tool(cluster, tmp_path, f"{TOOLS}.FeatureCommand", *servers, verb, *feature)

    yield change
    change("upgrade", 2)


def test_every_record_agrees_with_kafkas_own_formatter(
    *,
    cluster: Sandbox,
    tmp_path: Path,
    topic: str,
    new_name: NewName,
    follower: Follower,
    transaction_version: Callable[[str, int], None],
) -> None:
    write_all_kinds(cluster, tmp_path, topic, new_name, follower)
    transaction_version("downgrade", 0)
    write_all_kinds(cluster, tmp_path, topic, new_name, follower)
    assert set(compare(cluster, tmp_path, follower)) == {0, 1}
    assert follower.read().is_whole


def test_the_owner_ends_it_and_a_restart_is_no_cut(
    cluster: Sandbox, topic: str, new_name: NewName, follower: Follower
) -> None:
    name = new_name("owner")
    for _ in range(2):
        producer = transactional_producer(cluster.bootstrap_servers, name)
        produce_in_transaction(producer, topic, 1)
        producer.commit_transaction(SOON)
        produce_in_transaction(producer, topic, 1)
        producer.abort_transaction(SOON)
    ended = follower.wait_for(name, 4)
    assert [one.outcome for one in ended] == [Outcome.COMMITTED, Outcome.ABORTED] * 2
    assert [one.cut for one in ended] == [None] * 4
    assert all(0 < one.duration.total_seconds() < SOON for one in ended)
    assert {one.timeout.total_seconds() * 1000 for one in ended} == {TRANSACTION_TIMEOUT_MS}
    assert [one.producer_epoch for one in ended] == [0, 0, 1, 1]


def test_a_second_instance_cuts_it(
    cluster: Sandbox, topic: str, new_name: NewName, follower: Follower
) -> None:
    name = new_name("twice")
    first = transactional_producer(cluster.bootstrap_servers, name)
    produce_in_transaction(first, topic, 1)
    transactional_producer(cluster.bootstrap_servers, name)
    [one] = follower.wait_for(name)
    assert (one.outcome, one.cut) == (Outcome.ABORTED, Cut.SECOND_INSTANCE)
    assert one.producer_epoch == 0


def test_a_timeout_cuts_it(
    cluster: Sandbox, topic: str, new_name: NewName, follower: Follower
) -> None:
    name = new_name("late")
    servers = cluster.bootstrap_servers
    with OpenTransaction(servers, topic=topic, transactional_id=name, timeout_ms=SHORT_MS) as slow:
        slow.abandon()
    [one] = follower.wait_for(name)
    assert (one.outcome, one.cut) == (Outcome.ABORTED, Cut.TIMEOUT)
    assert one.duration > one.timeout
    assert one.timeout.total_seconds() * 1000 == SHORT_MS


def test_with_transactions_v2_a_timeout_is_told_and_a_second_instance_is_not(
    cluster: Sandbox, tmp_path: Path, topic: str, new_name: NewName, follower: Follower
) -> None:
    late, twice = new_name("java-late"), new_name("java-twice")
    over = f"transaction.timeout.ms={SHORT_MS}"
    with running_tool(cluster, tmp_path, PERFORMANCE, *producing(cluster, topic, late, over)):
        wait_until_open(follower, late)
    with running_tool(cluster, tmp_path, PERFORMANCE, *producing(cluster, topic, twice)):
        wait_until_open(follower, twice)
        transactional_producer(cluster.bootstrap_servers, twice)
        [cut] = follower.wait_for(twice)
    [timed_out] = follower.wait_for(late)
    assert (timed_out.outcome, timed_out.cut) == (Outcome.ABORTED, Cut.TIMEOUT)
    assert (cut.outcome, cut.cut) == (Outcome.ABORTED, None)
    assert (timed_out.producer_epoch, cut.producer_epoch) == (0, 0)


def test_permissions_are_told_apart_from_nothing_there(
    cluster: Sandbox, admin: SandboxAdmin, new_name: NewName, follower: Follower
) -> None:
    user = admin.create_user(new_name("reader"), "reader-sandbox-only")
    security = Security(
        protocol=SecurityProtocol.SASL_PLAINTEXT,
        sasl_username=user.name,
        sasl_password=user.password,
    )
    blind = Follower(cluster.sasl_bootstrap_servers, security)
    describe, read = (
        Permission(user=user.name, operation=operation, resource="topic", name=TRANSACTION_STATE)
        for operation in ("describe", "read")
    )
    try:
        hidden = blind.placed()
        assert isinstance(hidden, Failure)
        assert hidden.cause is GapCause.NOT_AUTHORIZED
        assert hidden.why.endswith(f"needs DESCRIBE on Topic {TRANSACTION_STATE}")
        admin.grant([describe])
        assert wait_until(lambda: isinstance(blind.placed(), StateTopic), timeout_seconds=SOON)
        log = blind.read()
        assert (log.is_read, log.ended) == (False, ())
        [gap] = blind.session.gaps
        assert (gap.scope, gap.cause) == (GapScope.TRANSACTION_LOG, GapCause.NOT_AUTHORIZED)
        assert gap.why.endswith(f"needs READ on Topic {TRANSACTION_STATE}")
        admin.grant([read])
        assert wait_until(lambda: blind.read().is_whole, timeout_seconds=SOON)
        assert blind.ended == []  # it begins at the end
    finally:
        blind.close()
        admin.revoke([describe, read])


@pytest.mark.parametrize("place", ["beyond its end", "in a history that never was"])
def test_a_log_that_was_truncated_is_noticed(follower: Follower, place: str) -> None:
    beyond = place == "beyond its end"
    tail = follower.tail(0, 10**9 if beyond else 0, None if beyond else 10**6)
    assert list(fetch(follower.session, [tail])) == []
    assert (tail.failure, tail.position) == (CUT_SHORT, None)


def test_no_end_is_lost_when_a_leader_dies(
    faults: Sandbox, topic: str, new_name: NewName, follower: Follower
) -> None:
    placed = follower.placed()
    assert isinstance(placed, StateTopic)
    victim = placed.leaders[0]
    assert victim is not None
    names = [new_name("survivor") for _ in range(12)]
    producers = [transactional_producer(faults.bootstrap_servers, name) for name in names]
    faults.kill(victim)
    try:
        for producer in producers:
            produce_in_transaction(producer, topic, 1)
            producer.commit_transaction(SOON)
    finally:
        faults.start(victim)
    for name in names:
        [one] = follower.wait_for(name)
        assert (one.outcome, one.cut) == (Outcome.COMMITTED, None)
    assert wait_until(lambda: follower.read().is_whole, timeout_seconds=SOON)
