"""DescribeTransactions and DescribeProducers answers, read by hand.

The general codec cannot read the first: a transactional id that has begun nothing has the start
time -1, which it takes for an error, and one such id would cost all others of the answer. Of the
second only open transactions matter, while a partition may remember ten thousands of producers
(each for a day), in records of fixed size.
Source: DescribeTransactionsResponse.json v0, DescribeProducersResponse.json v0.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from collectors.wire import codec
from collectors.wire.api import DESCRIBE_PRODUCERS
from collectors.wire.codec import UnreadableError
from collectors.wire.cursor import Cursor

_THROTTLE_BYTES: Final = 4
_STATE: Final = struct.Struct(">iqqh")  # timeout, start, producer id, producer epoch
_PRODUCER: Final = np.dtype(
    [
        ("producer_id", ">i8"),
        ("producer_epoch", ">i4"),
        ("last_sequence", ">i4"),
        ("last_timestamp", ">i8"),
        ("coordinator_epoch", ">i4"),
        ("start_offset", ">i8"),
        ("tags", "u1"),
    ]
)


class _TaggedError(UnreadableError):
    """Producers have tagged fields, so that they are not of fixed size."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribedTransaction:
    """One transactional id as it is in the answer, sentinels included."""

    error: int
    transactional_id: str
    state: str
    timeout_ms: int
    start_ms: int  # -1: nothing has begun
    producer_id: int
    producer_epoch: int
    partitions: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ActiveProducer:
    """One producer with an open transaction, sentinels included."""

    producer_id: int
    producer_epoch: int
    last_timestamp: int  # -1: unknown
    coordinator_epoch: int  # -1: no marker yet
    start_offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribedPartition:
    """One partition of the answer; `open` is empty where `error` is not 0."""

    topic: str
    partition: int
    error: int
    open: tuple[ActiveProducer, ...]
    producers: NDArray[np.void]  # every one that the partition remembers, fields of `_PRODUCER`

    def epochs(self) -> dict[int, int]:
        """Return the epoch of every producer by its id."""
        ids, epochs = self.producers["producer_id"], self.producers["producer_epoch"]
        return dict(zip(ids.tolist(), epochs.tolist(), strict=True))

    def newest(self, count: int) -> tuple[int, ...]:
        """Return the ids of the producers that wrote last, the latest first."""
        order = np.argsort(-self.producers["last_timestamp"].astype(np.int64), kind="stable")
        ids: list[int] = self.producers["producer_id"][order[:count]].tolist()
        return tuple(ids)

    def producers_with(self, ids: frozenset[int]) -> NDArray[np.void]:
        """Return the producers with these ids that the partition remembers."""
        requested: NDArray[np.void] = self.producers[
            np.isin(self.producers["producer_id"], sorted(ids))
        ]
        return requested


def read_transactions(body: bytes | bytearray) -> tuple[DescribedTransaction, ...]:
    """Read a DescribeTransactions answer of version 0.

    Raises:
        UnreadableError: the bytes do not follow the message definition.
    """
    cursor = Cursor(body, _THROTTLE_BYTES, UnreadableError)
    transactions = cursor.array(lambda: _transaction(cursor))
    cursor.skip_tags()
    return transactions


def read_producers(body: bytes | bytearray) -> tuple[DescribedPartition, ...]:
    """Read a DescribeProducers answer of version 0: the open transactions of each partition.

    Raises:
        UnreadableError: the bytes do not follow the message definition.
    """
    try:
        return _described_partitions(body)
    except _TaggedError:  # of a newer broker, perhaps
        return _described_partitions(codec.without_newer(DESCRIBE_PRODUCERS, 0, body))


def _described_partitions(body: bytes | bytearray) -> tuple[DescribedPartition, ...]:
    cursor = Cursor(body, _THROTTLE_BYTES, UnreadableError)
    topics = cursor.array(lambda: _topic(cursor))
    cursor.skip_tags()
    return tuple(partition for topic in topics for partition in topic)


def _transaction(cursor: Cursor) -> DescribedTransaction:
    error, name, state = cursor.int16(), cursor.text(), cursor.text()
    timeout, start, producer_id, epoch = _STATE.unpack(cursor.take(_STATE.size))
    topics = cursor.array(lambda: _marked_partitions(cursor))
    cursor.skip_tags()
    return DescribedTransaction(
        error=error,
        transactional_id=name,
        state=state,
        timeout_ms=timeout,
        start_ms=start,
        producer_id=producer_id,
        producer_epoch=epoch,
        partitions=tuple(place for places in topics for place in places),
    )


def _marked_partitions(cursor: Cursor) -> tuple[tuple[str, int], ...]:
    topic = cursor.text()
    numbers = cursor.array(cursor.int32)
    cursor.skip_tags()
    return tuple((topic, number) for number in numbers)


def _topic(cursor: Cursor) -> tuple[DescribedPartition, ...]:
    topic = cursor.text()
    partitions = cursor.array(lambda: _partition(cursor, topic))
    cursor.skip_tags()
    return partitions


def _partition(cursor: Cursor, topic: str) -> DescribedPartition:
    number, error = cursor.int32(), cursor.int16()
    cursor.text()  # the broker's message: the code tells as much
    producers = _producers(cursor)
    cursor.skip_tags()
    return DescribedPartition(
        topic=topic,
        partition=number,
        error=error,
        open=_open_producers(producers),
        producers=producers,
    )


def _producers(cursor: Cursor) -> NDArray[np.void]:
    records = np.frombuffer(cursor.take(cursor.length() * _PRODUCER.itemsize), _PRODUCER)
    if records["tags"].any():
        raise _TaggedError("DescribeProducers v0 answer has tagged fields")
    return records


def _open_producers(records: NDArray[np.void]) -> tuple[ActiveProducer, ...]:
    return tuple(
        ActiveProducer(
            producer_id=int(record["producer_id"]),
            producer_epoch=int(record["producer_epoch"]),
            last_timestamp=int(record["last_timestamp"]),
            coordinator_epoch=int(record["coordinator_epoch"]),
            start_offset=int(record["start_offset"]),
        )
        for record in records[records["start_offset"] >= 0]
    )
