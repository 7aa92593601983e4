"""Parsed log lines as JSON: counts of each source, and the events.

Absent values are left out. The text is ASCII, so that NUL and lone surrogates, which a log may contain
and the database rejects, are escaped.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields
from datetime import datetime
from typing import Any, Final

from rules.errors import StoreError
from rules.facts.broker_log import (
    EpochRejected,
    FollowerStarted,
    IsrShrunk,
    IsrUpdated,
    LogEvent,
    LogLoaded,
    LogSource,
    LogTruncated,
    Origin,
    SequenceForm,
    SequenceRejected,
    UncleanChange,
    WatermarkWentBack,
)
from rules.facts.identity import BrokerId

FORMAT: Final = 1
# As format 1 names them.
KINDS: Final[Mapping[str, type[LogEvent]]] = {
    "sequence_refused": SequenceRejected,
    "epoch_refused": EpochRejected,
    "isr_shrunk": IsrShrunk,
    "isr_updated": IsrUpdated,
    "unclean_change": UncleanChange,
    "log_loaded": LogLoaded,
    "follower_started": FollowerStarted,
    "log_truncated": LogTruncated,
    "watermark_went_back": WatermarkWentBack,
}
WORDS: Final = {kind: word for word, kind in KINDS.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class ParsedLines:
    """The result of parsing some log lines."""

    events: tuple[LogEvent, ...]
    sources: tuple[LogSource, ...]  # with the counts of these lines


def encode(parsed: ParsedLines) -> str:
    """Encode parsed lines as text of format `FORMAT`."""
    document = {
        "sources": [_source(source) for source in parsed.sources],
        "events": [_event(event) for event in parsed.events],
    }
    return json.dumps(document, separators=(",", ":"))


def decode(content: str, form: int) -> ParsedLines:
    """Decode parsed lines.

    Raises:
        StoreError: the text has another format, or was not written by `encode`.
    """
    if form != FORMAT:
        raise StoreError(f"stored log lines have the unknown format {form}", retryable=False)
    try:
        document = json.loads(content)
        return ParsedLines(
            events=tuple(_event_of(row) for row in document["events"]),
            sources=tuple(_source_of(row) for row in document["sources"]),
        )
    except (LookupError, TypeError, ValueError, AttributeError) as exc:
        raise StoreError(
            f"stored log lines cannot be read: {type(exc).__name__}", retryable=False
        ) from exc


def _source(source: LogSource) -> list[Any]:
    counts = (source.lines, source.unparsed)
    row = [source.name, *counts, _time(source.last_line_at), source.unreadable]
    return [*row, [[node, _time(at)] for node, at in source.controllers]]


def _source_of(row: list[Any]) -> LogSource:
    name, lines, unparsed, last_line_at, unreadable, *rest = row  # no rest: of an older release
    return LogSource(
        name=name,
        lines=lines,
        unparsed=unparsed,
        last_line_at=_time_of(last_line_at),
        unreadable=tuple(unreadable),
        controllers=tuple(
            (BrokerId(node), datetime.fromisoformat(at)) for node, at in (rest[0] if rest else ())
        ),
    )


def _event(event: LogEvent) -> dict[str, Any]:
    values = {field.name: getattr(event, field.name) for field in fields(event)}
    present = {name: value for name, value in values.items() if value is not None}
    return {"kind": WORDS[type(event)], **present, "origin": _origin(event.origin)}


def _event_of(row: dict[str, Any]) -> LogEvent:
    kind = KINDS[row["kind"]]
    names = [field.name for field in fields(kind) if field.name in row or field.default is MISSING]
    return kind(**{name: _value_of(name, row.get(name)) for name in names})


def _value_of(name: str, value: Any) -> Any:
    if name == "origin":
        return Origin(source=value[0], broker_id=value[1], at=_time_of(value[2]))
    if name == "form":
        return SequenceForm(value)
    return tuple(value) if isinstance(value, list) else value


def _origin(origin: Origin) -> list[Any]:
    return [origin.source, origin.broker_id, _time(origin.at)]


def _time(at: datetime | None) -> str | None:
    return None if at is None else at.isoformat()


def _time_of(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)
