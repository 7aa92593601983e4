"""Change events as JSON; ASCII, because a name may have what the encoding of the database lacks."""

from __future__ import annotations

import json
from typing import Final

from rules.errors import StoreError
from rules.facts.change_events import ChangeEvent
from service.storage.formats.values import plain, read

FORMAT: Final = 1
MOST_TOPICS: Final = 10_000  # of one event, by which it can be found


def encode(event: ChangeEvent) -> str:
    """Encode an event as text of format `FORMAT`; its topics are stored apart."""
    content = plain(event)
    del content["topics"]
    return json.dumps(content, separators=(",", ":"))


def decode(content: str, form: int) -> ChangeEvent:
    """Decode an event, without its topics.

    Raises:
        StoreError: the text has another format, or was not written by `encode`.
    """
    if form != FORMAT:
        raise StoreError(f"stored change events have the unknown format {form}", retryable=False)
    try:
        return read(ChangeEvent, {**json.loads(content), "topics": ()})
    except (LookupError, TypeError, ValueError, AttributeError) as exc:
        raise StoreError(
            f"stored change events cannot be read: {type(exc).__name__}", retryable=False
        ) from exc


def topics_of(event: ChangeEvent) -> list[str]:
    """Return the topics of an event as the database has them: ASCII, as Kafka's are."""
    names = event.topics[:MOST_TOPICS]
    return [name.encode("ascii", "backslashreplace").replace(b"\0", b"").decode() for name in names]
