"""A producer without a client whose sequences and epochs are the caller's choice.

Clients send their batches in the order of the sequences, and hide what a broker rejects. Here each
batch goes out when the caller says so, with the first sequence that it names, and once.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from collectors.wire.api import Api
from rules.errors import SandboxError
from rules.facts.identity import TopicPartition
from rules.facts.rejections import SEQUENCES
from service.sandbox.workloads.raw_cluster import RawCluster, RejectedError
from service.sandbox.workloads.raw_producer import PRODUCE, RawProducer, append, numbered
from service.sandbox.workloads.record_batch import Batch, now_ms

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
            SandboxError: it took the batch, or rejected it for another reason.
        """
        try:
            offset = self.send(where, sequence, count)
        except RejectedError as rejected:
            if rejected.error == error:
                return
            raise
        raise SandboxError(f"{where} took sequence {sequence} at {offset}: expected {error}")


def new_producer(cluster: RawCluster, name: str) -> SequencedProducer:
    """Return an idempotent producer with an id that no other one has."""
    owner = RawProducer(cluster=cluster, transactional_id=name)
    owner.begin_unknown()
    return SequencedProducer(
        cluster=cluster, producer_id=owner.producer_id, producer_epoch=owner.producer_epoch
    )
