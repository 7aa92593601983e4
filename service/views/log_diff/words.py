"""What a comparison means, what it could not see, and what to do next, in words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from collectors.naming import counted
from rules.log_files.missing import OPEN_FATES, Fate
from service.views.log_diff.compared import Comparison

MAX_GAPS: Final = 20
MEANINGS: Final[Mapping[Fate, str]] = {
    Fate.LOST: "committed, visible to read_committed, and not in the new log",
    Fate.BEYOND_HIGH_WATERMARK: "not in the new log; whether they were committed is not known",
    Fate.NOT_COMPARED: "committed; not all of the new log could be read, and they may be there again",
    Fate.POSSIBLY_AGAIN: "the new log has records of equal content: possibly produced again",
    Fate.SEQUENCE_REUSED: "the new log has their producer id, epoch and sequence, with other bytes",
    Fate.UNDECIDED: "of a transaction without an end marker in either log",
    Fate.ABORTED: "of an aborted transaction: no read_committed consumer would have got them",
    Fate.AGAIN: "not lost: the producer sent the same batch again, and the new log has it",
    Fate.NOT_READABLE: "cannot be read: the batch is damaged, or its codec is not known",
}


def limits(comparison: Comparison) -> Iterator[str]:
    """Yield what this comparison could not see."""
    missing = comparison.missing
    if missing is None:
        return
    if comparison.matches is None:
        yield (
            "Only headers were compared. What a producer sent again under another producer id or epoch is not "
            "recognized by them: --compare content finds records of equal content."
        )
    yield from _high_watermark_limit(comparison)
    if comparison.new_error is not None:
        yield f"The new log was not read to its end: {comparison.new_error}"
    if comparison.unreadable_new:
        batches = f"{comparison.unreadable_new:,}"
        yield f"Batches of the new log whose records cannot be read, and are not compared by content: {batches}."
    if comparison.matches is not None and not comparison.matches.is_complete:
        yield "The copy has more records than are compared by content."
    if missing.stopped_at is not None:
        yield f"The copy has more batches than are compared: those from offset {missing.stopped_at} on are left out."
    for log, gaps in (("copy", missing.gaps), ("new log", missing.new_gaps)):
        for start, end in gaps[:MAX_GAPS]:
            yield (
                f"The {log} has no batch with the offsets {start} to {end - 1}: a segment is missing or damaged, or a "
                "compaction removed them."
            )
    yield from (f"Not read: {problem}" for problem in comparison.copy.problems[:MAX_GAPS])
    if comparison.copy.log.is_cleaned:
        yield (
            "The topic is compacted: the new log may have had records again that are removed by now, and a record "
            "that is produced again replaces a newer one of its key."
        )


def _high_watermark_limit(comparison: Comparison) -> Iterator[str]:
    if not comparison.tally.counts[Fate.BEYOND_HIGH_WATERMARK]:
        return
    if comparison.high_watermark is None:
        yield (
            "What was committed is not known: copy `replication-offset-checkpoint` beside the folder, or name a high "
            "watermark that was seen with --high-watermark (`certain_to` of `tidemark loss show`)."
        )
        return
    yield (
        f"That what lies before offset {comparison.high_watermark} was committed is proven; brokers note it every 5 s "
        "only. A higher one that was seen is named with --high-watermark (`certain_to` of `tidemark loss show`)."
    )


def next_steps(comparison: Comparison, written: int | None) -> Iterator[str]:
    """Yield what to do about records that may have to be produced again.

    `written` is how many of them the file has, None without a file: where it has none, nothing may be produced from it.
    """
    counts = comparison.tally.counts
    if not any(counts[fate] for fate in (Fate.LOST, *OPEN_FATES)):
        return
    if comparison.is_internal:
        yield (
            "Nobody produces these records again: only brokers write to this topic, and --records leaves them out. "
            "tidemark log inspect decodes what the copy has: commits of groups, or transactions."
        )
        return
    yield (
        "Wait until the producers' delivery.timeout.ms (2 minutes by default) is over since the leader changed: until "
        "then they may send records again. Then run this once more; it reads the new log up to its end at that time."
    )
    if written is None:
        yield "Add --records FILE, which compares the content too, and writes what is certainly lost."
        return
    if written:
        yield (
            "With the owner of the data, produce the records of the file again, each once, to the same partition: "
            "docs/log-files.md has a program for it. In a compacted topic it replaces a newer record of its key."
        )
    else:
        yield "Produce nothing again: no record of this partition is proven to be lost, and the file has none of it."
    if counts[Fate.POSSIBLY_AGAIN]:
        yield (
            "Records of equal content are in the new log: if somebody has produced them again, they are back, and "
            "a second time would duplicate them."
        )
    if any(counts[fate] for fate in OPEN_FATES):
        yield "What was left out is for the owner of the data to decide; --include writes it."


def range_rows(comparison: Comparison) -> list[dict[str, Any]]:
    """Return the rows of the table of fates."""
    return [
        {
            "fate": str(each.fate),
            "records": each.records,
            "offsets": f"{each.from_offset} to {each.to_offset - 1}",
            "meaning": MEANINGS[each.fate],
        }
        for each in comparison.tally.ranges
    ]


def new_log(comparison: Comparison) -> str | None:
    """Return where the new log is and what it has; None if there is none."""
    if not comparison.where_new:
        return None
    new = comparison.new
    epoch = "none" if new.latest_epoch is None else new.latest_epoch
    return f"{comparison.where_new}, leader epoch {epoch}, offsets {new.log_start} to before {new.log_end}"


def committed_part(comparison: Comparison) -> str:
    """Return what is proven to be committed."""
    offset = comparison.high_watermark
    return "not known" if offset is None else f"at least what lies before offset {offset}"


def missing_part(comparison: Comparison) -> str:
    """Return how much of the copy the new log lacks."""
    missing = comparison.missing
    if missing is None:
        return ""
    records = sum(comparison.tally.counts.values())
    offsets = max(missing.end - missing.divergence, 0)
    return (
        f"{counted(offsets, 'offset')}, {missing.divergence} to {missing.end - 1}: "
        f"{counted(records, 'record')} in {len(missing.batches):,} batches, "
        f"{missing.control_batches:,} control batches"
    )
