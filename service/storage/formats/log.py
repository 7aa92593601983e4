"""Parsed log lines as JSON: counts of each source, and the events.

Absent values are left out. The text is ASCII, so that NUL and lone surrogates, which a log may contain
and the database rejects, are escaped.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from rules.errors import StoreError
from rules.facts.broker_log import (
    BrokerStarted,
    EpochRejected,
    FollowerStarted,
    IsrShrunk,
    IsrUpdated,
    LogEvent,
    LogLoaded,
    LogSource,
    LogTruncated,
    ProducerInitialised,
    ProducerRequest,
    SequenceRejected,
    TransactionTimedOut,
    UncleanChange,
    WatermarkWentBack,
)
from service.storage.formats.values import plain, read

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
    "producer_initialised": ProducerInitialised,
    "transaction_timed_out": TransactionTimedOut,
    "producer_request": ProducerRequest,
    "broker_started": BrokerStarted,
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
        "sources": plain(parsed.sources),
        "events": [{"kind": WORDS[type(event)], **plain(event)} for event in parsed.events],
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
            events=tuple(read(KINDS[row["kind"]], row) for row in document["events"]),
            sources=read(tuple[LogSource, ...], document["sources"]),
        )
    except (LookupError, TypeError, ValueError, AttributeError) as exc:
        raise StoreError(
            f"stored log lines cannot be read: {type(exc).__name__}", retryable=False
        ) from exc
