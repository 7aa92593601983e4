"""Producers without a client: each request is sent when the caller says so.

Clients send their batches in the order of the sequences, and hide what a broker rejects. Here a batch
goes out with the first sequence that the caller names, and once. A transactional producer may leave
that to itself. What it leaves open stays open although no process lives, and it can do what clients refuse: write
to a partition that its transaction does not hold, or go on after it was fenced. It speaks as clients
before transactions v2 do (KIP-890), librdkafka among them, or as Java clients since 4.0.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum
from typing import Any, Final

from collectors.wire.api import Api
from rules.errors import SandboxError
from rules.facts.identity import TopicPartition
from rules.facts.rejections import SEQUENCES
from service.sandbox.workloads.producer import value_of
from service.sandbox.workloads.raw_cluster import (
    OF_GROUP,
    RawCluster,
    RejectedError,
    one_partition,
    patiently,
    require,
)
from service.sandbox.workloads.record_batch import Batch, now_ms

PRODUCE: Final = Api(key=0, name="Produce", oldest=9, newest=11, since="2.8")
INIT_PRODUCER_ID: Final = Api(key=22, name="InitProducerId", oldest=4, newest=4, since="2.7")
ADD_PARTITIONS: Final = Api(key=24, name="AddPartitionsToTxn", oldest=3, newest=3, since="2.8")
END_TRANSACTION: Final = Api(key=26, name="EndTxn", oldest=3, newest=3, since="2.8")
# Of transactions v2: writing adds the partition, and EndTxn returns the next producer epoch.
PRODUCE_V2: Final = Api(key=0, name="Produce", oldest=12, newest=12, since="4.0")
END_TRANSACTION_V2: Final = Api(key=26, name="EndTxn", oldest=5, newest=5, since="4.0")
COMMIT_OFFSETS: Final = Api(key=28, name="TxnOffsetCommit", oldest=3, newest=3, since="2.5")
ALL_IN_SYNC: Final = -1  # acks=all
LEADER_ALONE: Final = 1  # acks=1
REQUEST_TIMEOUT: Final = timedelta(seconds=10)  # that a leader waits for its followers
VALUE_BYTES: Final = 100
OUT_OF_ORDER: Final = "OUT_OF_ORDER_SEQUENCE_NUMBER"
OLD_EPOCH: Final = "INVALID_PRODUCER_EPOCH"


class TakenError(SandboxError):
    """A leader took a batch that it was to reject."""


class Protocol(StrEnum):
    """What a transactional producer speaks (KIP-890)."""

    V1 = "v1"  # each partition is added by a request; one epoch lasts for many transactions
    V2 = "v2"  # writing adds the partition; each transaction ends with a new epoch


def after(sequence: int, count: int) -> int:
    """Return the sequence that is `count` records after another one."""
    return (sequence + count) % SEQUENCES


@dataclass(slots=True, kw_only=True)
class SequencedProducer:
    """One producer id; the epoch may be set at any time, as a client does by itself."""

    cluster: RawCluster
    producer_id: int
    producer_epoch: int = 0
    transactional_id: str | None = None  # None: idempotent, and no transactions
    api: Api = PRODUCE
    records_age: timedelta = timedelta(0)  # how old its records say they are

    def send(self, where: TopicPartition, sequence: int, count: int) -> int:
        """Append records in one batch, whose values are their sequences; return its base offset.

        Raises:
            RejectedError: the leader rejected the batch.
        """
        batch = Batch(
            values=numbered(after(sequence, number) for number in range(count)),
            producer_id=self.producer_id,
            producer_epoch=self.producer_epoch,
            base_sequence=sequence,
            timestamp_ms=now_ms(self.records_age),
            is_transactional=self.transactional_id is not None,
        )
        transactional_id = self.transactional_id
        return append(self.cluster, where, batch, transactional_id=transactional_id, api=self.api)

    def expect_rejection(
        self, where: TopicPartition, sequence: int, count: int, *, error: str = OUT_OF_ORDER
    ) -> None:
        """Send a batch that the leader has to reject with `error`.

        Raises:
            TakenError: it took the batch.
            RejectedError: it rejected the batch for another reason.
        """
        try:
            offset = self.send(where, sequence, count)
        except RejectedError as rejected:
            if rejected.error == error:
                return
            raise
        raise TakenError(f"{where} took sequence {sequence} at {offset}: expected {error}")


@dataclass(slots=True, kw_only=True)
class RawProducer:
    """One producer; `begin` gives it its id, and then the calls go in any order."""

    cluster: RawCluster
    transactional_id: str
    protocol: Protocol = Protocol.V1
    timeout: timedelta = timedelta(seconds=60)  # transaction.timeout.ms
    producer_id: int = field(default=-1, init=False)
    producer_epoch: int = field(default=-1, init=False)
    _sequences: dict[TopicPartition, int] = field(default_factory=dict, init=False)

    def begin(self) -> None:
        """Get a producer id from the coordinator; an older owner of the name is fenced."""
        self._initialise(self.cluster.coordinator(self.transactional_id), self.transactional_id)

    def begin_unknown(self) -> None:
        """Get a producer id that no coordinator relates to the transactional id."""
        self._initialise(self.cluster.any_running(), None)

    def go_on(self, producer_id: int, producer_epoch: int) -> None:
        """Take the place of the owner of the transactional id, which is not fenced thereby."""
        self.producer_id, self.producer_epoch = producer_id, producer_epoch
        self._sequences.clear()

    def add(self, where: TopicPartition) -> None:
        """Make a partition part of the transaction; the first one begins it.

        With transactions v2 the first records do that, and nothing is sent here.
        """
        if self.protocol is Protocol.V2:
            return
        topic = {"name": where.topic, "partitions": (where.partition,)}

        def act() -> None:
            answer = self._ask_coordinator(
                ADD_PARTITIONS,
                v3_and_below_transactional_id=self.transactional_id,
                v3_and_below_producer_id=self.producer_id,
                v3_and_below_producer_epoch=self.producer_epoch,
                v3_and_below_topics=[topic],
            )
            result = answer.results_by_topic_v3_and_below[0].results_by_partition[0]
            require(f"add {where} to {self.transactional_id}", result.partition_error_code)

        patiently(act)

    def produce(self, where: TopicPartition, count: int) -> int:
        """Append records of the present time, confirmed by all replicas in sync.

        Returns the offset of the first.
        """
        sequence = self._sequences.get(where, 0)
        offset = self.sequenced().send(where, sequence, count)
        self._sequences[where] = sequence + count
        return offset

    def sequenced(self) -> SequencedProducer:
        """Return what writes, as part of the transaction, with sequences of the caller's choice."""
        return SequencedProducer(
            cluster=self.cluster,
            producer_id=self.producer_id,
            producer_epoch=self.producer_epoch,
            transactional_id=self.transactional_id,
            api=PRODUCE_V2 if self.protocol is Protocol.V2 else PRODUCE,
        )

    def commit_offsets(self, group: str, where: TopicPartition, offset: int) -> None:
        """Append a group's position to `__consumer_offsets`, as part of the transaction."""
        topics = one_partition(where, committed_offset=offset, committed_metadata=None)

        def act() -> None:
            answer = self.cluster.ask(
                self.cluster.coordinator(group, OF_GROUP),
                COMMIT_OFFSETS,
                transactional_id=self.transactional_id,
                group_id=group,
                producer_id=self.producer_id,
                producer_epoch=self.producer_epoch,
                topics=topics,
            )
            require(f"offsets of {group}", answer.topics[0].partitions[0].error_code)

        patiently(act)

    def end(self, *, commit: bool) -> None:
        """Let the coordinator decide the transaction; its markers are written afterwards.

        With transactions v2 the answer holds what the next one is written with.
        """
        api = END_TRANSACTION_V2 if self.protocol is Protocol.V2 else END_TRANSACTION

        def act() -> Any:
            answer = self._ask_coordinator(
                api,
                transactional_id=self.transactional_id,
                producer_id=self.producer_id,
                producer_epoch=self.producer_epoch,
                committed=commit,
            )
            require(f"end of {self.transactional_id}", answer.error_code)
            return answer

        answer = patiently(act)
        if self.protocol is Protocol.V2:
            self.go_on(int(answer.producer_id), int(answer.producer_epoch))

    def _initialise(self, broker_id: int, transactional_id: str | None) -> None:
        def act() -> Any:
            answer = self.cluster.ask(
                broker_id,
                INIT_PRODUCER_ID,
                transactional_id=transactional_id,
                transaction_timeout=self.timeout,
            )
            require(f"producer id of {self.transactional_id}", answer.error_code)
            return answer

        answer = patiently(act)
        self.go_on(int(answer.producer_id), int(answer.producer_epoch))

    def _ask_coordinator(self, api: Api, **fields: Any) -> Any:
        return self.cluster.ask(self.cluster.coordinator(self.transactional_id), api, **fields)


def append_plain(
    cluster: RawCluster,
    where: TopicPartition,
    count: int,
    *,
    first: int = 0,
    acks: int = ALL_IN_SYNC,
) -> int:
    """Append records outside any transaction; return the offset of the first.

    Their values are numbers from `first` on.
    """
    batch = Batch(values=numbered(range(first, first + count)), is_transactional=False)
    return append(cluster, where, batch, acks=acks)


def append(  # noqa: PLR0913 - a request's own fields
    cluster: RawCluster,
    where: TopicPartition,
    batch: Batch,
    *,
    transactional_id: str | None = None,
    acks: int = ALL_IN_SYNC,
    api: Api = PRODUCE,
) -> int:
    """Append a batch; return its base offset.

    Raises:
        RejectedError: the leader rejected the batch.
    """
    partition = {"index": where.partition, "records": batch.encode()}
    topic = {"name": where.topic, "partition_data": [partition]}

    def act() -> int:
        answer = cluster.ask(
            cluster.placed(where).leader,
            api,
            transactional_id=transactional_id,
            acks=acks,
            timeout=REQUEST_TIMEOUT,
            topic_data=[topic],
        )
        result = answer.responses[0].partition_responses[0]
        require(f"records on {where}", result.error_code)
        return int(result.base_offset)

    return patiently(act)


def numbered(numbers: Iterable[int]) -> list[bytes]:
    """Return the values of records that are known by their numbers."""
    return [value_of(number, VALUE_BYTES) for number in numbers]


def new_producer(cluster: RawCluster, name: str) -> SequencedProducer:
    """Return an idempotent producer with an id that no other one has."""
    owner = RawProducer(cluster=cluster, transactional_id=name)
    owner.begin_unknown()
    return SequencedProducer(
        cluster=cluster, producer_id=owner.producer_id, producer_epoch=owner.producer_epoch
    )
