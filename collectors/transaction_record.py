"""Decodes keys and values of `__transaction_state`, the log of the transaction coordinators.

Each record is the whole state of one transactional id at one time. Numbers stay as they were
written, in milliseconds; Kafka's -1 for "none" is absence here.
Source: TransactionLogKey.json, TransactionLogValue.json (v0: KIP-98; v1, flexible: KIP-890).
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Final

from collectors.translate import present
from collectors.wire.cursor import INT16, INT32, INT64, MALFORMED, sliced, uvarint
from rules.facts.times import LAST_MS
from rules.facts.transactions import TransactionState

KEY_TYPE: Final = 0  # the one kind of record that this log has had so far
FLEXIBLE_SINCE: Final = 1
NEWEST_VERSION: Final = 1
# By the number that means a state in the log; not the alphabet, and not to be reordered.
STATES: Final = (
    TransactionState.EMPTY,
    TransactionState.ONGOING,
    TransactionState.PREPARE_COMMIT,
    TransactionState.PREPARE_ABORT,
    TransactionState.COMPLETE_COMMIT,
    TransactionState.COMPLETE_ABORT,
    TransactionState.DEAD,
    TransactionState.PREPARE_EPOCH_FENCE,
)
_PREPARE_COMMIT: Final = STATES.index(TransactionState.PREPARE_COMMIT)
_KNOWN_VERSIONS: Final = (b"\0\0", b"\0\1")
_STATE_AT: Final = 16  # bytes from the beginning of a value
_PREVIOUS_PRODUCER_ID, _NEXT_PRODUCER_ID, _CLIENT_VERSION, _NEXT_EPOCH = range(4)  # tags

_KEY_HEAD: Final = struct.Struct(">hH")  # type, length of the transactional id
_HEAD: Final = struct.Struct(">hqhib")  # version, producer id, epoch, timeout, state
_TIMES: Final = struct.Struct(">qq")
_TAG_LAYOUTS: Final = {
    _PREVIOUS_PRODUCER_ID: INT64,
    _NEXT_PRODUCER_ID: INT64,
    _CLIENT_VERSION: INT16,
    _NEXT_EPOCH: INT16,
}

PartitionsOfTopic = tuple[str, tuple[int, ...]]


class RecordUnreadableError(Exception):
    """A record that is not what its version promises, or of a version that is newer than ours."""


@dataclass(frozen=True, slots=True)
class TransactionValue:
    """The state of a transactional id; built by position, because a round may bring 60,000."""

    version: int
    producer_id: int
    producer_epoch: int
    timeout_ms: int
    state: TransactionState
    partitions: tuple[PartitionsOfTopic, ...] | None  # that still wait for a marker; v0 may omit
    last_update_ms: int  # since 1970, by the coordinator's clock
    start_ms: int | None  # absent: nothing was begun
    # Tagged fields of version 1.
    previous_producer_id: int | None = None
    next_producer_id: int | None = None  # once the epochs of a producer id are used up
    client_transaction_version: int = 0  # 2: the client ends each transaction with a new epoch
    next_producer_epoch: int | None = None


@dataclass(frozen=True, slots=True)
class TransactionRecord:
    """One record of the log; without a value it is a tombstone: the id has expired."""

    transactional_id: str
    value: TransactionValue | None
    written_ms: int | None = None  # since 1970, when the coordinator wrote it, by its clock


def decode(
    key: bytes | None, value: bytes | None, written_ms: int | None = None
) -> TransactionRecord | None:
    """Return the record, None where the key is of a kind that Tidemark does not know.

    Raises:
        RecordUnreadableError: it ends early, is not valid UTF-8, or has an unsupported version.
    """
    try:
        transactional_id = _decode_key(key or b"")
        if transactional_id is None:
            return None
        content = None if value is None else _decode_value(value)
        return TransactionRecord(transactional_id, content, _possible(written_ms))
    except MALFORMED as exc:
        raise _malformed(exc) from exc


def decode_name(key: bytes | None) -> str | None:
    """Return the transactional id of a key, None where it is of a kind that Tidemark does not know.

    Raises:
        RecordUnreadableError: it ends early, or is not valid UTF-8.
    """
    try:
        return _decode_key(key or b"")
    except MALFORMED as exc:
        raise _malformed(exc) from exc


def _malformed(exc: Exception) -> RecordUnreadableError:
    return RecordUnreadableError(f"a record of the transaction log is malformed: {exc}")


def _possible(written_ms: int | None) -> int | None:
    """Return a time that can be written out, else None."""
    return written_ms if written_ms is not None and 0 <= written_ms <= LAST_MS else None


def is_prepare_commit(value: bytes | None) -> bool:
    """Whether a value is a decision to commit: a quarter of the log.

    Only when it was written matters of it to a reader of ends, which need not decode it.
    """
    if value is None or len(value) <= _STATE_AT or value[:2] not in _KNOWN_VERSIONS:
        return False
    return value[_STATE_AT] == _PREPARE_COMMIT


def _decode_key(key: bytes) -> str | None:
    if INT16.unpack_from(key)[0] != KEY_TYPE:
        return None
    _, length = _KEY_HEAD.unpack_from(key)
    return str(sliced(key, _KEY_HEAD.size, length), "utf-8")


def _decode_value(value: bytes) -> TransactionValue:
    version = INT16.unpack_from(value)[0]
    if not 0 <= version <= NEWEST_VERSION:
        raise RecordUnreadableError(f"version {version} of a record of the transaction log")
    fixed = _HEAD.unpack_from(value)
    is_flexible = version >= FLEXIBLE_SINCE
    read = _compact_partitions if is_flexible else _plain_partitions
    partitions, position = read(value, _HEAD.size)
    last_update_ms, start_ms = _TIMES.unpack_from(value, position)
    if not 0 <= last_update_ms <= LAST_MS or start_ms > LAST_MS:
        raise RecordUnreadableError("a record of the transaction log with an impossible time")
    _, producer_id, producer_epoch, timeout_ms, number = fixed
    return TransactionValue(
        version,
        producer_id,
        producer_epoch,
        timeout_ms,
        STATES[number] if 0 <= number < len(STATES) else TransactionState.UNKNOWN,
        partitions,
        last_update_ms,
        start_ms if start_ms >= 0 else None,
        *(_decode_tags(value, position + _TIMES.size) if is_flexible else ()),
    )


Partitions = tuple[tuple[PartitionsOfTopic, ...] | None, int]  # and the position behind them


def _plain_partitions(value: bytes, position: int) -> Partitions:
    count = INT32.unpack_from(value, position)[0]
    position += INT32.size
    topics: list[PartitionsOfTopic] = []
    for _ in range(count):
        length = INT16.unpack_from(value, position)[0]
        position += INT16.size
        topic = str(sliced(value, position, length), "utf-8")
        position += length
        numbers = INT32.unpack_from(value, position)[0]
        position += INT32.size
        topics.append((topic, _int32s(value, position, numbers)))
        position += numbers * INT32.size
    return (tuple(topics) if count >= 0 else None), position


def _compact_partitions(value: bytes, position: int) -> Partitions:
    count, position = uvarint(value, position)
    topics: list[PartitionsOfTopic] = []
    for _ in range(count - 1):
        length, position = uvarint(value, position)
        topic = str(sliced(value, position, length - 1), "utf-8")
        numbers, position = uvarint(value, position + length - 1)
        topics.append((topic, _int32s(value, position, numbers - 1)))
        position = _skip_tags(value, position + (numbers - 1) * INT32.size)
    return (tuple(topics) if count else None), position


def _decode_tags(value: bytes, position: int) -> tuple[int | None, int | None, int, int | None]:
    count, position = uvarint(value, position)
    if not count:
        return None, None, 0, None
    tags: dict[int, int] = {}
    for _ in range(count):
        tag, position = uvarint(value, position)
        size, position = uvarint(value, position)
        content = sliced(value, position, size)
        if tag in _TAG_LAYOUTS:
            tags[tag] = _TAG_LAYOUTS[tag].unpack(content)[0]
        position += size
    return (
        present(tags.get(_PREVIOUS_PRODUCER_ID, -1)),
        present(tags.get(_NEXT_PRODUCER_ID, -1)),
        tags.get(_CLIENT_VERSION, 0),
        present(tags.get(_NEXT_EPOCH, -1)),
    )


def _skip_tags(value: bytes, position: int) -> int:
    count, position = uvarint(value, position)
    for _ in range(count):
        _, position = uvarint(value, position)
        size, position = uvarint(value, position)
        position += size
    return position


def _int32s(value: bytes, position: int, count: int) -> tuple[int, ...]:
    if count == 1:  # nearly always; a layout for another count has to be resolved
        return INT32.unpack_from(value, position)
    return struct.unpack(f">{count}i", sliced(value, position, count * INT32.size))
