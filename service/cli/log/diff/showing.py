"""What `log diff` prints: a document for programs, parts for a person."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from collectors.naming import counted
from rules.log_files.histories import SENTENCES
from rules.log_files.missing import OPEN_FATES, Fate, MissingBatch, Outcome
from rules.verdict import Verdict
from service.cli.log.diff.comparing import Comparison
from service.cli.log.diff.writing import Written
from service.cli.terminal.exit_codes import ExitCode
from service.cli.terminal.parts import Facts, Line, Part, Row, Table, long, short

MAX_TRANSACTIONS: Final = 1000
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """One comparison, and what of it was written."""

    comparison: Comparison
    records: Written | None = None
    segment: Written | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """All comparisons of a command, and the files that it wrote."""

    shown: Sequence[Shown]
    records_file: str | None = None
    segment_file: str | None = None
    fates: Sequence[Fate] = ()  # of the records in the file
    problems: Sequence[str] = field(default=())

    @property
    def exit_code(self) -> ExitCode:
        """What a script may conclude."""
        comparisons = [each.comparison for each in self.shown]
        may_be_lost = (Fate.LOST, Fate.NOT_READABLE, *OPEN_FATES)
        if any(each.tally.counts[fate] for each in comparisons for fate in may_be_lost):
            return ExitCode.LOST
        is_ok = all(each.verdict is Verdict.OK for each in comparisons)
        return ExitCode.OK if is_ok else ExitCode.INCOMPLETE

    def document(self) -> dict[str, Any]:
        """Return it for programs."""
        return {
            "partitions": [_partition(each) for each in self.shown],
            "records_file": self.records_file,
            "written_fates": [str(fate) for fate in self.fates] if self.records_file else [],
            "segment_file": self.segment_file,
            "problems": list(self.problems),
        }

    def parts(self) -> Iterator[Part]:
        """Yield it for a person: partitions with something missing come first."""
        ordered = sorted(self.shown, key=lambda each: -int(each.comparison.verdict))
        for number, each in enumerate(ordered):
            if number:
                yield Line("")
            yield from _parts(each)
        yield from self._files()
        if self.problems:
            yield Line("NOT READ")
            yield from (Line(f"  {problem}") for problem in self.problems)

    def _files(self) -> Iterator[Part]:
        if self.records_file is not None:
            written = [each.records for each in self.shown if each.records is not None]
            records = sum(each.records for each in written)
            yield Line(f"{counted(records, 'record')} written to {self.records_file}")
            for fate in Fate:
                left_out = sum(each.left_out[fate] for each in written)
                if left_out:
                    yield Line(f"  left out: {left_out:,} {fate}: {MEANINGS[fate]}")
        if self.segment_file is not None:
            batches = sum(each.segment.batches for each in self.shown if each.segment is not None)
            yield Line(f"{counted(batches, 'batch')} written to {self.segment_file}, byte for byte")


def _partition(shown: Shown) -> dict[str, Any]:
    comparison, missing = shown.comparison, shown.comparison.missing
    copy, new = comparison.copy, comparison.new
    return {
        "topic": comparison.name.topic,
        "partition": comparison.name.partition,
        "verdict": comparison.verdict.name.lower(),
        "reason": str(comparison.reason),
        "explanation": SENTENCES[comparison.reason],
        "error": comparison.error,
        "old": {
            "folder": copy.log.folder,
            "topic_id": copy.log.topic_id,
            "leader_epoch": copy.epochs[-1].leader_epoch if copy.epochs else None,
            "log_start_offset": copy.log_start,
            "log_end_offset": copy.log_end,
            "checkpointed_high_watermark": copy.log.high_watermark,
        },
        "new": {
            "where": comparison.where_new or None,
            "topic_id": new.topic_id,
            "leader_epoch": new.latest_epoch,
            "log_start_offset": new.log_start,
            "read_to": new.log_end,
        },
        "divergence_offset": comparison.parting.offset,
        "high_watermark": comparison.high_watermark,
        "compared_by": None if missing is None else _compared_by(comparison),
        "missing_offsets": None if missing is None else max(missing.end - missing.divergence, 0),
        "missing_batches": None if missing is None else len(missing.batches),
        "control_batches": None if missing is None else missing.control_batches,
        "records": {str(fate): comparison.tally.counts[fate] for fate in Fate},
        "ranges": [
            {
                "fate": str(each.fate),
                "from_offset": each.from_offset,
                "to_offset": each.to_offset,
                "records": each.records,
            }
            for each in comparison.tally.ranges
        ],
        "ranges_cut": comparison.tally.is_cut,
        "transactions": _transactions(comparison)[:MAX_TRANSACTIONS],
        "written_records": None if shown.records is None else shown.records.records,
        "left_out_records": None
        if shown.records is None
        else {str(fate): count for fate, count in shown.records.left_out.items()},
        "written_batches": None if shown.segment is None else shown.segment.batches,
        "limits": list(_limits(comparison)),
        "next_steps": list(_next_steps(shown)),
    }


def _compared_by(comparison: Comparison) -> str:
    return "headers" if comparison.matches is None else "content"


def _transactions(comparison: Comparison) -> list[dict[str, Any]]:
    """Return the transactions that have batches beyond the divergence, in the order of these."""
    rows: dict[tuple[int | None, ...], dict[str, Any]] = {}
    for missing in () if comparison.missing is None else comparison.missing.batches:
        batch = missing.batch
        if missing.outcome is Outcome.NONE:
            continue
        key = (batch.producer_id, batch.producer_epoch, missing.marker_offset)
        row = rows.setdefault(key, _transaction(missing))
        row["last_offset"] = batch.last_offset
        row["records"] += batch.record_count
        row["again_records"] += batch.record_count if missing.fate(None) is Fate.AGAIN else 0
    return list(rows.values())


def _transaction(missing: MissingBatch) -> dict[str, Any]:
    batch = missing.batch
    return {
        "producer_id": batch.producer_id,
        "producer_epoch": batch.producer_epoch,
        "outcome": str(missing.outcome),
        "first_offset": batch.base_offset,
        "last_offset": batch.last_offset,
        "records": 0,
        "again_records": 0,
        "marker_offset": missing.marker_offset,
        "marker_in": None
        if missing.marker_offset is None
        else ("new" if missing.is_marker_in_new else "old"),
    }


def _parts(shown: Shown) -> Iterator[Part]:
    comparison, missing = shown.comparison, shown.comparison.missing
    copy = comparison.copy
    verdict = comparison.verdict.name
    style = {Verdict.BREACH: "bold red", Verdict.UNKNOWN: "yellow", Verdict.OK: "green"}
    yield Line(
        [str(comparison.name), "  ", (f"{verdict} {comparison.reason}", style[comparison.verdict])]
    )
    yield Line(f"  {SENTENCES[comparison.reason]}")
    if comparison.error is not None:
        yield Line(f"  {comparison.error}")
    yield Facts(
        [
            ("copy", f"{copy.log.folder}, offsets {copy.log_start} to before {copy.log_end}"),
            ("new log", _new_log(comparison)),
            ("parts at", comparison.parting.offset),
            ("committed", _committed(comparison)),
            ("missing", None if missing is None else _missing(comparison)),
        ]
    )
    if comparison.tally.counts:
        yield Table(columns=_RANGES, rows=_range_rows(comparison))
    transactions = _transactions(comparison)
    if transactions:
        yield Table(columns=_TRANSACTIONS, rows=transactions)
    for heading, lines in (("LIMITS", _limits(comparison)), ("NEXT", _next_steps(shown))):
        sentences = list(lines)
        if sentences:
            yield Line(heading)
            yield from (Line(f"  {line}") for line in sentences)


def _marker(row: Row) -> str:
    if row["marker_offset"] is None:
        return "none"
    return f"{row['marker_offset']} of the {row['marker_in']} log"


_RANGES: Final = (
    short("FATE", "fate"),
    short("RECORDS", "records"),
    short("OFFSETS", "offsets"),
    long("WHAT IT MEANS", "meaning"),
)
_TRANSACTIONS: Final = (
    short("PRODUCER ID", "producer_id"),
    short("EPOCH", "producer_epoch"),
    short("TRANSACTION", "outcome"),
    short("FIRST OFFSET", "first_offset"),
    short("LAST OFFSET", "last_offset"),
    short("RECORDS", "records"),
    short("END MARKER", _marker),
)


def _range_rows(comparison: Comparison) -> list[dict[str, Any]]:
    return [
        {
            "fate": str(each.fate),
            "records": each.records,
            "offsets": f"{each.from_offset} to {each.to_offset - 1}",
            "meaning": MEANINGS[each.fate],
        }
        for each in comparison.tally.ranges
    ]


def _new_log(comparison: Comparison) -> str | None:
    if not comparison.where_new:
        return None
    new = comparison.new
    epoch = "none" if new.latest_epoch is None else new.latest_epoch
    return f"{comparison.where_new}, leader epoch {epoch}, offsets {new.log_start} to before {new.log_end}"


def _committed(comparison: Comparison) -> str:
    offset = comparison.high_watermark
    return "not known" if offset is None else f"at least what lies before offset {offset}"


def _missing(comparison: Comparison) -> str:
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


def _limits(comparison: Comparison) -> Iterator[str]:
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
        batches = counted(comparison.unreadable_new, "batch of the new log")
        yield f"Not compared by content, because their records cannot be read: {batches}."
    if comparison.matches is not None and not comparison.matches.is_complete:
        yield "The copy has more records than are compared by content."
    if missing.stopped_at is not None:
        yield f"The copy has more batches than are compared: those from offset {missing.stopped_at} on are left out."
    for start, end in missing.gaps[:MAX_GAPS]:
        yield (
            f"The copy has no batch with the offsets {start} to {end - 1}: a segment is missing or damaged, or a "
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


def _next_steps(shown: Shown) -> Iterator[str]:
    comparison = shown.comparison
    counts = comparison.tally.counts
    if not any(counts[fate] for fate in (Fate.LOST, *OPEN_FATES)):
        return
    yield (
        "Wait until the producers' delivery.timeout.ms (2 minutes by default) is over since the leader changed: until "
        "then they may send records again. Then run this once more; it reads the new log up to its end at that time."
    )
    if shown.records is None:
        yield "Add --records FILE, which compares the content too, and writes what is certainly lost."
    else:
        yield (
            "With the owner of the data, produce the records of the file again, each once, to the same partition: "
            "docs/log-files.md has a program for it. What was left out is a person's decision: --include."
        )
