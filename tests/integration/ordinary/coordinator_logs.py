"""What coordinators have written: commits of groups and the ends of transactions.

Read from Kafka's own topics by their published layouts (OffsetCommitKey and -Value,
TransactionLogKey and -Value), and by nothing of what Tidemark reads them with.
"""

from __future__ import annotations

import struct
import uuid
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, TopicPartition

from service.runtime.clock import monotonic

READ_SECONDS: Final = 180.0
POLL_SECONDS: Final = 1.0
ONGOING, PREPARED, COMPLETE = (1,), (2, 3), (4, 5)  # the second of two: an abort

Commit = tuple[str, str, int]  # group, topic, partition


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """A record of any topic."""

    partition: int
    offset: int
    at: datetime
    key: bytes
    value: bytes | None


def read_topic(servers: str, topic: str, *, is_committed: bool = True) -> Iterator[Record]:
    """Give all records from log start to the present end, partition by partition."""
    client = Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": f"truth-{uuid.uuid4()}",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "isolation.level": "read_committed" if is_committed else "read_uncommitted",
        }
    )
    try:
        left = set(client.list_topics(topic, timeout=READ_SECONDS).topics[topic].partitions)
        client.assign([TopicPartition(topic, number, OFFSET_BEGINNING) for number in left])
        deadline = monotonic() + READ_SECONDS
        while left:
            assert monotonic() < deadline, f"{topic} cannot be read to its end: {left}"
            for message in client.consume(1000, POLL_SECONDS):
                error = message.error()
                if error is None:
                    yield _record(message)
                elif error.code() == KafkaError._PARTITION_EOF:  # noqa: SLF001 - its public name
                    left.discard(message.partition())
    finally:
        client.close()


def _record(message: Any) -> Record:
    _, millis = message.timestamp()
    return Record(
        partition=message.partition(),
        offset=message.offset(),
        at=datetime.fromtimestamp(millis / 1000, UTC),
        key=message.key() or b"",
        value=message.value(),
    )


def read_commits(servers: str) -> dict[Commit, list[tuple[datetime, int]]]:
    """Return every commit of every group in its order, with its time."""
    commits: dict[Commit, list[tuple[datetime, int]]] = defaultdict(list)
    for record in read_topic(servers, "__consumer_offsets"):
        [version] = struct.unpack_from(">h", record.key)
        if version > 1 or record.value is None:  # what is of members, or of groups that are gone
            continue
        group, at = _text(record.key, 2)
        topic, at = _text(record.key, at)
        [partition] = struct.unpack_from(">i", record.key, at)
        _, offset = struct.unpack_from(">hq", record.value)
        commits[group, topic, partition].append((record.at, offset))
    return commits


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """One transaction as its coordinator wrote it; times of what it did not come to are None."""

    transactional_id: str
    began: datetime | None
    at: datetime  # when it was decided
    completed: datetime | None
    is_abort: bool


def read_decisions(servers: str) -> list[Decision]:
    """Return every transaction that was decided."""
    began: dict[str, datetime] = {}
    decided: dict[str, tuple[datetime, bool]] = {}
    decisions: list[Decision] = []
    for record in read_topic(servers, "__transaction_state"):
        if record.value is None:
            continue
        name, _ = _text(record.key, 2)
        [status] = struct.unpack_from(">b", record.value, 2 + 8 + 2 + 4)
        if status in ONGOING:
            began.setdefault(name, record.at)
        elif status in PREPARED:
            decided.setdefault(name, (record.at, status == PREPARED[1]))
        elif status in COMPLETE and name in decided:
            decisions.append(_decision(name, began, decided, record.at))
    return decisions + [_decision(name, began, decided, None) for name in list(decided)]


def _decision(
    name: str,
    began: dict[str, datetime],
    decided: dict[str, tuple[datetime, bool]],
    end: datetime | None,
) -> Decision:
    at, is_abort = decided.pop(name)
    return Decision(
        transactional_id=name,
        began=began.pop(name, None),
        at=at,
        completed=end,
        is_abort=is_abort,
    )


def _text(data: bytes, at: int) -> tuple[str, int]:
    [length] = struct.unpack_from(">h", data, at)
    end = at + 2 + length
    return data[at + 2 : end].decode(), end
