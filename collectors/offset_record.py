"""Decodes keys and values of `__consumer_offsets`, the log of the group coordinators.

A commit is the record of a group and a partition; the other kinds, of groups and their members, have only their
names here. Numbers stay as they were written, in milliseconds; Kafka's -1 for "none" is absence.
Source: OffsetCommitKey.json (v0, v1), OffsetCommitValue.json (v0 to v4, flexible since v4), and the types of
CoordinatorRecordType.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, TypeAlias

from collectors.transaction_record import RecordUnreadableError
from collectors.translate import present
from collectors.wire.cursor import INT16, INT32, INT64, MALFORMED, sliced, uvarint
from rules.facts.identity import TopicPartition

COMMIT_TYPES: Final = (0, 1)
LEADER_EPOCH_SINCE: Final = 3
FLEXIBLE_SINCE: Final = 4
NEWEST_VERSION: Final = 4
# Kafka's names of the other kinds, by the number at the beginning of a key.
OTHER_TYPES: Final = MappingProxyType(
    {
        2: "GroupMetadata",
        3: "ConsumerGroupMetadata",
        4: "ConsumerGroupPartitionMetadata",
        5: "ConsumerGroupMemberMetadata",
        6: "ConsumerGroupTargetAssignmentMetadata",
        7: "ConsumerGroupTargetAssignmentMember",
        8: "ConsumerGroupCurrentMemberAssignment",
        10: "ShareGroupMemberMetadata",
        11: "ShareGroupMetadata",
        12: "ShareGroupTargetAssignmentMetadata",
        13: "ShareGroupTargetAssignmentMember",
        14: "ShareGroupCurrentMemberAssignment",
        15: "ShareGroupStatePartitionMetadata",
        16: "ConsumerGroupRegularExpression",
        17: "StreamsGroupMetadata",
        19: "StreamsGroupMemberMetadata",
        20: "StreamsGroupTargetAssignmentMetadata",
        21: "StreamsGroupTargetAssignmentMember",
        22: "StreamsGroupCurrentMemberAssignment",
        23: "StreamsGroupTopology",
    }
)
_HEAD: Final = struct.Struct(">hq")  # version, committed offset

CommitName: TypeAlias = tuple[str, TopicPartition]  # group, partition


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetCommit:
    """A commit, or its deletion, as the coordinator wrote it."""

    group: str
    name: TopicPartition
    committed_offset: int | None  # None: a tombstone, the commit was deleted
    leader_epoch: int | None = None  # in which the group read; absent before version 3
    metadata: str = ""
    committed_ms: int | None = None  # since 1970, by the coordinator's clock


def commit_name(key: bytes | None) -> CommitName | None:
    """Return the group and partition of a commit record; None: another record, or an unreadable one."""
    try:
        if key is None or INT16.unpack_from(key)[0] not in COMMIT_TYPES:
            return None
        group, position = _text(key, INT16.size)
        topic, position = _text(key, position)
        return group, TopicPartition(topic, INT32.unpack_from(key, position)[0])
    except MALFORMED:
        return None


def committed_offset(value: bytes) -> int | None:
    """Return the offset in the value of a commit, which all versions have in front; None: it is too short."""
    return _HEAD.unpack_from(value)[1] if len(value) >= _HEAD.size else None


def other_type(key: bytes | None) -> str | None:
    """Return Kafka's name of a record that is no commit; None: it is one, or is not known."""
    if key is None or len(key) < INT16.size:
        return None
    return OTHER_TYPES.get(INT16.unpack_from(key)[0])


def decode_commit(key: bytes | None, value: bytes | None) -> OffsetCommit | None:
    """Return the commit of a record; None where it is of another kind.

    Raises:
        RecordUnreadableError: its value ends early, is not valid UTF-8, or has an unsupported version.
    """
    name = commit_name(key)
    if name is None:
        return None
    if value is None:
        return OffsetCommit(group=name[0], name=name[1], committed_offset=None)
    try:
        return _decode(name, value)
    except MALFORMED as exc:
        raise RecordUnreadableError(f"a commit of group {name[0]!r} is malformed: {exc}") from exc


def _decode(name: CommitName, value: bytes) -> OffsetCommit:
    version, offset = _HEAD.unpack_from(value)
    if not 0 <= version <= NEWEST_VERSION:
        raise RecordUnreadableError(f"version {version} of a commit of group {name[0]!r}")
    position, leader_epoch = _HEAD.size, None
    if version >= LEADER_EPOCH_SINCE:
        leader_epoch = present(INT32.unpack_from(value, position)[0])
        position += INT32.size
    read = _compact_text if version >= FLEXIBLE_SINCE else _text
    metadata, position = read(value, position)
    return OffsetCommit(
        group=name[0],
        name=name[1],
        committed_offset=offset,
        leader_epoch=leader_epoch,
        metadata=metadata,
        committed_ms=present(INT64.unpack_from(value, position)[0]),
    )


def _text(data: bytes, position: int) -> tuple[str, int]:
    (length,) = INT16.unpack_from(data, position)
    return _decoded(data, position + INT16.size, length)


def _compact_text(data: bytes, position: int) -> tuple[str, int]:
    length, position = uvarint(data, position)
    return _decoded(data, position, length - 1)


def _decoded(data: bytes, position: int, length: int) -> tuple[str, int]:
    return sliced(data, position, length).decode(), position + length
