"""Compares one partition of a former leader's copy with the new log: what of it is not there, and what became of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from collectors.log_files.copies import FileBatch, LogCopy
from collectors.wire.records import Record, read_batch
from rules.facts.identity import TopicPartition
from rules.log_files.contents import ContentMatches, Digest, digest_of
from rules.log_files.histories import DiffReason, NewLog, OldLog, Parting, part
from rules.log_files.missing import (
    OPEN_FATES,
    Fate,
    MissingBatch,
    MissingBatches,
    Outcome,
    proven_high_watermark,
)
from rules.verdict import Verdict
from service.cli.log.diff.sources import Batch, NewSource

MAX_RANGES: Final = 1000
COMPARABLE: Final = frozenset({Fate.LOST, Fate.NOT_COMPARED, *OPEN_FATES})


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
    def is_new_complete(self) -> bool:
        """Whether what was not found in the new log is not there."""
        has_all = self.matches is None or self.matches.is_complete
        return self.new_error is None and has_all and not self.unreadable_new

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
        if any(counts[fate] for fate in (*OPEN_FATES, Fate.NOT_READABLE)):
            return DiffReason.PERHAPS_MISSING
        is_whole = self.missing is None or (not self.missing.gaps and not self.copy.is_cut)
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

    def records(self) -> Iterator[MissingRecord | MissingBatch]:
        """Yield the records beyond the divergence, in order; a batch that cannot be read instead of its own."""
        for missing in () if self.missing is None else self.missing.batches:
            records = _read(FileBatch(missing.batch))
            if records is None:
                yield missing
                continue
            for record in records:
                if record.offset >= self.missing.divergence:  # type: ignore[union-attr]
                    yield self._record(missing, record)

    def _record(self, missing: MissingBatch, record: Record) -> MissingRecord:
        fate, again_at = self.fate_of(missing), missing.match_offset
        position = record.offset - missing.batch.base_offset
        if fate in COMPARABLE and self.matches is not None:
            seen_at = self.matches.offset_of(_digest(record))
            if seen_at is not None:
                fate, again_at = Fate.POSSIBLY_AGAIN, seen_at
        elif fate is Fate.AGAIN and again_at is not None:
            again_at += position
        base = missing.batch.base_sequence
        return MissingRecord(
            record=record,
            sequence=None if base is None else (base + position) % (1 << 31),
            missing=missing,
            fate=fate,
            again_at=again_at,
        )


def compare(
    name: TopicPartition,
    copy: LogCopy,
    source: NewSource,
    *,
    high_watermark: int | None = None,
    by_content: bool = False,
) -> Comparison:
    """Compare a copy with the new log.

    `high_watermark` is one that was seen of the old leader; with `by_content` records of equal content are found,
    which reads all of the new log behind the divergence, and not only its headers.

    Raises:
        UnreachableError: the new leader does not answer where leader epochs end.
    """
    new = source.describe([start.leader_epoch for start in copy.epochs])
    observed = (copy.log.high_watermark, high_watermark)
    old = OldLog(
        topic_id=copy.log.topic_id,
        epochs=copy.epochs,
        log_start=copy.log_start,
        log_end=copy.log_end,
        high_watermark=max((each for each in observed if each is not None), default=None),
        is_cut=copy.is_cut,
    )
    parting = part(old, new)
    comparison = Comparison(
        name=name,
        copy=copy,
        where_new=source.where,
        new=new,
        parting=parting,
        high_watermark=old.high_watermark,
    )
    if parting.reason is None and parting.offset is not None:
        _compare(comparison, source, parting.offset, by_content=by_content)
    return comparison


def _compare(
    comparison: Comparison, source: NewSource, divergence: int, *, by_content: bool
) -> None:
    copy = comparison.copy
    missing = MissingBatches(divergence=divergence, is_cut=copy.is_cut)
    missing.take_old(batch.header for batch in copy.batches(divergence))
    comparison.missing = missing
    comparison.high_watermark = proven_high_watermark([comparison.high_watermark], missing.batches)
    if by_content:
        comparison.matches = _contents(comparison)
    for batch in source.batches(divergence):
        missing.take_new(batch.header)
        _compare_content(comparison, batch)
    comparison.new_error = source.error()
    comparison.tally = _tally_by_header(comparison)


def _contents(comparison: Comparison) -> ContentMatches:
    """Return the contents of the records that may have been produced again."""
    matches = ContentMatches()
    for missing in () if comparison.missing is None else comparison.missing.batches:
        if missing.outcome is Outcome.ABORTED:
            continue
        for record in _read(FileBatch(missing.batch)) or ():
            matches.take_old(_digest(record))
    return matches


def _compare_content(comparison: Comparison, batch: Batch) -> None:
    if comparison.matches is None:
        return
    if batch.header.is_control:
        comparison.matches.take_marker(batch.header)
        return
    records = _read(batch)
    if records is None:
        comparison.unreadable_new += 1
        return
    contents = ((record.offset, _digest(record)) for record in records)
    comparison.matches.take_new(batch.header, contents)


def _tally_by_header(comparison: Comparison) -> Tally:
    tally = Tally()
    for missing in () if comparison.missing is None else comparison.missing.batches:
        batch, fate = missing.batch, comparison.fate_of(missing)
        start = max(batch.base_offset, comparison.missing.divergence)  # type: ignore[union-attr]
        tally.add(fate, start, batch.last_offset + 1, batch.record_count)
    return tally


def _read(batch: Batch) -> Sequence[Record] | None:
    """Return the records of a batch; None if they cannot be read."""
    content = batch.read()
    records = None if content is None else read_batch(content)
    return None if records is None or isinstance(records, str) else records


def _digest(record: Record) -> Digest:
    return digest_of(record.key, record.value, record.headers)
