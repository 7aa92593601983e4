"""Answers about transactions and producers, encoded with the codec library's own classes."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Final

from kio.schema.errors import ErrorCode

from collectors.wire.api import (
    DESCRIBE_ACLS,
    DESCRIBE_PRODUCERS,
    DESCRIBE_TRANSACTIONS,
    LIST_TRANSACTIONS,
)
from tests.unit.collectors.wire.messages import NO_THROTTLE, answer, part

BEGAN: Final = datetime(2025, 6, 2, 11, 59, 55, tzinfo=UTC)
LITERAL: Final = 3
PREFIXED: Final = 4
_NEVER: Final = datetime(2000, 1, 1, 0, 0, 0, 123000, tzinfo=UTC)  # means the sentinel -1
_NEVER_MS: Final = struct.pack(">q", int(_NEVER.timestamp() * 1000))

# (producer id, epoch, last timestamp, coordinator epoch, start offset)
ProducerEntry = tuple[int, int, int, int, int]


def listing(*entries: tuple[str, int, str], error: int = 0) -> bytes:
    """Return a ListTransactions answer from (transactional id, producer id, state)."""
    state = part(LIST_TRANSACTIONS, 2, "TransactionState")
    told = tuple(
        state(transactional_id=name, producer_id=producer_id, transaction_state=word)
        for name, producer_id, word in entries
    )
    return answer(
        LIST_TRANSACTIONS,
        2,
        throttle_time=NO_THROTTLE,
        error_code=ErrorCode(error),
        transaction_states=told,
    )


def described(
    *entries: tuple[str, int, str],
    errors: Mapping[str, int] | None = None,
    topics: Mapping[str, Sequence[int]] | None = None,
    began: datetime | None = BEGAN,
) -> bytes:
    """Return a DescribeTransactions answer; `errors` by id, None as `began` is the sentinel -1."""
    state = part(DESCRIBE_TRANSACTIONS, 0, "TransactionState")
    topic = part(DESCRIBE_TRANSACTIONS, 0, "TopicData")
    placed = {"orders": (0,)} if topics is None else topics
    told = tuple(
        state(
            error_code=ErrorCode((errors or {}).get(name, 0)),
            transactional_id=name,
            transaction_state=word,
            transaction_timeout=timedelta(seconds=60),
            transaction_start_time=began or _NEVER,
            producer_id=producer_id,
            producer_epoch=3,
            topics=tuple(topic(topic=t, partitions=tuple(p)) for t, p in placed.items()),
        )
        for name, producer_id, word in entries
    )
    body = answer(DESCRIBE_TRANSACTIONS, 0, throttle_time=NO_THROTTLE, transaction_states=told)
    return body.replace(_NEVER_MS, struct.pack(">q", -1))


def produced(
    partitions: Mapping[tuple[str, int], Iterable[ProducerEntry] | int],
    *,
    last_sequences: Mapping[int, int] | None = None,
) -> bytes:
    """Return a DescribeProducers answer from (topic, partition) to producers or an error code.

    `last_sequences` by producer id; 4 where it is not there.
    """
    producer = part(DESCRIBE_PRODUCERS, 0, "ProducerState")
    partition = part(DESCRIBE_PRODUCERS, 0, "PartitionResponse")
    topic = part(DESCRIBE_PRODUCERS, 0, "TopicResponse")
    told = []
    for (name, number), found in partitions.items():
        entries = () if isinstance(found, int) else found
        active = tuple(
            producer(
                producer_id=producer_id,
                producer_epoch=epoch,
                last_sequence=(last_sequences or {}).get(producer_id, 4),
                last_timestamp=timestamp,
                coordinator_epoch=coordinator_epoch,
                current_txn_start_offset=start,
            )
            for producer_id, epoch, timestamp, coordinator_epoch, start in entries
        )
        one = partition(
            partition_index=number,
            error_code=ErrorCode(found if isinstance(found, int) else 0),
            error_message="told by the broker" if isinstance(found, int) else None,
            active_producers=active,
        )
        told.append(topic(name=name, partitions=(one,)))
    return answer(DESCRIBE_PRODUCERS, 0, throttle_time=NO_THROTTLE, topics=tuple(told))


def acls(*patterns: tuple[str, int], error: int = 0) -> bytes:
    """Return a DescribeAcls answer with an entry for each (name, pattern type)."""
    resource = part(DESCRIBE_ACLS, 3, "DescribeAclsResource")
    entry = part(DESCRIBE_ACLS, 3, "AclDescription")
    one = entry(principal="User:somebody", host="*", operation=8, permission_type=3)
    told = tuple(
        resource(resource_type=5, resource_name=name, pattern_type=kind, acls=(one,))
        for name, kind in patterns
    )
    return answer(
        DESCRIBE_ACLS,
        3,
        throttle_time=NO_THROTTLE,
        error_code=ErrorCode(error),
        error_message=None,
        resources=told,
    )
