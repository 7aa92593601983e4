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
        at, broker_id = fields["at"], fields["broker_id"]
        name, topic_id = fields["name"], fields["topic_id"]
        return FirstLine(
            at=None if at is None else datetime.fromisoformat(at).astimezone(UTC),
            broker_id=None if broker_id is None else BrokerId(int(broker_id)),
            name=None if name is None else TopicPartition(str(name[0]), int(name[1])),
            topic_id=None if topic_id is None else TopicId(str(topic_id)),
        )
    except (ValueError, TypeError, LookupError, OverflowError):
        return None
