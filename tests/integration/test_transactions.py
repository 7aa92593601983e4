"""Transactions on real brokers: who has one open, who holds a partition, and what we cannot see."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta

import pytest
from confluent_kafka import Consumer, TopicPartition

from collectors import cluster as cluster_collector
from collectors import state_topic as state_topic_collector
from collectors.producers import HELD_SECONDS
from collectors.security import Security
from collectors.session import Session
from collectors.state_topic import StateTopic, partition_of
from collectors.wire.api import DESCRIBE_PRODUCERS, LIST_TRANSACTIONS, Api
from collectors.wire.pool import Pool
from rules.facts.gap import GapCause, GapScope
from rules.facts.identity import TopicPartition as Place
from rules.facts.snapshot import Snapshot
from rules.facts.transactions import IdVisibility, Transaction, TransactionState
from service.app.cluster import bootstrap_addresses
from service.observe.cluster_reader import ClusterReader, Scope
from service.runtime.clock import monotonic, utc_now, wait_until
from service.sandbox.cluster.admin import Permission, SandboxAdmin
from service.sandbox.cluster.cluster import Sandbox
from service.sandbox.workloads.transactions import OpenTransaction
from tests.integration.clients import (
    TRANSACTION_TIMEOUT_MS,
    produce,
    produce_in_transaction,
    transactional_producer,
)
from tests.integration.conftest import MakeReader
from tests.integration.observing import only, why_of
from tests.integration.old_brokers import MISSING, old_brokers
from tests.kafka_release import SCRAM_USERS, VERSION, numbers

ASKS_METADATA_FOR_PLACEMENT = numbers(VERSION) < (3, 8)  # before DescribeTopicPartitions
pytestmark = pytest.mark.integration

NewName = Callable[[str], str]

TIMEOUT = timedelta(milliseconds=TRANSACTION_TIMEOUT_MS)


@pytest.fixture
def topic(admin: SandboxAdmin, new_name: NewName) -> str:
    """Make a topic, two of whose three partitions have the same leader."""
    name = new_name("transactions")
    admin.create_topic(name, assignment=[[1, 2, 3], [1, 2, 3], [2, 3, 1]])
    return name


@pytest.fixture
def opened(cluster: Sandbox, topic: str, new_name: NewName) -> Iterator[OpenTransaction]:
    """Hold a transaction open with three records at the beginning of the first partition."""
    made = OpenTransaction(
        cluster.bootstrap_servers,
        topic=topic,
        records=3,
        transactional_id=new_name("tx"),
        timeout_ms=TRANSACTION_TIMEOUT_MS,
    )
    with made:
        yield made


def known(snapshot: Snapshot, transactional_id: str) -> Transaction | None:
    return snapshot.transactions.known.get(transactional_id)


def read_held(reader: ClusterReader, scope: Scope) -> Snapshot:
    """Make rounds until the leaders are asked; the last stable offset is meanwhile."""
    rounds: list[Snapshot] = []

    def is_queried() -> bool:
        rounds.append(reader.read(scope))
        return "DescribeProducers" in rounds[-1].report.requests

    assert wait_until(is_queried, timeout_seconds=60 * HELD_SECONDS, poll_seconds=0.1)
    return rounds[-1]


@pytest.mark.smoke
def test_an_open_transaction_is_listed_with_all_its_partitions(
    cluster: Sandbox, reader: ClusterReader, topic: str, new_name: NewName
) -> None:
    produce(cluster.bootstrap_servers, topic, 5)
    name, group, before = new_name("tx"), new_name("group"), utc_now()
    producer = transactional_producer(cluster.bootstrap_servers, name)
    consumer = Consumer({"bootstrap.servers": cluster.bootstrap_servers, "group.id": group})
    produce_in_transaction(producer, topic, 1)
    metadata = consumer.consumer_group_metadata()
    producer.send_offsets_to_transaction([TopicPartition(topic, 0, 2)], metadata, 30)
    try:
        snapshot = reader.read(only(topic))
        found = known(snapshot, name)
        assert found is not None
        assert found.state is TransactionState.ONGOING
        assert (found.producer_epoch, found.timeout) == (0, TIMEOUT)
        assert found.started_at is not None
        assert before - timedelta(seconds=1) <= found.started_at <= utc_now() + timedelta(seconds=1)
        assert found.partitions is not None
        [offsets] = found.partitions - {Place(topic, 0)}
        assert offsets.topic == "__consumer_offsets"
        assert snapshot.transactions.is_complete
        assert snapshot.gaps == (), why_of(snapshot)
    finally:
        producer.abort_transaction(30)
        consumer.close()
    assert wait_until(lambda: known(reader.read(only(topic)), name) is None, timeout_seconds=180)


def test_the_coordinator_leads_the_partition_that_the_id_belongs_to(
    cluster: Sandbox, reader: ClusterReader, opened: OpenTransaction
) -> None:
    pool = Pool(Security())
    try:
        session = Session(pool)
        cluster_collector.collect(session, bootstrap_addresses(cluster.bootstrap_servers))
        placed = state_topic_collector.collect(session)
    finally:
        pool.close()
    assert isinstance(placed, StateTopic)
    found = known(reader.read(only(opened.topic)), opened.transactional_id)
    assert found is not None
    number = partition_of(opened.transactional_id, len(placed.leaders))
    assert placed.leaders[number] == found.coordinator


def test_a_healthy_cluster_costs_one_listing_per_broker(
    cluster: Sandbox, reader: ClusterReader, opened: OpenTransaction
) -> None:
    opened.abort()
    reader.read(only(opened.topic))
    assert wait_until(
        lambda: not reader.read(only(opened.topic)).transactions.known, timeout_seconds=180
    )
    requests = reader.read(only(opened.topic)).report.requests
    assert requests["ListTransactions"] == len(cluster.state.brokers)
    every_broker = 2 * len(cluster.state.brokers)  # two topics of coordinators
    assert requests["Metadata"] == every_broker + ASKS_METADATA_FOR_PLACEMENT
    assert not requests.keys() & {"DescribeTransactions", "DescribeProducers", "DescribeAcls"}


def test_a_held_partition_is_asked_about_with_one_request_per_leader(
    reader: ClusterReader, opened: OpenTransaction
) -> None:
    topic = opened.topic
    opened.produce(2, partition=1)
    opened.produce(1, partition=2)
    first = reader.read(only(topic))
    assert "DescribeProducers" not in first.report.requests
    snapshot = read_held(reader, only(topic))
    assert snapshot.report.requests["DescribeProducers"] == 2
    assert snapshot.producers.observed.tolist() == [True, True, True]
    coordinated = known(snapshot, opened.transactional_id)
    assert coordinated is not None
    assert [
        (found.row, found.producer_id, found.producer_epoch, found.start_offset)
        for found in snapshot.producers.open
    ] == [(row, coordinated.producer_id, coordinated.producer_epoch, 0) for row in range(3)]
    assert [found.coordinator_epoch for found in snapshot.producers.open] == [None] * 3
    assert all(found.last_record_at for found in snapshot.producers.open)

    resolved = reader.read(only(topic))
    assert coordinated.producer_id in resolved.transactions.resolved
    opened.commit()
    ended = reader.read(only(topic))
    completed = known(ended, opened.transactional_id)
    assert completed is not None
    assert completed.state in {TransactionState.COMPLETE_COMMIT, TransactionState.PREPARE_COMMIT}
    assert ended.gaps == (), why_of(ended)

    def is_forgotten() -> bool:
        later = reader.read(only(topic))
        return not later.producers.observed.any() and not later.transactions.resolved

    assert wait_until(is_forgotten, timeout_seconds=180)


def test_the_start_offset_is_the_held_one_and_a_marker_has_its_coordinators_epoch(
    cluster: Sandbox, reader: ClusterReader, topic: str, new_name: NewName
) -> None:
    producer = transactional_producer(cluster.bootstrap_servers, new_name("tx"))
    produce_in_transaction(producer, topic, 4)
    producer.commit_transaction(30)
    produce_in_transaction(producer, topic, 2)
    try:
        snapshot = read_held(reader, only(topic))
        [found] = snapshot.producers.open
        assert snapshot.offsets.last_stable_offset[0] == found.start_offset == 5
        assert found.coordinator_epoch is not None
    finally:
        producer.abort_transaction(30)


def test_an_offset_that_moves_causes_no_question(
    cluster: Sandbox, reader: ClusterReader, topic: str, new_name: NewName
) -> None:
    producer = transactional_producer(cluster.bootstrap_servers, new_name("tx"))
    produce_in_transaction(producer, topic, 1)
    begin, stable = monotonic(), set()
    try:
        while monotonic() - begin < 2 * HELD_SECONDS:
            producer.commit_transaction(30)
            produce_in_transaction(producer, topic, 1)
            snapshot = reader.read(only(topic))
            assert "DescribeProducers" not in snapshot.report.requests
            stable.add(snapshot.offsets.last_stable_offset[0])
        assert len(stable) > 2
        assert "DescribeProducers" in read_held(reader, only(topic)).report.requests
    finally:
        producer.abort_transaction(30)


def test_a_frozen_coordinator_leaves_it_incomplete_until_another_one_lists_its_transactions(
    faults: Sandbox, make_reader: MakeReader, opened: OpenTransaction
) -> None:
    reader, scope = make_reader(request_timeout_seconds=1.0), only(opened.topic)
    seen = known(reader.read(scope), opened.transactional_id)
    assert seen is not None
    faults.pause(seen.coordinator)
    snapshot = reader.read(scope)
    assert not snapshot.transactions.is_complete
    assert known(snapshot, opened.transactional_id) is None
    scopes = {gap.scope for gap in snapshot.gaps if gap.broker_id == seen.coordinator}
    assert GapScope.TRANSACTIONS in scopes, why_of(snapshot)

    def has_moved() -> bool:
        moved = known(reader.read(scope), opened.transactional_id)
        return moved is not None and moved.coordinator != seen.coordinator

    assert wait_until(has_moved, timeout_seconds=180, poll_seconds=0.3)
    faults.resume(seen.coordinator)
    assert wait_until(lambda: reader.read(scope).transactions.is_complete, timeout_seconds=180)
    kept = known(reader.read(scope), opened.transactional_id)
    assert kept is not None
    assert replace(kept, coordinator=seen.coordinator) == seen


@pytest.fixture
def limited(cluster: Sandbox, admin: SandboxAdmin, make_reader: MakeReader) -> Iterator[MakeReader]:
    """Make readers that log in as a user of this test alone, who may see the cluster and topics."""
    user = admin.create_user("short-sighted", "short-sighted-sandbox-only")
    given = [allow("describe", "cluster"), allow("describe", "topic")]
    admin.grant(given)

    def make(**settings: object) -> ClusterReader:
        return make_reader(
            bootstrap_servers=cluster.sasl_bootstrap_servers,
            security_protocol="SASL_PLAINTEXT",
            sasl_username=user.name,
            sasl_password=user.password,
            **settings,
        )

    yield make
    admin.revoke(given)


def allow(operation: str, resource: str, name: str = "*") -> Permission:
    return Permission(user="short-sighted", operation=operation, resource=resource, name=name)


@pytest.mark.parametrize(
    ("operation", "every", "visibility"),
    [
        pytest.param("describe", True, IdVisibility.ACLS, id="describe-every-one"),
        pytest.param("write", True, IdVisibility.ACLS, id="write-implies-it"),
        pytest.param("describe", False, IdVisibility.UNPROVEN, id="describe-this-one"),
    ],
)
@SCRAM_USERS
def test_visibility_is_what_the_permissions_are(
    admin: SandboxAdmin,
    limited: MakeReader,
    opened: OpenTransaction,
    *,
    operation: str,
    every: bool,
    visibility: IdVisibility,
) -> None:
    scope = only(opened.topic)
    blind = limited().read(scope)
    assert blind.transactions.visibility is IdVisibility.UNPROVEN
    assert known(blind, opened.transactional_id) is None
    assert blind.transactions.is_complete  # every coordinator answered: it proves nothing
    assert all(gap.scope is not GapScope.TRANSACTIONS for gap in blind.gaps), why_of(blind)

    name = "*" if every else opened.transactional_id
    given = [allow(operation, "transactional_id", name)]
    admin.grant(given)
    try:

        def has_visibility() -> bool:
            seen = limited().read(scope)
            found = known(seen, opened.transactional_id)
            return found is not None and seen.transactions.visibility is visibility

        assert wait_until(has_visibility, timeout_seconds=180)
    finally:
        admin.revoke(given)


def test_one_other_permission_on_a_name_hides_nothing_from_those_who_may_see_all(
    admin: SandboxAdmin, reader: ClusterReader, make_reader: MakeReader, topic: str
) -> None:
    others = [
        Permission(user="somebody", operation="write", resource="transactional_id", name=name)
        for name in ("theirs", "zahlungen-ä")
    ]
    admin.grant(others)
    try:
        assert reader.read(only(topic)).transactions.visibility is IdVisibility.ACLS  # a super user
        declared = make_reader(sees_all_transactional_ids=True).read(only(topic))
        assert declared.transactions.visibility is IdVisibility.DECLARED
        assert "DescribeAcls" not in declared.report.requests
    finally:
        admin.revoke(others)


@SCRAM_USERS
def test_without_read_on_the_topic_its_holder_stays_unknown(
    limited: MakeReader, opened: OpenTransaction
) -> None:
    snapshot = read_held(limited(), only(opened.topic))
    assert not snapshot.producers.observed.any()
    assert snapshot.producers.open == ()
    [gap] = [gap for gap in snapshot.gaps if gap.scope is GapScope.PRODUCERS]
    assert gap.cause is GapCause.NOT_AUTHORIZED
    assert f"needs READ on Topic {opened.topic}" in gap.why
    assert f"{opened.topic}-0" in gap.what


@pytest.mark.parametrize(
    ("api", "scope"),
    [
        pytest.param(LIST_TRANSACTIONS, GapScope.TRANSACTIONS, id="no-listing"),
        pytest.param(DESCRIBE_PRODUCERS, GapScope.PRODUCERS, id="no-producers"),
    ],
)
def test_brokers_that_are_too_old_are_told_and_prove_nothing(
    cluster: Sandbox,
    make_reader: MakeReader,
    opened: OpenTransaction,
    api: Api,
    scope: GapScope,
) -> None:
    with old_brokers(cluster, {api.key: MISSING}) as bootstrap:
        reader = make_reader(bootstrap_servers=bootstrap)
        rounds: list[Snapshot] = []

        def is_reported() -> bool:
            rounds.append(reader.read(only(opened.topic)))
            return any(gap.scope is scope for gap in rounds[-1].gaps)

        assert wait_until(is_reported, timeout_seconds=60 * HELD_SECONDS, poll_seconds=0.1)
    [gap] = rounds[-1].gaps
    assert gap.cause is GapCause.UNSUPPORTED
    assert rounds[-1].transactions.is_complete is (api is not LIST_TRANSACTIONS)
    assert not rounds[-1].producers.observed.any()
