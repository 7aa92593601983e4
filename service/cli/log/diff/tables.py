"""What `log diff` prints for a person."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from collectors.naming import counted
from rules.log_files.histories import SENTENCES
from rules.log_files.missing import Fate
from rules.verdict import Verdict
from service.terminal.parts import Facts, Line, Part, Row, Table, long, short
from service.views.log_diff.document import Result, Shown, transaction_rows
from service.views.log_diff.words import (
    MEANINGS,
    committed_part,
    limits,
    missing_part,
    new_log,
    next_steps,
    range_rows,
)


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
        words = "1 batch" if batches == 1 else f"{batches:,} batches"
        yield Line(f"{words} written to {result.segment_file}, byte for byte")


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
            ("new log", new_log(comparison)),
            ("parts at", comparison.parting.offset),
            ("committed", committed_part(comparison)),
            ("missing", None if missing is None else missing_part(comparison)),
        ]
    )
    if comparison.tally.counts:
        yield Table(columns=_RANGES, rows=range_rows(comparison))
    transactions = transaction_rows(comparison)
    if transactions:
        yield Table(columns=_TRANSACTIONS, rows=transactions)
    steps = next_steps(comparison, shown.written)
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
    short("fate"),
    short("records"),
    short("offsets"),
    long("what it means", "meaning"),
)
_TRANSACTIONS: Final = (
    short("producer", "producer_id"),
    short("epoch", "producer_epoch"),
    short("transaction", "outcome"),
    short("first offset", "first_offset"),
    short("last offset", "last_offset"),
    short("records"),
    short("end marker", _marker),
)
