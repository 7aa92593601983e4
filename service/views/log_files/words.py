"""What the files of a log show, in words, of a row of the document: facts, and what is not as it should be."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from collectors.naming import counted
from rules.log_files.histories import INTERNAL_TOPICS

Row = Mapping[str, Any]  # of the document
MEBIBYTE: Final = 1024 * 1024
NOT_READ: Final = "NOT READ"

Time = Callable[[object], str | None]  # writes a time of the document


def log_name(log: Row) -> str:
    """Return the partition, or the folder where its name says none."""
    return log["folder"] if log["topic"] is None else f"{log['topic']}-{log['partition']}"


def log_title(log: Row) -> str:
    """Return the partition with its folder, and what the broker made of it."""
    state = "" if log["state"] == "live" else f"  {log['state']}"
    return (log["folder"] if log["topic"] is None else f"{log_name(log)}  {log['folder']}") + state


def log_facts(log: Row, time: Time) -> list[tuple[str, object]]:
    """Return labels and values; None is left out."""
    return [
        ("topic id", log["topic_id"]),
        ("offsets", _offsets(log)),
        ("checkpoint", _checkpoint(log)),
        ("batches", _batches(log)),
        ("transactions", _transactions(log)),
        ("not idempotent", _not_idempotent(log, time)),
        ("compacted", "yes" if log["is_compacted"] else None),
        ("gaps", _gap_counts(log)),
    ]


def _offsets(log: Row) -> str:
    if log["log_end_offset"] is None:
        if not log["segments"]:
            return "no segment is here"
        return "no batch can be read" if log["problems"] else "none: the log is empty"
    stable = log["last_stable_offset"]
    lso = "" if stable == log["log_end_offset"] else f", open transactions from {stable} on"
    return f"{log['first_offset']} to {log['log_end_offset']} (end, exclusive){lso}"


def _checkpoint(log: Row) -> str | None:
    """Return what the log directory says, and how much lies beyond it."""
    words = [
        f"{name.replace('_', ' ')} {log[name]}"
        for name in ("log_start_offset", "high_watermark", "recovery_point")
        if log[name] is not None
    ]
    mark, end = log["high_watermark"], log["log_end_offset"]
    if mark is not None and end is not None and end > mark:
        words.append(f"{counted(end - mark, 'offset')} beyond the high watermark, which is up to 5 s old")  # fmt: skip
    return ", ".join(words) or None


def _batches(log: Row) -> str | None:
    segments = log["segments"]
    if not segments:
        return None
    batches, records, size = (
        sum(each[name] for each in segments) for name in ("batches", "records", "size")
    )
    codecs = ", ".join(sorted({codec for each in segments for codec in each["codecs"]}))
    of = f"{counted(len(segments), 'segment')}, {size / MEBIBYTE:,.1f} MiB"
    return f"{batches:,} with {counted(records, 'record')} in {of}" + (
        f", codec {codecs}" if codecs else ""
    )


def _transactions(log: Row) -> str | None:
    committed, aborted = log["committed_transactions"], log["aborted_transactions"]
    left = len(log["open_transactions"])
    if not committed + aborted + left:
        return None
    return f"{committed:,} committed, {aborted:,} aborted, {left:,} open"


def _not_idempotent(log: Row, time: Time) -> str | None:
    """Return what was written without a producer id; of brokers' own topics that is how brokers write."""
    writers = log["not_idempotent"]
    if writers is None or log["topic"] in INTERNAL_TOPICS:
        return None
    last = time(writers["last_timestamp"])
    at = "" if last is None else f", last at {last}"
    return (
        f"{counted(writers['records'], 'record')} without a producer id, offsets {writers['first_offset']} to "
        f"{writers['last_offset']}{at}: a retry may have duplicated or reordered them"
    )


def _gap_counts(log: Row) -> str | None:
    if log["log_end_offset"] is None:
        return None
    offsets, sequences = log["offset_gap_count"], log["sequence_gap_count"]
    if not offsets + sequences:
        return "none: neither in offsets nor in the sequences of a producer"
    return f"{offsets:,} in offsets, {sequences:,} in sequences of producers"


def noteworthy(log: Row) -> Iterator[tuple[str, str]]:
    """Yield what is not as it should be, each with its verdict: gaps, contradictions, what was not read."""
    for gap in not_ok(log["sequence_gaps"]):
        yield gap["verdict"], _sequence_gap(gap)
    for gap in not_ok(log["offset_gaps"]):
        many = counted(gap["end"] - gap["start"], "offset")
        yield gap["verdict"], f"offsets [{gap['start']}, {gap['end']}) are missing: {many} ({gap['reason']})"  # fmt: skip
    for each in log["differences"]:
        yield each["verdict"], f"{each['path']}: {each['why']} ({each['kind']})"
    for problem in log["problems"]:
        at = "" if problem["position"] is None else f", byte {problem['position']:,}"
        yield NOT_READ, f"{problem['path']}{at}: {problem['why']}"


def not_ok(rows: Sequence[Row]) -> list[Row]:
    """Return the rows with another verdict than OK."""
    return [row for row in rows if row["verdict"] != "OK"]


def _sequence_gap(gap: Row) -> str:
    after = gap["after_offset"]
    where = "its first batch" if after is None else f"after offset {after}"
    return (
        f"producer {gap['producer_id']} epoch {gap['producer_epoch']}: sequence {gap['base_sequence']} at offset "
        f"{gap['offset']}, {where}, where {gap['expected_sequence']} was to come ({gap['reason']})"
    )
