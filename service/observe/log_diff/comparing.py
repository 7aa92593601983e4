"""Compares one partition of a former leader's copy with the new log: what of it is not there, and what became of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from collectors.log_files.copies import FileBatch, LogCopy
from collectors.wire.records import Record, read_batch
from rules.errors import NotThereError, UnreachableError
from rules.facts.identity import TopicPartition
from rules.facts.log_folders import PartitionLog
from rules.facts.rejections import SEQUENCES
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
from service.observe.log_diff.sources import Batch, Find, NewSource
from service.views.log_diff.compared import Comparison, MissingRecord, Tally

COMPARABLE: Final = frozenset({Fate.LOST, Fate.NOT_COMPARED, *OPEN_FATES})
_NO_LOG: Final = NewLog(topic_id=None, latest_epoch=None, log_start=0, log_end=0)


def compare_all(
    copies: Mapping[TopicPartition, PartitionLog], find: Find, **options: Any
) -> Iterator[Comparison]:
    """Yield a comparison for each partition; one that cannot be read costs nothing of the others."""
    for name, log in copies.items():
        copy = LogCopy.of(log)
        try:
            yield compare(name, copy, find(name), **options)
        except NotThereError as exc:
            yield _without_new(name, copy, DiffReason.NOT_IN_NEW, str(exc))
        except UnreachableError as exc:
            yield _without_new(name, copy, DiffReason.NOT_READ, str(exc))


def _without_new(name: TopicPartition, copy: LogCopy, reason: DiffReason, error: str) -> Comparison:
    return Comparison(
        name=name,
        copy=copy,
        where_new="",
        new=_NO_LOG,
        parting=Parting(None, reason),
        high_watermark=copy.log.high_watermark,
        error=error,
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
        _compare(comparison, source, parting.offset, is_cut=old.ends_early, by_content=by_content)
    return comparison


def _compare(
    comparison: Comparison, source: NewSource, divergence: int, *, is_cut: bool, by_content: bool
) -> None:
    copy = comparison.copy
    # What lies before the log start was deleted, as by DeleteRecords. Where the first segment begins is no proof of it.
    start = max(divergence, copy.log.log_start_offset or 0)
    missing = MissingBatches(divergence=start, is_cut=is_cut)
    missing.take_old(batch.header for batch in copy.batches(start))
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
    for missing in _batches(comparison):
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
    for missing in _batches(comparison):
        batch, fate = missing.batch, comparison.fate_of(missing)
        start = max(batch.base_offset, comparison.missing.divergence)  # type: ignore[union-attr]
        tally.add(fate, start, batch.last_offset + 1, batch.record_count)
    return tally


def missing_records(comparison: Comparison) -> Iterator[MissingRecord | MissingBatch]:
    """Yield the records beyond the divergence, in order; a batch that cannot be read instead of its own."""
    divergence = 0 if comparison.missing is None else comparison.missing.divergence
    for missing in _batches(comparison):
        records = _read(FileBatch(missing.batch))
        if records is None:
            yield missing
            continue
        for record in records:
            if record.offset >= divergence:
                yield _record(comparison, missing, record)


def _record(comparison: Comparison, missing: MissingBatch, record: Record) -> MissingRecord:
    fate, again_at = comparison.fate_of(missing), missing.match_offset
    position = record.offset - missing.batch.base_offset
    if fate in COMPARABLE and comparison.matches is not None:
        seen_at = comparison.matches.offset_of(_digest(record))
        if seen_at is not None:
            fate, again_at = Fate.POSSIBLY_AGAIN, seen_at
    elif fate is Fate.AGAIN and again_at is not None:
        again_at += position
    base = missing.batch.base_sequence
    return MissingRecord(
        record=record,
        sequence=None if base is None else (base + position) % SEQUENCES,
        missing=missing,
        fate=fate,
        again_at=again_at,
    )


def _batches(comparison: Comparison) -> Sequence[MissingBatch]:
    return () if comparison.missing is None else comparison.missing.batches


def _read(batch: Batch) -> Sequence[Record] | None:
    """Return the records of a batch; None if they cannot be read."""
    content = batch.read()
    records = None if content is None else read_batch(content)
    return None if records is None or isinstance(records, str) else records


def _digest(record: Record) -> Digest:
    return digest_of(record.key, record.value, record.headers)
