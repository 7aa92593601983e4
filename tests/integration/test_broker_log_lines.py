"""What real brokers write to their logs is read, and says what they were asked to refuse."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from collectors.broker_log.parser import LineParser
from rules.facts.broker_log import (
    EpochRejected,
    FollowerStarted,
    LogEvent,
    LogTruncated,
    Origin,
    SequenceForm,
    SequenceRejected,
    partition_of,
)
from rules.facts.identity import TopicPartition
from service.runtime.clock import utc_now, wait_until
from service.sandbox.cluster.admin import SandboxAdmin
from service.sandbox.cluster.cluster import Sandbox
from service.sandbox.workloads.raw_cluster import RawCluster
from service.sandbox.workloads.raw_producer import (
    OLD_EPOCH,
    PRODUCE_V2,
    Protocol,
    RawProducer,
    SequencedProducer,
    new_producer,
)

pytestmark = pytest.mark.integration

SKEW = timedelta(seconds=2)  # a log's times are cut to milliseconds, and written a time later


@pytest.fixture
def where(admin: SandboxAdmin, new_name: Callable[[str], str]) -> TopicPartition:
    """Make a topic with a name that could be taken for several things."""
    topic = new_name("orders-7.at-offset-3_in-partition-1")
    admin.create_topic(topic, partitions=1, replication=2)
    return TopicPartition(topic, 0)


@pytest.fixture
def raw(cluster: Sandbox) -> Iterator[RawCluster]:
    with RawCluster(cluster) as made:
        yield made


def test_every_rejection_that_a_broker_of_this_version_can_be_made_to_write_is_read(
    cluster: Sandbox, raw: RawCluster, where: TopicPartition, new_name: Callable[[str], str]
) -> None:
    begin = utc_now()
    producer = new_producer(raw, new_name("idempotent"))
    make_rejections(producer, where)
    transactional = _transactional(raw, new_name("transactional"))
    transactional.expect_rejection(where, 7, 1)  # no state, transactions v2

    events = [event for event in _events_on(cluster, where) if _is_rejection(event)]
    assert {event.origin.broker_id for event in events} == {raw.placed(where).leader}
    times = [event.origin.at for event in events]
    assert all(at is not None and begin - SKEW < at < utc_now() + SKEW for at in times)
    origins = [event.origin for event in events]
    ahead = SequenceRejected(
        origin=origins[0],
        form=SequenceForm.OUT_OF_ORDER,
        producer_id=producer.producer_id,
        topic=where.topic,
        partition=0,
        topic_id=raw.topic_id(where.topic),
        offset=3,
        incoming_sequence=27,
        current_sequence=2,
    )
    assert events == [ahead, *rejections_after(ahead, origins, transactional.producer_id)]


def make_rejections(producer: SequencedProducer, where: TopicPartition) -> None:
    """Have batches of an idempotent producer rejected, in every form there is."""
    producer.send(where, 0, 3)
    producer.expect_rejection(where, 27, 3)  # ahead
    producer.send(where, 3, 3)
    producer.expect_rejection(where, 4, 3)  # persisted, with other borders
    producer.producer_epoch += 1
    producer.expect_rejection(where, 5, 1)  # a new epoch that does not begin at 0
    producer.send(where, 0, 1)
    producer.producer_epoch -= 1
    producer.expect_rejection(where, 6, 1, error=OLD_EPOCH)


def rejections_after(
    ahead: SequenceRejected, origins: Sequence[Origin], transactional_id: int
) -> list[LogEvent]:
    """Return the events that the lines behind the first have to be read as."""
    return [
        replace(ahead, origin=origins[1], offset=6, incoming_sequence=4, current_sequence=5),
        replace(
            ahead,
            origin=origins[2],
            form=SequenceForm.NEW_EPOCH,
            offset=6,
            incoming_sequence=5,
            current_sequence=None,
            producer_epoch=1,
            current_epoch=0,
        ),
        EpochRejected(
            origin=origins[3],
            producer_id=ahead.producer_id,
            topic=ahead.topic,
            partition=0,
            offset=7,
            producer_epoch=0,
            current_epoch=1,
        ),
        replace(
            ahead,
            origin=origins[4],
            form=SequenceForm.EXPECTED_ZERO,
            producer_id=transactional_id,
            offset=7,
            incoming_sequence=7,
            current_sequence=None,
        ),
    ]


def test_a_new_replica_tells_where_it_begins_to_follow(
    cluster: Sandbox, raw: RawCluster, where: TopicPartition
) -> None:
    placed = raw.placed(where)
    (follower,) = set(placed.replicas) - {placed.leader}
    assert wait_until(
        lambda: (
            {FollowerStarted, LogTruncated} <= {type(one) for one in _events_on(cluster, where)}
        ),
        timeout_seconds=180,
        poll_seconds=0.2,
    )
    events = _events_on(cluster, where)
    started = next(event for event in events if isinstance(event, FollowerStarted))
    assert started == FollowerStarted(
        origin=replace(started.origin, broker_id=follower),
        topic=where.topic,
        partition=0,
        leader_epoch=placed.leader_epoch,
        log_end_offset=0,
        high_watermark=0,
        leader=placed.leader,
    )
    cut = next(event for event in events if isinstance(event, LogTruncated))
    assert cut == LogTruncated(
        origin=replace(cut.origin, broker_id=follower),
        topic=where.topic,
        partition=0,
        offset=0,
        epoch=None,
        epoch_end=None,
    )


def test_no_line_that_these_brokers_wrote_is_unreadable(cluster: Sandbox) -> None:
    parsers = {path: _read(path)[0] for path in _logs(cluster)}
    assert {path: made.unreadable for path, made in parsers.items() if made.unparsed} == {}
    last = max(made.last_line_at for made in parsers.values() if made.last_line_at is not None)
    assert last < utc_now() + SKEW
    assert last > datetime(2020, 1, 1, tzinfo=UTC)


def _transactional(raw: RawCluster, name: str) -> SequencedProducer:
    """Return a producer of transactions v2 that has written nothing yet."""
    owner = RawProducer(cluster=raw, transactional_id=name, protocol=Protocol.V2)
    owner.begin()
    return SequencedProducer(
        cluster=raw,
        producer_id=owner.producer_id,
        producer_epoch=owner.producer_epoch,
        transactional_id=name,
        api=PRODUCE_V2,
    )


def _is_rejection(event: LogEvent) -> bool:
    return isinstance(event, SequenceRejected | EpochRejected)


def _events_on(cluster: Sandbox, where: TopicPartition) -> list[LogEvent]:
    events = (event for path in _logs(cluster) for event in _read(path)[1])
    return [event for event in events if partition_of(event) == where]


def _logs(cluster: Sandbox) -> list[Path]:
    folders = [cluster.log_directory(node.id) for node in cluster.state.nodes]
    return [path for folder in folders for path in sorted(folder.glob("*.log"))]


def _read(path: Path) -> tuple[LineParser, list[LogEvent]]:
    """Read a log of the sandbox, which writes times in this machine's zone."""
    zone = utc_now().astimezone().tzinfo or UTC
    made = LineParser(path.name, None, zone)
    return made, made.feed(path.read_bytes().split(b"\n"))
