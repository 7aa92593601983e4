"""The state of a parser as text: the first of two lines that belong together, if one waits."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Final, TypedDict

from collectors.broker_log.wording.line import FirstLine
from rules.facts.identity import BrokerId, TopicId, TopicPartition

NOTHING: Final = "{}"


class _State(TypedDict):
    at: str | None
    broker_id: int | None
    name: tuple[str, int] | None
    topic_id: str | None


def encode_state(first: FirstLine | None) -> str:
    """Return the text for a line that waits for its second one."""
    if first is None:
        return NOTHING
    fields = _State(
        at=None if first.at is None else first.at.isoformat(),
        broker_id=first.broker_id,
        name=None if first.name is None else (first.name.topic, first.name.partition),
        topic_id=first.topic_id,
    )
    return json.dumps(fields)


def decode_state(text: str) -> FirstLine | None:
    """Return the waiting line; None: nothing waited, or the text is not of this version."""
    try:
        fields: _State = json.loads(text)
        return FirstLine(
            at=_time(fields["at"]),
            broker_id=_broker(fields["broker_id"]),
            name=_name(fields["name"]),
            topic_id=_topic_id(fields["topic_id"]),
        )
    except (ValueError, TypeError, LookupError, OverflowError):
        return None


def _time(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text).astimezone(UTC)


def _broker(number: int | None) -> BrokerId | None:
    return None if number is None else BrokerId(int(number))


def _name(pair: tuple[str, int] | None) -> TopicPartition | None:
    return None if pair is None else TopicPartition(str(pair[0]), int(pair[1]))


def _topic_id(text: str | None) -> TopicId | None:
    return None if text is None else TopicId(str(text))
