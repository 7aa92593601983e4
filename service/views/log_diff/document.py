"""The document of `log diff`, and the rows of its tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from rules.log_files.histories import SENTENCES
from rules.log_files.missing import OPEN_FATES, Fate, MissingBatch, Outcome
from rules.verdict import Verdict
from service.views.log_diff.compared import ComparedBy, Comparison, Written
from service.views.log_diff.words import limits, next_steps

MAX_TRANSACTIONS: Final = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """One comparison, and what of it was written."""

    comparison: Comparison
    records: Written | None = None
    segment: Written | None = None

    @property
    def written(self) -> int | None:
        """Return how many records were written; None without a file for them."""
        return None if self.records is None else self.records.records


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """All comparisons of a command, and the files that it wrote."""

    shown: Sequence[Shown]
    records_file: str | None = None
    segment_file: str | None = None
    fates: Sequence[Fate] = ()  # of the records in the file

    @property
    def problems(self) -> list[str]:
        """What of the copies' small files cannot be read."""
        return [
            str(problem) for each in self.shown for problem in each.comparison.copy.log.problems
        ]

    @property
    def may_be_lost(self) -> bool:
        """Whether a record is lost, or may be."""
        fates = (Fate.LOST, Fate.NOT_READABLE, *OPEN_FATES)
        tallies = [each.comparison.tally.counts for each in self.shown]
        return any(counts[fate] for counts in tallies for fate in fates)

    @property
    def is_ok(self) -> bool:
        """Whether nothing is lost, for certain."""
        return all(each.comparison.verdict is Verdict.OK for each in self.shown)

    def document(self) -> dict[str, Any]:
        """Return it for programs."""
        return {
            "partitions": [_partition(each) for each in self.shown],
            "records_file": self.records_file,
            "written_fates": [str(fate) for fate in self.fates] if self.records_file else [],
            "segment_file": self.segment_file,
            "problems": self.problems,
        }


def _partition(shown: Shown) -> dict[str, Any]:
    comparison = shown.comparison
    return {
        "topic": comparison.name.topic,
        "partition": comparison.name.partition,
        "verdict": comparison.verdict.name.lower(),
        "reason": str(comparison.reason),
        "explanation": SENTENCES[comparison.reason],
        "error": comparison.error,
        **_logs(comparison),
        "divergence_offset": comparison.parting.offset,
        "high_watermark": comparison.high_watermark,
        **_missing(comparison),
        "transactions": transaction_rows(comparison)[:MAX_TRANSACTIONS],
        **_written(shown),
        "limits": list(limits(comparison)),
        "next_steps": list(next_steps(comparison, shown.written)),
    }


def _logs(comparison: Comparison) -> dict[str, Any]:
    """Return both logs."""
    copy, new = comparison.copy, comparison.new
    return {
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
    }


def _missing(comparison: Comparison) -> dict[str, Any]:
    """Return what the new log lacks; null where nothing was compared."""
    missing, tally = comparison.missing, comparison.tally
    by = ComparedBy.HEADERS if comparison.matches is None else ComparedBy.CONTENT
    return {
        "compared_by": None if missing is None else by.value,
        "missing_offsets": None if missing is None else max(missing.end - missing.divergence, 0),
        "missing_batches": None if missing is None else len(missing.batches),
        "control_batches": None if missing is None else missing.control_batches,
        "records": {str(fate): tally.counts[fate] for fate in Fate},
        "ranges": [
            {
                "fate": str(each.fate),
                "from_offset": each.from_offset,
                "to_offset": each.to_offset,
                "records": each.records,
            }
            for each in tally.ranges
        ],
        "ranges_cut": tally.is_cut,
    }


def _written(shown: Shown) -> dict[str, Any]:
    """Return what files got of it; null without a file."""
    records, segment = shown.records, shown.segment
    left_out = None if records is None else {str(f): n for f, n in records.left_out.items()}
    return {
        "written_records": shown.written,
        "left_out_records": left_out,
        "written_batches": None if segment is None else segment.batches,
    }


def transaction_rows(comparison: Comparison) -> list[dict[str, Any]]:
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
