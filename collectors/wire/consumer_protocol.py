"""Reads what a consumer's leader assigned to a member: bytes that the broker only passes on.

Other clients wrote them, so that every length is checked against what is left before it is used.
Source: ConsumerProtocolAssignment, versions 0 to 3: the topics are the same in all, and what a later
version may append follows them.
"""

from __future__ import annotations

import struct
from typing import Final

from collectors.wire.codec import UnreadableError
from collectors.wire.cursor import Cursor
from rules.facts.members import Assignment

OLDEST_TOPIC: Final = 6  # bytes: an empty name and no partitions
PARTITION: Final = 4  # bytes


def read_assignment(body: bytes) -> Assignment:
    """Return the topics of an assignment with their partitions; empty bytes assign nothing.

    Raises:
        UnreadableError: the bytes are not those of the consumer protocol.
    """
    if not body:
        return ()
    cursor = Cursor(body, 0, UnreadableError)
    if cursor.int16() < 0:
        raise UnreadableError("the assignment of a member has a negative version")
    return tuple(_topic(cursor, len(body)) for _ in range(_count(cursor, len(body), OLDEST_TOPIC)))


def _topic(cursor: Cursor, size: int) -> tuple[str, tuple[int, ...]]:
    length = cursor.int16()
    if length < 0:
        raise UnreadableError("the assignment of a member has a topic without a name")
    try:
        name = str(cursor.take(length), "utf-8")
    except UnicodeDecodeError as exc:
        raise UnreadableError("the assignment of a member has a name that is no text") from exc
    count = _count(cursor, size, PARTITION)
    return name, struct.unpack(f">{count}i", cursor.take(count * PARTITION))


def _count(cursor: Cursor, size: int, least: int) -> int:
    """Read the number of elements, of which each takes at least so many bytes."""
    count = cursor.int32()
    if count < 0 or count * least > size - cursor.position:
        raise UnreadableError(f"the assignment of a member announces {count} elements")
    return count
