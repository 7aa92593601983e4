"""What `log diff` prints for a person."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from collectors.naming import counted
from rules.log_files.histories import SENTENCES
from rules.log_files.missing import Fate
from rules.verdict import Verdict
from service.cli.terminal.parts import Facts, Line, Part, Row, Table, long, short
from service.views.log_diff.compared import Comparison
from service.views.log_diff.document import Result, Shown, transaction_rows
from service.views.log_diff.words import MEANINGS, limits, next_steps


def parts(result: Result) -> Iterator[Part]:
    """Yield a result for a person: partitions with something missing come first."""
    ordered = sorted(result.shown, key=lambda each: -int(each.comparison.verdict))
    for number, each in enumerate(ordered):
        if number:
            yield Line("")
        yield from _parts(each)
    yield from _files(result)
    if result.problems:
        yield Line("NOT READ")
        yield from (Line(f"  {problem}") for problem in result.problems)


def _files(result: Result) -> Iterator[Part]:
    if result.records_file is not None:
        written = [each.records for each in result.shown if each.records is not None]
        records = sum(each.records for each in written)
        yield Line(f"{counted(records, 'record')} written to {result.records_file}")
        for fate in Fate:
            left_out = sum(each.left_out[fate] for each in written)
            if left_out:
                yield Line(f"  left out: {left_out:,} {fate}: {MEANINGS[fate]}")
    if result.segment_file is not None:
        batches = sum(each.segment.batches for each in result.shown if each.segment is not None)
        yield Line(f"{counted(batches, 'batch')} written to {result.segment_file}, byte for byte")


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
    transactions = transaction_rows(comparison)
    if transactions:
        yield Table(columns=_TRANSACTIONS, rows=transactions)
    is_written = shown.records is not None
    steps = next_steps(comparison, is_written=is_written)
    for heading, lines in (("LIMITS", limits(comparison)), ("NEXT", steps)):
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
