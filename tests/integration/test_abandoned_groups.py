"""A fleet of groups that nobody uses any more, and one whose application has just stopped."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest
from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from rules.facts.groups import Group
from rules.verdict import Severity, Verdict
from service.observe.cluster_reader import ClusterReader, Scope
from service.runtime.clock import monotonic, wait_until
from service.sandbox.cluster.admin import SandboxAdmin
from service.sandbox.cluster.cluster import Sandbox
from tests.integration.clients import FLUSH_SECONDS
from tests.integration.quick_time import QuickTime

pytestmark = pytest.mark.integration

NewName = Callable[[str], str]

PARTITIONS, RECORDS, SECONDS = 12, 30, 60
ROUNDS_TO_STAND = 5


@pytest.fixture
def topic(cluster: Sandbox, admin: SandboxAdmin, new_name: NewName) -> str:
    """Make a topic with some records on each of its partitions."""
    name = new_name("fleet")
    admin.create_topic(name, partitions=PARTITIONS)
    append(cluster, name)
    return name


def append(cluster: Sandbox, topic: str) -> None:
    producer = Producer({"bootstrap.servers": cluster.bootstrap_servers})
    for number in range(PARTITIONS * RECORDS):
        producer.produce(topic, b"value", partition=number % PARTITIONS)
    assert producer.flush(FLUSH_SECONDS) == 0


def set_offsets(client: AdminClient, topic: str, group: str, offsets: list[int]) -> None:
    """Commit for a group that has no members, in one request."""
    places = [TopicPartition(topic, number, offset) for number, offset in enumerate(offsets)]

    def is_taken() -> bool:
        wanted = ConsumerGroupTopicPartitions(group, places)
        [answer] = client.alter_consumer_group_offsets([wanted]).values()
        if answer.exception() is not None:
            return False
        return all(one.error is None for one in answer.result().topic_partitions)

    assert wait_until(is_taken, timeout_seconds=SECONDS, poll_seconds=0.2)


def member_of(cluster: Sandbox, group: str, topic: str) -> Consumer:
    """Return a member that has read all there is, and has committed it."""
    consumer = Consumer(
        {
            "bootstrap.servers": cluster.bootstrap_servers,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }
    )
    consumer.subscribe([topic])
    left, began = PARTITIONS * RECORDS, monotonic()
    while left and monotonic() - began < SECONDS:
        left -= len(consumer.consume(left, timeout=1.0))
    assert left == 0
    consumer.commit(asynchronous=False)
    return consumer


def described(time: QuickTime, group: str) -> Group | None:
    assert time.seen is not None
    return next((one for one in time.seen.groups if one.group_id == group), None)


@pytest.mark.parametrize("groups", [20, 40])
def test_each_abandoned_group_is_one_info_and_a_stopped_consumer_one_warning(
    cluster: Sandbox, reader: ClusterReader, topic: str, new_name: NewName, groups: int
) -> None:
    chance, client = random.Random(), AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    names = [new_name("old") for _ in range(groups)]
    for name in names:
        behind = [RECORDS - chance.randint(1, 9) for _ in range(PARTITIONS)]
        set_offsets(client, topic, name, behind)
    stopped = new_name("stopped")
    member = member_of(cluster, stopped, topic)
    time = QuickTime(reader, Scope())
    time.round()
    running = described(time, stopped)
    assert running is not None
    assert running.member_count == 1
    member.close()
    append(cluster, topic)
    for _ in range(ROUNDS_TO_STAND):
        time.round()
    left = described(time, stopped)
    assert left is not None
    assert left.member_count == 0
    own = {*names, stopped}
    found = {
        finding.labels["group"]: finding
        for finding in time.said("consumer_group_stalled", Verdict.BREACH)
        if finding.labels["group"] in own
    }
    assert found.keys() == own
    assert {(found[name].reason, found[name].severity) for name in names} == {
        ("abandoned", Severity.INFO)
    }
    finding = found[stopped]
    assert (finding.reason, finding.severity) == ("no_members", Severity.WARNING)
    assert finding.labels == {"cluster": "default", "group": stopped}
    assert finding.evidence["partition_count"] == PARTITIONS
    assert finding.evidence["total_lag"] == PARTITIONS * RECORDS
    waited = finding.evidence["oldest_unread_ms"]
    assert isinstance(waited, int)
    assert waited >= (ROUNDS_TO_STAND - 1) * 20_000


def test_one_reset_of_a_whole_group_is_one_finding(
    cluster: Sandbox, reader: ClusterReader, topic: str, new_name: NewName
) -> None:
    chance, client = random.Random(), AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    name, time = new_name("reset"), QuickTime(reader, Scope())
    before = [chance.randint(RECORDS // 2, RECORDS) for _ in range(PARTITIONS)]
    after = [chance.randint(0, RECORDS // 2 - 1) for _ in range(PARTITIONS)]
    set_offsets(client, topic, name, before)
    time.round()
    set_offsets(client, topic, name, after)
    [finding] = (
        one
        for one in time.said("consumer_group_rewound", Verdict.BREACH)
        if one.labels["group"] == name
    )
    assert finding.evidence["rewound_by"] == sum(before) - sum(after)
    assert finding.evidence["partition_count"] == PARTITIONS


@pytest.mark.parametrize("left_out", [0, 1, PARTITIONS - 1])
def test_a_group_that_is_deleted_and_made_anew_within_a_round_is_no_rewind(  # noqa: PLR0917
    cluster: Sandbox,
    admin: SandboxAdmin,
    reader: ClusterReader,
    topic: str,
    new_name: NewName,
    left_out: int,
) -> None:
    chance, client = random.Random(), AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    name, time = new_name("anew"), QuickTime(reader, Scope())

    def verdict() -> tuple[Verdict, str]:
        found = {one.labels["group"]: one for one in time.said("consumer_group_rewound", *Verdict)}
        return found[name].verdict, found[name].reason

    set_offsets(client, topic, name, [chance.randint(10, RECORDS) for _ in range(PARTITIONS)])
    for _ in range(chance.randint(1, 3)):
        time.round()
    admin.delete_group(name)
    count = PARTITIONS - left_out
    set_offsets(client, topic, name, [chance.randint(5, 9) for _ in range(count)])
    assert verdict() == (Verdict.OK, "made_anew")
    assert verdict()[0] is Verdict.OK
    set_offsets(client, topic, name, [chance.randint(0, 4) for _ in range(count)])
    assert verdict() == (Verdict.BREACH, "went_back"), "a reset after it is one"
