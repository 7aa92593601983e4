"""Pieces that many lines of a broker's log share: names, and numbers within the types they have.

A number that its type cannot hold was not written by a broker: such a line is unreadable, and no
event. Kafka's -1 for "none" is absence here.
"""

from __future__ import annotations

import re
from typing import Final

from rules.facts.identity import BrokerId, TopicId, TopicPartition

TOPIC: Final = r"[A-Za-z0-9._-]{1,249}"
NUMBER: Final = r"-?\d{1,20}"  # longer ones are beyond every type
# A topic may hold dashes: the last one divides. Bounded, so that no text makes it try for long.
TOPIC_PARTITION: Final = rf"(?P<topic>{TOPIC})-(?P<partition>\d{{1,10}})"
TOPIC_ID: Final = r"(?P<topic_id>[A-Za-z0-9_-]{22})"

_NO_TOPIC_ID: Final = "AAAAAAAAAAAAAAAAAAAAAA"  # sixteen zero bytes: the broker had none at hand
_INT16, _INT32, _INT64 = 2**15 - 1, 2**31 - 1, 2**63 - 1


class LineUnreadableError(Exception):
    """A line of a kind that we search for, and which cannot be read."""


def compile_pattern(pattern: str) -> re.Pattern[str]:
    """Return a pattern whose digits are ASCII digits."""
    return re.compile(pattern, re.ASCII)


def match_start(pattern: re.Pattern[str], message: str) -> re.Match[str]:
    """Return how a message begins with a pattern; LineUnreadableError if it does not."""
    match = pattern.match(message)
    if match is None:
        raise LineUnreadableError(message)
    return match


def int16(text: str) -> int:
    """Return an epoch of a producer."""
    return _within(text, _INT16)


def int32(text: str) -> int:
    """Return a sequence, a partition, a broker or a leader epoch."""
    return _within(text, _INT32)


def int64(text: str) -> int:
    """Return an offset or a producer id."""
    return _within(text, _INT64)


def int64_if_any(text: str | None) -> int | None:
    """Return an offset or a producer id, None if the line has none."""
    return None if text is None or text == "-1" else int64(text)


def int32_if_any(text: str | None) -> int | None:
    """Return a leader epoch, None if the line has none."""
    return None if text is None or text == "-1" else int32(text)


def broker_if_any(text: str | None) -> BrokerId | None:
    """Return a broker, None if the line has none."""
    number = int32_if_any(text)
    return None if number is None else BrokerId(number)


def brokers(text: str) -> tuple[BrokerId, ...]:
    """Return a list of brokers, with or without spaces after its commas."""
    parts = (part.strip() for part in text.split(","))
    return tuple(BrokerId(int32(part)) for part in parts if part)


def partition_of(match: re.Match[str]) -> TopicPartition:
    """Return the partition that a pattern with TOPIC_PARTITION found."""
    return TopicPartition(match["topic"], int32(match["partition"]))


def topic_id_if_any(text: str | None) -> TopicId | None:
    """Return a topic id, None if the line has none."""
    return None if text is None or text == _NO_TOPIC_ID else TopicId(text)


def _within(text: str, greatest: int) -> int:
    if not text.isdecimal() or int(text) > greatest:
        raise LineUnreadableError(text)
    return int(text)
