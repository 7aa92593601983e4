"""A group that is before many offsets: aborted records are nothing to read, others are."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from confluent_kafka import Producer

from rules.verdict import Verdict
from service.observe.cluster_reader import ClusterReader
from service.runtime.clock import wait_until
from service.sandbox.cluster.admin import SandboxAdmin
from service.sandbox.cluster.cluster import Sandbox
from tests.integration.clients import (
    FLUSH_SECONDS,
    commit_offset,
    produce,
    produce_in_transaction,
    transactional_producer,
)
from tests.integration.observing import commit, ends, only
from tests.integration.quick_time import QuickTime

pytestmark = pytest.mark.integration

NewName = Callable[[str], str]

ROUNDS_TO_ASK = 3
MOVES = (Verdict.OK, "moves")
NOTHING = (Verdict.OK, "nothing_to_read")
STALLED = (Verdict.BREACH, "abandoned")  # nobody ever joined these groups


def abort_in_small_batches(producer: Producer, topic: str, count: int) -> None:
    """Abort records of 2 kB that share no batch: more than one round scans."""
    producer.begin_transaction()
    for _ in range(count):
        producer.produce(topic, b"v" * 2000, partition=0)
        assert producer.flush(FLUSH_SECONDS) == 0
    producer.abort_transaction()


def test_a_group_before_aborted_records_alone_is_answered_after_the_question(
    cluster: Sandbox, admin: SandboxAdmin, reader: ClusterReader, new_name: NewName
) -> None:
    topic, name = new_name("aborted"), new_name("group")
    admin.create_topic(topic)
    producer = transactional_producer(cluster.bootstrap_servers, new_name("tx"))
    for _ in range(3):
        produce_in_transaction(producer, topic, 15)
        producer.abort_transaction()
    commit_offset(cluster.bootstrap_servers, name, topic, 0)
    assert wait_until(lambda: ends(reader, topic)[0] == 48, timeout_seconds=180)
    time = QuickTime(reader, only(topic, groups=name))
    assert [time.stalled() for _ in range(ROUNDS_TO_ASK)] == [MOVES] * ROUNDS_TO_ASK
    assert time.stalled() == NOTHING
    # One committed record more, and there is something to read.
    produce_in_transaction(producer, topic, 1)
    producer.commit_transaction()
    assert wait_until(lambda: ends(reader, topic)[0] == 50, timeout_seconds=180)
    assert time.stalled() == STALLED


def test_a_long_stretch_of_aborted_records_is_observed_through_over_some_rounds(
    cluster: Sandbox, admin: SandboxAdmin, reader: ClusterReader, new_name: NewName
) -> None:
    topic, name = new_name("long"), new_name("group")
    admin.create_topic(topic)
    producer = transactional_producer(cluster.bootstrap_servers, new_name("tx"))
    abort_in_small_batches(producer, topic, 40)
    commit_offset(cluster.bootstrap_servers, name, topic, 0)
    assert wait_until(lambda: ends(reader, topic)[0] == 41, timeout_seconds=180)
    time = QuickTime(reader, only(topic, groups=name))
    assert [time.stalled() for _ in range(ROUNDS_TO_ASK)] == [MOVES] * ROUNDS_TO_ASK
    assert time.stalled() == STALLED  # not settled in one round: told as before
    assert wait_until(lambda: time.stalled() == NOTHING, timeout_seconds=180)


def test_a_group_before_committed_records_unchanged_still(
    cluster: Sandbox, admin: SandboxAdmin, reader: ClusterReader, new_name: NewName
) -> None:
    topic, name = new_name("committed"), new_name("group")
    admin.create_topic(topic)
    produce(cluster.bootstrap_servers, topic, 40)
    commit_offset(cluster.bootstrap_servers, name, topic, 5)
    time = QuickTime(reader, only(topic, groups=name))
    assert [time.stalled() for _ in range(ROUNDS_TO_ASK)] == [MOVES] * ROUNDS_TO_ASK
    assert time.stalled() == STALLED
    assert time.seen is not None
    assert commit(time.seen, name, topic)["nothing_to_read"] is False
