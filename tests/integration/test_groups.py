"""Groups of every type, what they committed, and whether anything is left to read."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from confluent_kafka import Consumer, Message, TopicPartition
from confluent_kafka.admin import AdminClient

from rules.facts.gap import GapCause
from service.observe.cluster_reader import ClusterReader, Scope
from service.runtime.clock import wait_until
from service.sandbox.cluster.admin import Permission, SandboxAdmin
from service.sandbox.cluster.cluster import Sandbox
from service.views.snapshot_rows import group_rows
from tests.integration.clients import (
    commit_offset,
    produce,
    produce_in_transaction,
    transactional_producer,
)
from tests.integration.conftest import MakeReader
from tests.integration.java_groups import ShareConsumer
from tests.integration.observing import commit, group, only, partition, why_of

pytestmark = pytest.mark.integration

NewName = Callable[[str], str]


@contextmanager
def member(bootstrap: str, name: str, topic: str, **config: str) -> Iterator[Consumer]:
    """Join a group, read everything and commit it."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": name,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            **config,
        }
    )
    consumer.subscribe([topic])
    try:
        yield consumer
    finally:
        consumer.close()


def read_and_commit(consumer: Consumer, count: int) -> None:
    """Read `count` records and commit the position behind the last one."""
    found: list[Message] = []

    def has_all() -> bool:
        found.extend(consumer.consume(count, timeout=0.2))
        return len(found) >= count

    assert wait_until(has_all, timeout_seconds=180, poll_seconds=0)
    consumer.commit(asynchronous=False)


def share_start(reader: ClusterReader, name: str, topic: str) -> int | None:
    """Return the share group's start offset, None while it has none."""
    rows = [row for row in group_rows(reader.read(only(topic))) if row["group"] == name]
    starts = [row["committed_offset"] for found in rows for row in found["commits"]]
    return starts[0] if starts else None


@pytest.mark.smoke
def test_five_groups_of_four_kinds_are_right(
    cluster: Sandbox, admin: SandboxAdmin, reader: ClusterReader, new_name: NewName
) -> None:
    topic = new_name("kinds")
    admin.create_topic(topic)
    produce(cluster.bootstrap_servers, topic, 8)
    names = {kind: new_name(kind) for kind in ("classic", "empty", "offsets", "consumer", "share")}
    servers = cluster.bootstrap_servers
    with member(servers, names["empty"], topic) as left:
        read_and_commit(left, 8)
    commit_offset(servers, names["offsets"], topic, 3)
    with (
        member(servers, names["classic"], topic) as classic,
        member(servers, names["consumer"], topic, **{"group.protocol": "consumer"}) as modern,
        ShareConsumer(cluster, topic=topic, group=names["share"]) as share,
    ):
        read_and_commit(classic, 8)
        read_and_commit(modern, 8)
        # The start offset is stored with the next acknowledgement: one more record moves it.
        assert wait_until(lambda: share.counts.consumed == 8, timeout_seconds=180)
        produce(servers, topic, 1)
        assert wait_until(
            lambda: share_start(reader, names["share"], topic) == 8, timeout_seconds=180
        )
        snapshot = reader.read(only(topic))
    seen = {
        kind: (row["type"], row["state"], row["members"])
        for kind, row in ((kind, group(snapshot, name)) for kind, name in names.items())
    }
    assert seen == {
        "classic": ("classic", "Stable", 1),
        "empty": ("classic", "Empty", 0),
        "offsets": ("classic", "Empty", 0),
        "consumer": ("consumer", "Stable", 1),
        "share": ("share", "Stable", 1),
    }
    committed = {
        kind: commit(snapshot, name, topic)["committed_offset"] for kind, name in names.items()
    }
    assert committed == {"classic": 8, "empty": 8, "offsets": 3, "consumer": 8, "share": 8}
    assert commit(snapshot, names["classic"], topic)["committed_leader_epoch"] == 0
    assert commit(snapshot, names["offsets"], topic)["read_committed_lag"] == 6
    assert commit(snapshot, names["share"], topic)["nothing_to_read"] is None
    assert commit(snapshot, names["offsets"], topic)["nothing_to_read"] is False
    assert snapshot.gaps == (), why_of(snapshot)


def test_end_of_a_transactional_topic_is_nothing_to_read(
    cluster: Sandbox, admin: SandboxAdmin, reader: ClusterReader, new_name: NewName
) -> None:
    topic = new_name("markers")
    admin.create_topic(topic)
    producer = transactional_producer(cluster.bootstrap_servers, new_name("tx"))
    produce_in_transaction(producer, topic, 5)
    producer.commit_transaction()
    produce_in_transaction(producer, topic, 2)
    producer.abort_transaction()
    done, behind = new_name("done"), new_name("behind")
    commit_offset(cluster.bootstrap_servers, done, topic, 5)  # the last record, not the markers
    commit_offset(cluster.bootstrap_servers, behind, topic, 4)
    assert wait_until(
        lambda: partition(reader.read(only(topic)), topic)["last_stable_offset"] == 9,
        timeout_seconds=180,
    )
    snapshot = reader.read(only(topic))
    at_end, one_left = commit(snapshot, done, topic), commit(snapshot, behind, topic)
    assert (at_end["read_committed_lag"], at_end["nothing_to_read"]) == (4, True)
    assert (one_left["read_committed_lag"], one_left["nothing_to_read"]) == (5, False)

    produce_in_transaction(producer, topic, 1)
    still_open = commit(reader.read(only(topic)), done, topic)
    assert (still_open["read_committed_lag"], still_open["nothing_to_read"]) == (4, True)
    assert still_open["read_uncommitted_lag"] == 5
    producer.commit_transaction()
    assert wait_until(
        lambda: commit(reader.read(only(topic)), done, topic)["nothing_to_read"] is False,
        timeout_seconds=180,
    )


def test_caught_up_group_has_nothing_to_read_and_no_commit_is_no_row(
    cluster: Sandbox, admin: SandboxAdmin, reader: ClusterReader, new_name: NewName
) -> None:
    topic, name = new_name("caught"), new_name("group")
    admin.create_topic(topic, partitions=2)
    produce(cluster.bootstrap_servers, topic, 4)
    commit_offset(cluster.bootstrap_servers, name, topic, 4)
    snapshot = reader.read(only(topic, groups=name))
    [row] = group(snapshot, name)["commits"]
    assert (row["partition"], row["read_committed_lag"], row["nothing_to_read"]) == (0, 0, True)


def test_more_than_ten_offsets_behind_is_not_asked(
    cluster: Sandbox, admin: SandboxAdmin, reader: ClusterReader, new_name: NewName
) -> None:
    topic, name = new_name("far"), new_name("group")
    admin.create_topic(topic)
    produce(cluster.bootstrap_servers, topic, 20)
    commit_offset(cluster.bootstrap_servers, name, topic, 9)
    snapshot = reader.read(only(topic, groups=name))
    assert commit(snapshot, name, topic)["nothing_to_read"] is None
    assert "Fetch" not in snapshot.report.requests


def test_commit_metadata_text_is_read_all_the_same(
    cluster: Sandbox, admin: SandboxAdmin, reader: ClusterReader, new_name: NewName
) -> None:
    topic, name = new_name("noted"), new_name("group")
    admin.create_topic(topic)
    produce(cluster.bootstrap_servers, topic, 4)
    consumer = Consumer({"bootstrap.servers": cluster.bootstrap_servers, "group.id": name})
    position = TopicPartition(topic, 0, 2, metadata="written by a stream application")
    consumer.commit(offsets=[position], asynchronous=False)
    consumer.close()
    snapshot = reader.read(only(topic, groups=name))
    assert commit(snapshot, name, topic)["committed_offset"] == 2


def test_deleted_topic_has_no_lag_and_leaves_no_trace(
    cluster: Sandbox, admin: SandboxAdmin, reader: ClusterReader, new_name: NewName
) -> None:
    topic, name = new_name("deleted"), new_name("group")
    admin.create_topic(topic)
    produce(cluster.bootstrap_servers, topic, 4)
    commit_offset(cluster.bootstrap_servers, name, topic, 2)
    assert commit(reader.read(Scope()), name, topic)["read_committed_lag"] == 2
    admin.delete_topic(topic)
    # A broker that has not heard of it yet still leads the partition, with a lag that is true.
    assert wait_until(lambda: not is_listed(cluster, topic), timeout_seconds=180)

    def is_gone() -> bool:
        snapshot = reader.read(Scope())
        assert topic not in snapshot.partitions.index.topics
        rows = [row for found in group_rows(snapshot) for row in found["commits"]]
        assert [row for row in rows if row["topic"] == topic] == []
        # Until the coordinator has dropped the commits too, they are a gap.
        return snapshot.gaps == ()

    assert wait_until(is_gone, timeout_seconds=180), why_of(reader.read(Scope()))


def is_listed(cluster: Sandbox, topic: str) -> bool:
    """Whether any broker still knows the topic; a new client asks the broker it was given."""
    clients = [
        AdminClient({"bootstrap.servers": cluster.broker_address(node.id)})
        for node in cluster.state.brokers
    ]
    return any(topic in client.list_topics(timeout=180).topics for client in clients)


@pytest.fixture
def limited(cluster: Sandbox, admin: SandboxAdmin, make_reader: MakeReader) -> MakeReader:
    """Make readers that come as a user with the permissions a test gives it."""
    user = admin.create_user("limited", "limited-sandbox-only")

    def make(**settings: object) -> ClusterReader:
        return make_reader(
            bootstrap_servers=cluster.sasl_bootstrap_servers,
            security_protocol="SASL_PLAINTEXT",
            sasl_username=user.name,
            sasl_password=user.password,
            **settings,
        )

    return make


def allow(operation: str, resource: str, name: str = "*") -> Permission:
    return Permission(user="limited", operation=operation, resource=resource, name=name)


def test_observer_of_the_sandbox_sees_everything(
    cluster: Sandbox, make_reader: MakeReader, reader: ClusterReader
) -> None:
    observer = make_reader(
        bootstrap_servers=cluster.sasl_bootstrap_servers,
        security_protocol="SASL_PLAINTEXT",
        sasl_mechanism="SCRAM-SHA-256",
        sasl_username="observer",
        sasl_password="observer-sandbox-only",  # noqa: S106 - the sandbox's own, on loopback
    )
    seen, known = observer.read(Scope()), reader.read(Scope())
    assert seen.gaps == (), why_of(seen)
    assert seen.partitions.index.topics == known.partitions.index.topics
    assert seen.groups == known.groups
    assert seen.report.setup_requests["SaslAuthenticate"] == 2 * len(cluster.state.brokers)


def test_missing_permissions_are_gaps_that_name_them(
    cluster: Sandbox,
    admin: SandboxAdmin,
    limited: MakeReader,
    new_name: NewName,
) -> None:
    topic, hidden, name = new_name("seen"), new_name("hidden"), new_name("group")
    for created in (topic, hidden):
        admin.create_topic(created)
        produce(cluster.bootstrap_servers, created, 3)
    commit_offset(cluster.bootstrap_servers, name, topic, 1)
    given = [allow("describe", "topic", topic)]
    admin.grant(given)
    try:
        snapshot = limited().read(only(topic))
        assert partition(snapshot, topic)["high_watermark"] == 3
        told = why_of(snapshot)
        assert "DESCRIBE on Cluster" in told
        assert "DESCRIBE_CONFIGS on Topic" in told
        assert partition(snapshot, topic)["min_insync_replicas"] is None
        assert snapshot.controller is None

        told = why_of(limited().read(only(hidden)))
        assert f"needs DESCRIBE on Topic {hidden}" in told

        given.append(allow("describe", "cluster"))
        admin.grant(given)
        snapshot = limited().read(only(topic, groups=name))
        assert f"needs DESCRIBE on Group {name}" in why_of(snapshot)
        assert len(snapshot.commits) == 0

        given.append(allow("describe", "group", name))
        admin.grant(given)
        snapshot = limited().read(only(topic, groups=name))
        row = commit(snapshot, name, topic)
        assert (row["read_committed_lag"], row["nothing_to_read"]) == (2, None)
        assert f"needs READ on Topic {topic}" in why_of(snapshot)
        assert {gap.cause for gap in snapshot.gaps} == {GapCause.NOT_AUTHORIZED}
    finally:
        admin.revoke(given)
