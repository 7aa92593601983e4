"""A transactional producer without a client: each request is sent when the caller says so.

What it leaves open stays open although no process lives, and it can do what clients refuse: write
to a partition that its transaction does not hold, or go on after it was fenced. It speaks as clients
before transactions v2 do (KIP-890), librdkafka among them, or as Java clients since 4.0.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum
from typing import Any, Final

from collectors.wire import codec
from collectors.wire.api import Api
from rules.facts.identity import TopicPartition
from service.runtime.clock import utc_now
from service.sandbox.workloads.producer import value_of
from service.sandbox.workloads.raw_cluster import OF_GROUP, RawCluster, patiently, require
from service.sandbox.workloads.record_batch import Batch

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


class Protocol(StrEnum):
    """What a transactional producer speaks (KIP-890)."""

    V1 = "v1"  # each partition is added by a request; one epoch lasts for many transactions
    V2 = "v2"  # writing adds the partition; each transaction ends with a new epoch


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

        def build(version: int) -> Any:
            topic = codec.message(ADD_PARTITIONS, version, "AddPartitionsToTxnTopic")(
                name=where.topic, partitions=(where.partition,)
            )
            return codec.message(ADD_PARTITIONS, version, "AddPartitionsToTxnRequest")(
                v3_and_below_transactional_id=self.transactional_id,
                v3_and_below_producer_id=self.producer_id,
                v3_and_below_producer_epoch=self.producer_epoch,
                v3_and_below_topics=(topic,),
            )

        def act() -> None:
            answer = self._ask_coordinator(ADD_PARTITIONS, build)
            result = answer.results_by_topic_v3_and_below[0].results_by_partition[0]
            require(f"add {where} to {self.transactional_id}", result.partition_error_code)

        patiently(act)

    def produce(self, where: TopicPartition, count: int) -> int:
        """Append records of the present time, confirmed by all replicas in sync.

        Returns the offset of the first.
        """
        sequence = self._sequences.get(where, 0)
        batch = Batch(
            values=[value_of(sequence + number, VALUE_BYTES) for number in range(count)],
            producer_id=self.producer_id,
            producer_epoch=self.producer_epoch,
            base_sequence=sequence,
            timestamp_ms=_now_ms(),
            is_transactional=True,
        ).encode()
        api = PRODUCE_V2 if self.protocol is Protocol.V2 else PRODUCE
        offset = _append(self.cluster, where, batch, self.transactional_id, api=api)
        self._sequences[where] = sequence + count
        return offset

    def commit_offsets(self, group: str, where: TopicPartition, offset: int) -> None:
        """Append a group's position to `__consumer_offsets`, as part of the transaction."""

        def build(version: int) -> Any:
            partition = codec.message(COMMIT_OFFSETS, version, "TxnOffsetCommitRequestPartition")(
                partition_index=where.partition, committed_offset=offset, committed_metadata=None
            )
            topic = codec.message(COMMIT_OFFSETS, version, "TxnOffsetCommitRequestTopic")(
                name=where.topic, partitions=(partition,)
            )
            return codec.message(COMMIT_OFFSETS, version, "TxnOffsetCommitRequest")(
                transactional_id=self.transactional_id,
                group_id=group,
                producer_id=self.producer_id,
                producer_epoch=self.producer_epoch,
                topics=(topic,),
            )

        def act() -> None:
            coordinator = self.cluster.coordinator(group, OF_GROUP)
            answer = self.cluster.ask(coordinator, COMMIT_OFFSETS, build)
            require(f"offsets of {group}", answer.topics[0].partitions[0].error_code)

        patiently(act)

    def end(self, *, commit: bool) -> None:
        """Let the coordinator decide the transaction; its markers are written afterwards.

        With transactions v2 the answer holds what the next one is written with.
        """
        api = END_TRANSACTION_V2 if self.protocol is Protocol.V2 else END_TRANSACTION

        def build(version: int) -> Any:
            return codec.message(api, version, "EndTxnRequest")(
                transactional_id=self.transactional_id,
                producer_id=self.producer_id,
                producer_epoch=self.producer_epoch,
                committed=commit,
            )

        def act() -> Any:
            answer = self._ask_coordinator(api, build)
            require(f"end of {self.transactional_id}", answer.error_code)
            return answer

        answer = patiently(act)
        if self.protocol is Protocol.V2:
            self.go_on(int(answer.producer_id), int(answer.producer_epoch))

    def _initialise(self, broker_id: int, transactional_id: str | None) -> None:
        def build(version: int) -> Any:
            return codec.message(INIT_PRODUCER_ID, version, "InitProducerIdRequest")(
                transactional_id=transactional_id, transaction_timeout=self.timeout
            )

        def act() -> Any:
            answer = self.cluster.ask(broker_id, INIT_PRODUCER_ID, build)
            require(f"producer id of {self.transactional_id}", answer.error_code)
            return answer

        answer = patiently(act)
        self.go_on(int(answer.producer_id), int(answer.producer_epoch))

    def _ask_coordinator(self, api: Api, build: Callable[[int], Any]) -> Any:
        return self.cluster.ask(self.cluster.coordinator(self.transactional_id), api, build)


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
    batch = Batch(
        values=[value_of(first + number, VALUE_BYTES) for number in range(count)],
        timestamp_ms=_now_ms(),
        is_transactional=False,
    )
    return _append(cluster, where, batch.encode(), None, acks=acks)


def _now_ms() -> int:
    return int(utc_now().timestamp() * 1000)


def _append(  # noqa: PLR0913 - a request's own fields
    cluster: RawCluster,
    where: TopicPartition,
    batch: bytes,
    transactional_id: str | None,
    *,
    acks: int = ALL_IN_SYNC,
    api: Api = PRODUCE,
) -> int:
    def build(version: int) -> Any:
        partition = codec.message(api, version, "PartitionProduceData")(
            index=where.partition, records=batch
        )
        topic = codec.message(api, version, "TopicProduceData")(
            name=where.topic, partition_data=(partition,)
        )
        return codec.message(api, version, "ProduceRequest")(
            transactional_id=transactional_id,
            acks=acks,
            timeout=REQUEST_TIMEOUT,
            topic_data=(topic,),
        )

    def act() -> int:
        answer = cluster.ask(cluster.placed(where).leader, api, build)
        result = answer.responses[0].partition_responses[0]
        require(f"records on {where}", result.error_code)
        return int(result.base_offset)

    return patiently(act)
