"""What comparing one partition of a former leader's copy with the new log has found."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from collectors.log_files.copies import LogCopy
from collectors.wire.records import Record
from rules.facts.identity import TopicPartition
from rules.log_files.contents import ContentMatches
from rules.log_files.histories import INTERNAL_TOPICS, DiffReason, NewLog, Parting
from rules.log_files.missing import OPEN_FATES, Fate, MissingBatch, MissingBatches
from rules.verdict import Verdict

MAX_RANGES: Final = 1000


class ComparedBy(StrEnum):
    """What of the batches was compared."""

    HEADERS = "headers"
    CONTENT = "content"


@dataclass(frozen=True, slots=True, kw_only=True)
class MissingRecord:
    """A record beyond the place where the logs part, and what became of it."""

    record: Record
    sequence: int | None
    missing: MissingBatch
    fate: Fate
    again_at: int | None  # in the new log


@dataclass(slots=True, kw_only=True)
class FateRange:
    """Records that follow each other and have one fate; markers may lie among them."""

    fate: Fate
    from_offset: int
    to_offset: int  # exclusive
    records: int


@dataclass(slots=True)
class Tally:
    """How many records have which fate, and where."""

    counts: Counter[Fate] = field(default_factory=Counter)
    ranges: list[FateRange] = field(default_factory=list)
    is_cut: bool = False  # not all ranges are there

    def add(self, fate: Fate, start: int, end: int, records: int) -> None:
        """Add records of [start, end)."""
        self.counts[fate] += records
        if self.ranges and self.ranges[-1].fate is fate:
            self.ranges[-1].to_offset = end
            self.ranges[-1].records += records
        elif len(self.ranges) < MAX_RANGES:
            self.ranges.append(
                FateRange(fate=fate, from_offset=start, to_offset=end, records=records)
            )
        else:
            self.is_cut = True


@dataclass(slots=True, kw_only=True)
class Comparison:
    """What comparing one partition has found."""

    name: TopicPartition
    copy: LogCopy
    where_new: str
    new: NewLog
    parting: Parting
    missing: MissingBatches | None = None  # None: nothing was compared
    matches: ContentMatches | None = None  # None: only headers were compared
    high_watermark: int | None = None
    new_error: str | None = None  # why not all of the new log was compared
    unreadable_new: int = 0  # batches of the new log whose records were not compared
    tally: Tally = field(default_factory=Tally)
    error: str | None = None  # why the new log was not read at all

    @property
    def is_internal(self) -> bool:
        """Whether its records are the brokers' own, and not to be produced by anybody."""
        return self.name.topic in INTERNAL_TOPICS

    @property
    def is_new_complete(self) -> bool:
        """Whether what was not found in the new log is not there."""
        has_all = self.matches is None or self.matches.is_complete
        has_gaps = self.missing is not None and bool(self.missing.new_gaps)
        return self.new_error is None and has_all and not has_gaps and not self.unreadable_new

    @property
    def reason(self) -> DiffReason:
        """Why it ends as it does."""
        if self.parting.reason is not None:
            return self.parting.reason
        counts = self.tally.counts
        if counts[Fate.LOST]:
            return DiffReason.COMMITTED_MISSING
        if counts[Fate.NOT_COMPARED]:
            return DiffReason.NOT_COMPARED
        missing = self.missing
        is_all = missing is None or missing.stopped_at is None
        if not is_all or any(counts[fate] for fate in (*OPEN_FATES, Fate.NOT_READABLE)):
            return DiffReason.PERHAPS_MISSING
        is_whole = missing is None or not (missing.gaps or missing.is_cut or self.copy.is_cut)
        return DiffReason.NOTHING_LOST if is_whole else DiffReason.COPY_IS_CUT

    @property
    def verdict(self) -> Verdict:
        """Whether committed records are lost."""
        if self.reason is DiffReason.COMMITTED_MISSING:
            return Verdict.BREACH
        is_ok = self.reason in (DiffReason.NOTHING_MISSING, DiffReason.NOTHING_LOST)
        return Verdict.OK if is_ok else Verdict.UNKNOWN

    def fate_of(self, missing: MissingBatch) -> Fate:
        """Return what became of a batch, by its header."""
        return missing.fate(self.high_watermark, is_new_complete=self.is_new_complete)


@dataclass(slots=True, kw_only=True)
class Written:
    """What was written to a file."""

    records: int = 0
    batches: int = 0
    bytes: int = 0
    unreadable_batches: int = 0
    left_out: Counter[Fate] = field(default_factory=Counter)  # records
