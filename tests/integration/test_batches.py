"""Batches of producers on real brokers: what a leader rejected, what is in its log, and what is not."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from rules.facts.batches import BatchesOf
from rules.facts.gap import GapCause, GapScope
from rules.facts.identity import TopicPartition
from rules.facts.producers import ProducerState
from rules.facts.snapshot import Snapshot
from rules.question import BatchesQuestion, BatchRequest, ProducersQuestion, Question
from service.observe.cluster_reader import ClusterReader, Scope
from service.runtime.clock import utc_now, wait_until
from service.sandbox.cluster.admin import Permission, SandboxAdmin
from service.sandbox.cluster.cluster import Sandbox
from service.sandbox.workloads.raw_cluster import RawCluster
from service.sandbox.workloads.raw_producer import (
    Protocol,
    RawProducer,
    SequencedProducer,
    append_plain,
    new_producer,
)
from tests.factories import ints
from tests.integration.conftest import MakeReader
from tests.integration.observing import only, why_of

pytestmark = pytest.mark.integration

NewName = Callable[[str], str]


@pytest.fixture
def raw(cluster: Sandbox) -> Iterator[RawCluster]:
    with RawCluster(cluster) as made:
        yield made


@pytest.fixture
def where(admin: SandboxAdmin, new_name: NewName) -> TopicPartition:
    name = new_name("batches")
    admin.create_topic(name, assignment=[[1, 2, 3]])
    return TopicPartition(name, 0)


@pytest.fixture
def producer(raw: RawCluster, new_name: NewName) -> SequencedProducer:
    return new_producer(raw, new_name("numbers"))


def wanted(
    where: TopicPartition,
    producer_id: int,
    *,
    offset: int | None = None,
    sequence: int | None = None,
    since: datetime | None = None,
) -> BatchRequest:
    return BatchRequest(
        name=where,
        producer_id=producer_id,
        offset=offset,
        sequence=sequence,
        last_record_at=since,
    )


def answer(reader: ClusterReader, *asked: BatchRequest) -> Snapshot:
    return reader.read(asking(asked[0].name, BatchesQuestion(asked)))


def asking(where: TopicPartition, *questions: Question) -> Scope:
    return replace(only(where.topic), questions=questions)


def one_of(snapshot: Snapshot) -> BatchesOf:
    assert snapshot.gaps == (), why_of(snapshot)
    [found] = snapshot.batches
    return found


def test_the_last_batch_before_a_rejected_one_and_what_heals_it(
    reader: ClusterReader, where: TopicPartition, producer: SequencedProducer
) -> None:
    producer.send(where, 0, 3)
    producer.expect_rejection(where, 6, 3)
    asked = wanted(where, producer.producer_id, offset=3, sequence=2)
    snapshot = answer(reader, asked)
    found = one_of(snapshot)
    assert [(one.base_offset, one.base_sequence, one.last_sequence) for one in found.batches] == [
        (0, 0, 2)
    ]
    assert found.batches[0].leader_epoch == snapshot.offsets.leader_epoch[0]
    assert found.batches[0].producer_epoch == producer.producer_epoch
    assert (found.scanned_from, found.scanned_to, found.largest_batch) == (0, 3, 3)
    producer.send(where, 3, 3)
    producer.send(where, 6, 3)
    healed = one_of(answer(reader, asked))
    assert [one.base_sequence for one in healed.batches] == [0, 3, 6]
    assert healed.scanned_to == 9
    assert "Fetch" not in answer(reader, asked).report.requests, "nothing new is there"


def test_a_batch_far_behind_is_found_by_what_the_leader_remembers_of_its_producer(
    raw: RawCluster, reader: ClusterReader, where: TopicPartition, producer: SequencedProducer
) -> None:
    append_plain(raw, where, 500)
    at = producer.send(where, 0, 5)
    pause_until_the_next_millisecond()
    for _ in range(5):
        append_plain(raw, where, 1000)
    end = append_plain(raw, where, 1) + 1
    states = ProducersQuestion(
        reader.read(only(where.topic)).partitions,
        ints(0),
        wants_states_of=frozenset({producer.producer_id, 2**40}),
    )
    batches = BatchesQuestion((wanted(where, producer.producer_id, offset=end, sequence=4),))
    snapshot = reader.read(asking(where, states, batches))
    [state] = snapshot.producers.states[0].values()
    assert isinstance(state, ProducerState)
    assert (state.producer_epoch, state.last_sequence) == (producer.producer_epoch, 4)
    found = one_of(snapshot)
    assert [(one.base_offset, one.last_sequence) for one in found.batches] == [(at, 4)]
    assert found.scanned_from > at, "what lies between was not scanned"
    assert found.scanned_to == end


def pause_until_the_next_millisecond() -> None:
    now = utc_now()
    assert wait_until(lambda: utc_now() - now > timedelta(milliseconds=2), timeout_seconds=1)


@pytest.mark.parametrize("protocol", list(Protocol))
def test_markers_are_told_from_a_time_on(
    raw: RawCluster,
    reader: ClusterReader,
    where: TopicPartition,
    new_name: NewName,
    protocol: Protocol,
) -> None:
    owner = RawProducer(cluster=raw, transactional_id=new_name("tx"), protocol=protocol)
    owner.begin()
    first, began = owner.producer_epoch, utc_now()
    commit(owner, where)
    # EndTxn is answered before its marker is there.
    older = wanted(where, owner.producer_id, since=began)
    assert wait_until(lambda: bool(one_of(answer(reader, older)).markers), timeout_seconds=180)
    append_plain(raw, where, 200)
    pause_until_the_next_millisecond()
    since = utc_now()
    commit(owner, where)
    released = wanted(where, owner.producer_id, since=since)
    assert wait_until(lambda: bool(one_of(answer(reader, released)).markers), timeout_seconds=180)
    found = one_of(answer(reader, released))
    bumps = protocol is Protocol.V2
    assert [marker.producer_epoch for marker in found.markers] == [first + 2 * bumps]
    assert [one.producer_epoch for one in found.batches] == [first + bumps]
    assert found.since == since
    assert found.scanned_from > 200, "what lies before was not asked for"
    everything = one_of(answer(reader, wanted(where, owner.producer_id, offset=10)))
    assert [marker.producer_epoch for marker in everything.markers] == [
        first + bumps,
        first + 2 * bumps,
    ]


def commit(owner: RawProducer, where: TopicPartition) -> None:
    owner.add(where)
    owner.produce(where, 2)
    owner.end(commit=True)


def test_partitions_of_a_leader_are_observed_at_with_one_request(
    raw: RawCluster,
    admin: SandboxAdmin,
    reader: ClusterReader,
    new_name: NewName,
    producer: SequencedProducer,
) -> None:
    topic = new_name("many")
    admin.create_topic(topic, assignment=[[1, 2, 3]] * 5)
    places = [TopicPartition(topic, number) for number in range(5)]
    for place in places:
        producer.send(place, 0, 2)
    snapshot = answer(reader, *(wanted(one, producer.producer_id, offset=2) for one in places))
    assert [one.name for one in snapshot.batches] == places
    assert snapshot.report.requests["Fetch"] == 1


def test_without_read_on_the_topic_the_answer_is_a_gap(
    cluster: Sandbox,
    admin: SandboxAdmin,
    make_reader: MakeReader,
    where: TopicPartition,
    producer: SequencedProducer,
) -> None:
    producer.send(where, 0, 2)
    user = admin.create_user("header-blind", "header-blind-sandbox-only")
    given = [
        Permission(user=user.name, operation="describe", resource=resource, name="*")
        for resource in ("cluster", "topic")
    ]
    admin.grant(given)
    try:
        blind = make_reader(
            bootstrap_servers=cluster.sasl_bootstrap_servers,
            security_protocol="SASL_PLAINTEXT",
            sasl_username=user.name,
            sasl_password=user.password,
        )
        assert wait_until(
            lambda: bool(len(blind.read(only(where.topic)).partitions)), timeout_seconds=180
        )
        snapshot = answer(blind, wanted(where, producer.producer_id, offset=2))
    finally:
        admin.revoke(given)
    assert snapshot.batches == ()
    [gap] = [gap for gap in snapshot.gaps if gap.scope is GapScope.BATCHES]
    assert gap.cause is GapCause.NOT_AUTHORIZED
    assert f"READ on Topic {where.topic}" in gap.why
