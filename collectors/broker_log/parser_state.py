"""What a parser remembers, as text: the first of two lines that belong together, if it waits."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Final, TypedDict

from collectors.broker_log.wording.line import FirstLine
from rules.facts.identity import BrokerId, TopicId, TopicPartition

NOTHING: Final = "{}"


class _Written(TypedDict):
    at: str | None
    broker_id: int | None
    name: tuple[str, int] | None
    topic_id: str | None


def written(first: FirstLine | None) -> str:
    """Return the text for a line that waits for its second one."""
    if first is None:
        return NOTHING
    told = _Written(
        at=None if first.at is None else first.at.isoformat(),
        broker_id=first.broker_id,
        name=None if first.name is None else (first.name.topic, first.name.partition),
        topic_id=first.topic_id,
    )
    return json.dumps(told)


def read_back(text: str) -> FirstLine | None:
    """Return what was written; None: nothing waited, or no parser of this version wrote it."""
    try:
        told: _Written = json.loads(text)
        return FirstLine(
            at=_time(told["at"]),
            broker_id=_broker(told["broker_id"]),
            name=_name(told["name"]),
            topic_id=_topic_id(told["topic_id"]),
        )
    except (ValueError, TypeError, LookupError, OverflowError):
        return None


def _time(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text).astimezone(UTC)


def _broker(number: int | None) -> BrokerId | None:
    return None if number is None else BrokerId(int(number))


def _name(told: tuple[str, int] | None) -> TopicPartition | None:
    return None if told is None else TopicPartition(str(told[0]), int(told[1]))


def _topic_id(text: str | None) -> TopicId | None:
    return None if text is None else TopicId(str(text))
