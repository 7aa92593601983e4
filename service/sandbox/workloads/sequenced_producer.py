"""A producer without a client whose sequences and epochs are the caller's choice.

Clients send their batches in the order of the sequences, and hide what a broker rejects. Here each
batch goes out when the caller says so, with the first sequence that it names, and once.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final

from collectors.wire import codec
from collectors.wire.api import Api
from rules.errors import SandboxError
from rules.facts.identity import TopicPartition
from rules.facts.rejections import SEQUENCES
from service.runtime.clock import utc_now
from service.sandbox.workloads.producer import value_of
from service.sandbox.workloads.raw_cluster import RawCluster, RejectedError, patiently, require
from service.sandbox.workloads.raw_producer import (
    ALL_IN_SYNC,
    PRODUCE,
    REQUEST_TIMEOUT,
    VALUE_BYTES,
    RawProducer,
)
from service.sandbox.workloads.record_batch import Batch

OUT_OF_ORDER: Final = "OUT_OF_ORDER_SEQUENCE_NUMBER"
OLD_EPOCH: Final = "INVALID_PRODUCER_EPOCH"


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
        batch = self._batch(sequence, count)

        def build(version: int) -> Any:
            return self._request(version, where, batch)

        def act() -> int:
            answer = self.cluster.ask(self.cluster.placed(where).leader, self.api, build)
            result = answer.responses[0].partition_responses[0]
            require(f"records on {where}", result.error_code)
            return int(result.base_offset)

        return patiently(act)

    def expect_rejection(
        self, where: TopicPartition, sequence: int, count: int, *, error: str = OUT_OF_ORDER
    ) -> None:
        """Send a batch that the leader has to reject with `error`.

        Raises:
            SandboxError: it took the batch, or rejected it for another reason.
        """
        try:
            offset = self.send(where, sequence, count)
        except RejectedError as rejected:
            if rejected.error == error:
                return
            raise
        raise SandboxError(f"{where} took sequence {sequence} at {offset}: expected {error}")

    def _batch(self, sequence: int, count: int) -> bytes:
        numbers = (after(sequence, number) for number in range(count))
        return Batch(
            values=[value_of(number, VALUE_BYTES) for number in numbers],
            producer_id=self.producer_id,
            producer_epoch=self.producer_epoch,
            base_sequence=sequence,
            timestamp_ms=int((utc_now() - self.records_age).timestamp() * 1000),
            is_transactional=self.transactional_id is not None,
        ).encode()

    def _request(self, version: int, where: TopicPartition, batch: bytes) -> Any:
        partition = codec.message(self.api, version, "PartitionProduceData")(
            index=where.partition, records=batch
        )
        topic = codec.message(self.api, version, "TopicProduceData")(
            name=where.topic, partition_data=(partition,)
        )
        return codec.message(self.api, version, "ProduceRequest")(
            transactional_id=self.transactional_id,
            acks=ALL_IN_SYNC,
            timeout=REQUEST_TIMEOUT,
            topic_data=(topic,),
        )


def new_producer(cluster: RawCluster, name: str) -> SequencedProducer:
    """Return an idempotent producer with an id that no other one has."""
    owner = RawProducer(cluster=cluster, transactional_id=name)
    owner.begin_unknown()
    return SequencedProducer(
        cluster=cluster, producer_id=owner.producer_id, producer_epoch=owner.producer_epoch
    )
