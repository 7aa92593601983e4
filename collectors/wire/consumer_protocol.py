"""Reads what a consumer's leader assigned to a member: bytes that the broker only passes on.

Other clients wrote them, so that every length is checked against what is left before it is used.
Source: ConsumerProtocolAssignment, versions 0 to 3: the topics are the same in all, and what a later
version may append follows them.
"""

from __future__ import annotations

import struct
from functools import lru_cache
from typing import Final

from collectors.wire.codec import UnreadableError
from rules.facts.members import Assignment

_HEADER: Final = struct.Struct(">hi")  # version, number of topics
_INT16, _INT32 = struct.Struct(">h"), struct.Struct(">i")
OLDEST_TOPIC: Final = _INT16.size + _INT32.size  # bytes: an empty name and no partitions
PARTITION: Final = 4  # bytes


def read_assignment(body: bytes) -> Assignment:
    """Return the topics of an assignment with their partitions; empty bytes assign nothing.

    Raises:
        UnreadableError: the bytes are not those of the consumer protocol.
    """
    if not body:
        return ()
    try:
        version, topics = _HEADER.unpack_from(body)
        if version < 0:
            raise UnreadableError("the assignment of a member has a negative version")
        return tuple(_read_topics(body, topics))
    except struct.error as exc:
        raise UnreadableError("the assignment of a member ends early") from exc
    except UnicodeDecodeError as exc:
        raise UnreadableError("the assignment of a member has a name that is no text") from exc


def _read_topics(body: bytes, topics: int) -> list[tuple[str, tuple[int, ...]]]:
    position = _HEADER.size
    _check_count(topics, OLDEST_TOPIC, len(body) - position)
    read: list[tuple[str, tuple[int, ...]]] = []
    for _ in range(topics):
        (length,) = _INT16.unpack_from(body, position)
        if length < 0:
            raise UnreadableError("the assignment of a member has a topic without a name")
        start = position + _INT16.size
        end = start + length
        (count,) = _INT32.unpack_from(body, end)
        position = end + _INT32.size
        _check_count(count, PARTITION, len(body) - position)
        read.append((str(body[start:end], "utf-8"), _numbers(count).unpack_from(body, position)))
        position += count * PARTITION
    return read


@lru_cache(maxsize=1000)
def _numbers(count: int) -> struct.Struct:
    return struct.Struct(f">{count}i")


def _check_count(count: int, least: int, left: int) -> None:
    """Check a number of elements, of which each takes at least `least` of the bytes that are left."""
    if count < 0 or count * least > left:
        raise UnreadableError(f"the assignment of a member announces {count} elements")
