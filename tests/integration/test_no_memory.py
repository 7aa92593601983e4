"""A watcher that begins after leader changes in which nothing was lost suspects nothing.

It has no memory, and so it compares what real consumers committed, with their leader epochs, to
where those epochs ended: in every ordinary way in which a commit and an end come close.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum
from typing import Final

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from rules.facts.snapshot import Snapshot
from rules.verdict import Verdict
from service.runtime.clock import wait_until
from service.sandbox.cluster.admin import SandboxAdmin
from service.sandbox.cluster.cluster import Sandbox
from service.sandbox.faults.rule_names import EVERY_LOSS_RULE
from service.sandbox.workloads.raw_cluster import RawCluster
from tests.integration.clients import FLUSH_SECONDS, transactional_producer
from tests.integration.conftest import MakeReader
from tests.integration.watching import Watch, told

pytestmark = pytest.mark.integration

FIRST, SECOND = 1, 2
CHANGE_SECONDS: Final = 180.0
READ_SECONDS: Final = 180.0
ANSWER_SECONDS: Final = 5.0
RECORDS: Final = 10


class Case(IntEnum):
    """The partitions, by what happens to each."""

    AT_THE_END = 0
    GROWN = 1  # written to in the later epoch too
    AFTER_A_MARKER = 2
    MARKER_LATER = 3  # the marker of its transaction is of the later epoch
    ABORTED = 4
    DELETED = 5  # with DeleteRecords
    EMPTY_EPOCHS = 6  # nothing was written since the first one


TRANSACTIONAL: Final = (Case.AFTER_A_MARKER, Case.MARKER_LATER, Case.ABORTED)


def insist(act: Callable[[], object]) -> None:
    """Do something that a coordinator rejects while it is being elected."""

    def is_done() -> bool:
        try:
            act()
        except KafkaException:
            return False
        return True

    assert wait_until(is_done, timeout_seconds=READ_SECONDS, poll_seconds=0.2)


class Story:
    """One topic, its producers, and a group that reads it to the end now and then."""

    def __init__(self, cluster: Sandbox, topic: str) -> None:
        self.cluster, self.topic = cluster, topic
        self.plain = Producer({"bootstrap.servers": cluster.bootstrap_servers, "acks": "all"})
        self.transactional = {
            partition: transactional_producer(cluster.bootstrap_servers, f"{topic}-{partition}")
            for partition in TRANSACTIONAL
        }

    def write(self, *partitions: int) -> None:
        for partition in partitions:
            for _ in range(RECORDS):
                self.plain.produce(self.topic, b"value", partition=partition)
        assert self.plain.flush(FLUSH_SECONDS) == 0

    def begin(self, partition: Case) -> None:
        producer = self.transactional[partition]
        producer.begin_transaction()
        for _ in range(RECORDS):
            producer.produce(self.topic, b"value", partition=partition)
        assert producer.flush(FLUSH_SECONDS) == 0

    def end(self, partition: Case, *, commit: bool) -> None:
        producer = self.transactional[partition]
        (producer.commit_transaction if commit else producer.abort_transaction)(FLUSH_SECONDS)

    def read(self) -> None:
        """Read every partition to its end as an application does, and commit what was read."""
        consumer = Consumer(
            {
                "bootstrap.servers": self.cluster.bootstrap_servers,
                "group.id": f"{self.topic}-readers",
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                "enable.partition.eof": True,
                "isolation.level": "read_committed",
            }
        )
        try:
            self._read(consumer)
        finally:
            consumer.close()

    def _read(self, consumer: Consumer) -> None:
        names = [TopicPartition(self.topic, number) for number in Case]
        insist(lambda: consumer.assign(consumer.committed(names, timeout=ANSWER_SECONDS)))
        waiting: set[int | None] = set(Case)

        def are_all_read() -> bool:
            message = consumer.poll(1.0)
            if message is not None and message.error() is not None:
                waiting.discard(message.partition())
            return not waiting

        assert wait_until(are_all_read, timeout_seconds=READ_SECONDS, poll_seconds=0.0), waiting
        insist(lambda: consumer.commit(asynchronous=False))

    def change_leader(self, old: int, new: int) -> None:
        """Let a leader die whose follower has everything, and wait until both are in sync again."""
        with RawCluster(self.cluster) as raw:
            self.cluster.kill(old)
            assert wait_until(
                lambda: all(one.leader == new for one in raw.topic(self.topic)),
                timeout_seconds=CHANGE_SECONDS,
                poll_seconds=0.2,
            )
            self.cluster.start(old)
            assert wait_until(
                lambda: all(len(one.isr) == 2 for one in raw.topic(self.topic)),
                timeout_seconds=CHANGE_SECONDS,
                poll_seconds=0.2,
            )

    def delete_records(self, partition: int) -> None:
        """Delete all that was committed of a partition."""
        admin = AdminClient({"bootstrap.servers": self.cluster.bootstrap_servers})
        [answer] = admin.delete_records(
            [TopicPartition(self.topic, partition, RECORDS)], request_timeout=READ_SECONDS
        ).values()
        answer.result(READ_SECONDS)


def test_healthy_leader_changes_raise_nothing_without_a_memory(
    faults: Sandbox, make_reader: MakeReader, new_name: Callable[[str], str]
) -> None:
    topic = new_name("healthy")
    SandboxAdmin(faults.bootstrap_servers).create_topic(
        topic,
        assignment=[[FIRST, SECOND]] * len(Case),
        configs={"min.insync.replicas": "1", "unclean.leader.election.enable": "true"},
    )
    story = Story(faults, topic)
    story.write(Case.AT_THE_END, Case.GROWN, Case.DELETED, Case.EMPTY_EPOCHS)
    story.begin(Case.AFTER_A_MARKER)
    story.end(Case.AFTER_A_MARKER, commit=True)
    story.begin(Case.ABORTED)
    story.end(Case.ABORTED, commit=False)
    story.begin(Case.MARKER_LATER)
    story.read()
    story.change_leader(FIRST, SECOND)
    story.write(Case.GROWN)
    story.end(Case.MARKER_LATER, commit=True)
    story.read()
    story.delete_records(Case.DELETED)
    story.change_leader(SECOND, FIRST)

    watch = Watch(make_reader())
    made = [watch.round() for _ in range(3)]
    snapshot = made[0].snapshot
    assert snapshot is not None
    assert asked_of(snapshot, topic) == set(Case), "nothing was compared: silence proves nothing"
    spoken = {
        (finding.rule.rule_id, finding.labels.get("partition"))
        for one in made
        for judgement in one.judged.judgements
        for finding in judgement.findings(Verdict.BREACH)
        if judgement.rule.rule_id in EVERY_LOSS_RULE and finding.labels.get("topic") == topic
    }
    assert spoken == set(), told(watch.rounds)


def asked_of(snapshot: Snapshot, topic: str) -> set[int]:
    """Return the partitions of which it was told where the epoch of a commit had ended."""
    commits, index = snapshot.commits, snapshot.partitions.index
    found = snapshot.epoch_ends.find(commits.row, commits.committed_leader_epoch)
    names = [index.topic_partition(row) for row in commits.row[found >= 0].tolist()]
    return {name.partition for name in names if name.topic == topic}
