"""Other lines about a partition than rejections of sequences: they often decide the cause."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, assert_never

from rules.facts.broker_log import (
    BrokerStarted,
    EpochRejected,
    FollowerStarted,
    IsrShrunk,
    IsrUpdated,
    LogEvent,
    LogLoaded,
    LogTruncated,
    ProducerInitialised,
    ProducerRequest,
    SequenceRejected,
    TransactionTimedOut,
    UncleanChange,
    WatermarkWentBack,
)
from rules.loss.summary import offsets
from service.views.explained import json_time
from service.views.model import Row

WORDS: Final = {
    SequenceRejected: "sequence_rejected",
    EpochRejected: "epoch_rejected",
    IsrShrunk: "isr_shrunk",
    IsrUpdated: "isr_updated",
    UncleanChange: "unclean_change",
    LogLoaded: "log_loaded",
    FollowerStarted: "follower_started",
    LogTruncated: "log_truncated",
    WatermarkWentBack: "high_watermark_went_back",
}


def other_line_rows(lines: Iterable[LogEvent]) -> list[Row]:
    """Return lines about one partition as JSON rows, ordered by time.

    One broker writes lines that belong together into several files.
    """
    events = sorted(lines, key=by_time)
    return [_row(event, _end_before(events[:place], event)) for place, event in enumerate(events)]


def by_time(event: LogEvent) -> tuple[bool, float]:
    """Return a key that orders lines by time, those without one last."""
    at = event.origin.at
    return at is None, 0.0 if at is None else at.timestamp()


def _end_before(earlier: Sequence[LogEvent], event: LogEvent) -> int | None:
    """Return the log end offset of the event's broker, by the lines before it."""
    for other in reversed(earlier):
        is_its_own = other.origin.broker_id == event.origin.broker_id is not None
        if is_its_own and isinstance(other, (FollowerStarted, LogLoaded)):
            return other.log_end_offset
    return None


def _row(event: LogEvent, end: int | None) -> Row:
    return {
        "kind": WORDS[type(event)],
        "at": json_time(event.origin.at),
        "broker": event.origin.broker_id,
        "explanation": explanation(event, end),
    }


def explanation(event: LogEvent, end: int | None = None) -> str:
    """Return the meaning of a line as a sentence; `end` is its broker's log end offset before it."""
    match event:
        case SequenceRejected() | EpochRejected():
            sentence = _describe_rejection(event)
        case IsrShrunk():
            left = ", ".join(map(str, event.isr))
            sentence = f"a leader requests an ISR of {left}, which the controller may reject"
        case IsrUpdated():
            left = ", ".join(map(str, event.isr)) or "nobody"
            sentence = (
                f"the ISR is {left}: from then on records that all of these have are acknowledged"
            )
        case UncleanChange():
            sentence = _describe_unclean(event)
        case LogLoaded():
            sentence = f"a broker has started, and its log ends at {event.log_end_offset}"
        case FollowerStarted():
            end, epoch = event.log_end_offset, event.leader_epoch
            sentence = f"a broker follows in leader epoch {epoch}, and its own log ends at {end}"
        case LogTruncated():
            sentence = _describe_truncation(event, end)
        case WatermarkWentBack():
            gone = event.offset_before - event.offset
            sentence = (
                f"the high watermark of a replica went back from {event.offset_before} to "
                f"{event.offset}: it truncated {offsets(gone)} that it took for committed"
            )
        case ProducerInitialised() | TransactionTimedOut() | ProducerRequest() | BrokerStarted():
            sentence = "a line about a producer or about a broker as a whole"
        case _:
            assert_never(event)
    return sentence


def _describe_rejection(event: SequenceRejected | EpochRejected) -> str:
    if isinstance(event, SequenceRejected):
        return "a batch was rejected because of its sequence"
    return (
        f"a batch of the older producer epoch {event.producer_epoch} was rejected: ordinary "
        "once, after a client gave up a batch"
    )


def _describe_unclean(event: UncleanChange) -> str:
    leader = "a broker" if event.leader is None else f"broker {event.leader}"
    before = "" if event.leader_before is None else f" after broker {event.leader_before}"
    return f"{leader} became leader{before} by an unclean election: records may be lost"


def _describe_truncation(event: LogTruncated, end: int | None) -> str:
    sentence = f"a replica truncated its log to {event.offset}"
    if event.epoch is None:
        return f"{sentence}, which is usual when it starts"
    sentence = f"{sentence}, where leader epoch {event.epoch} ends for its leader"
    if end is None:
        return sentence
    if end <= event.offset:
        return f"{sentence}: nothing, its own log ended at {end}"
    many = offsets(end - event.offset)
    return (
        f"{sentence}: [{event.offset}, {end}) is gone there, {many} that its leader does not have"
    )
