"""Follows the records of `__transaction_state` and `__consumer_offsets` through their segments.

Commits of a transaction count once its marker says commit, as the coordinator itself does it.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from collectors.log_files.record_reading import read_records_of
from collectors.offset_record import CommitName, decode_commit, other_type
from collectors.transaction_record import RecordUnreadableError, TransactionRecord, decode
from collectors.wire.records import Record
from rules.facts.coordinator_logs import WrittenCommit, WrittenState
from rules.facts.identity import CONSUMER_OFFSETS, TRANSACTION_STATE, TopicPartition
from rules.facts.log_files import BatchBlock, ControlType, FileProblem, LogBatch, ProblemKind

KEPT_STATES: Final = 50  # of a transactional id: the last ones
UNKNOWN_KIND: Final = "Unknown"  # of a newer broker


@dataclass(slots=True)
class StatesOfId:
    """The records of one transactional id."""

    record_count: int = 0
    states: deque[WrittenState] = field(default_factory=lambda: deque(maxlen=KEPT_STATES))


@dataclass(slots=True)
class CommitsOfName:
    """The commits of a group for one partition."""

    last: WrittenCommit
    record_count: int = 0


@dataclass(slots=True)
class CoordinatorRecords:
    """What was read so far."""

    topic: str
    ids: dict[str, StatesOfId] = field(default_factory=dict)
    commits: dict[CommitName, CommitsOfName] = field(default_factory=dict)
    others: Counter[str] = field(default_factory=Counter)
    _pending: dict[int, list[WrittenCommit]] = field(default_factory=dict)  # by producer id

    def add(self, path: Path, block: BatchBlock) -> Iterator[FileProblem]:
        """Add the records of batches, and yield what of them cannot be read."""
        for part in read_records_of(path, block):
            if isinstance(part, FileProblem):
                yield part
                continue
            batch, records = part
            if batch.is_control:
                self._end(batch)
            for record in records:
                try:
                    self._add(batch, record)
                except RecordUnreadableError as exc:
                    yield _unreadable(batch, record, exc)

    def _add(self, batch: LogBatch, record: Record) -> None:
        if self.topic == TRANSACTION_STATE:
            self._add_state(record)
        else:
            self._add_commit(batch, record)

    def _add_state(self, record: Record) -> None:
        decoded = decode(record.key, record.value, record.timestamp_ms)
        if decoded is None:
            self.others[UNKNOWN_KIND] += 1
            return
        states = self.ids.setdefault(decoded.transactional_id, StatesOfId())
        states.record_count += 1
        states.states.append(_state(decoded, record.offset))

    def _add_commit(self, batch: LogBatch, record: Record) -> None:
        commit = decode_commit(record.key, record.value)
        if commit is None:
            self.others[other_type(record.key) or UNKNOWN_KIND] += 1
            return
        written = WrittenCommit(
            group=commit.group,
            name=commit.name,
            committed_offset=commit.committed_offset,
            leader_epoch=commit.leader_epoch,
            committed_ms=commit.committed_ms,
            offset=record.offset,
            is_transactional=batch.is_transactional,
        )
        if batch.is_transactional and batch.producer_id is not None:
            self._pending.setdefault(batch.producer_id, []).append(written)
        else:
            self._commit([written])

    def _end(self, marker: LogBatch) -> None:
        pending = self._pending.pop(-1 if marker.producer_id is None else marker.producer_id, [])
        if marker.control is not None and marker.control.type is ControlType.COMMIT:
            self._commit(pending)

    def _commit(self, commits: Sequence[WrittenCommit]) -> None:
        for commit in commits:
            key = commit.group, commit.name
            of_name = self.commits.setdefault(key, CommitsOfName(commit))
            of_name.last = commit
            of_name.record_count += 1


def coordinator_records(name: TopicPartition | None) -> CoordinatorRecords | None:
    """Return a reader for a partition of the coordinators' topics; None for another partition."""
    if name is None or name.topic not in (TRANSACTION_STATE, CONSUMER_OFFSETS):
        return None
    return CoordinatorRecords(name.topic)


def _state(record: TransactionRecord, offset: int) -> WrittenState:
    value = record.value
    if value is None:
        return WrittenState(offset=offset, at_ms=record.written_ms, state=None)
    return WrittenState(
        offset=offset,
        at_ms=value.last_update_ms,
        state=value.state,
        producer_id=value.producer_id,
        producer_epoch=value.producer_epoch,
        timeout_ms=value.timeout_ms,
        started_ms=value.start_ms,
        partitions=tuple(
            TopicPartition(topic, number)
            for topic, numbers in value.partitions or ()
            for number in numbers
        ),
    )


def _unreadable(batch: LogBatch, record: Record, error: Exception) -> FileProblem:
    return FileProblem(
        kind=ProblemKind.BAD_RECORD,
        path=batch.path,
        position=batch.position,
        end=batch.position + batch.size,
        why=f"the record at offset {record.offset} cannot be decoded: {error}",
    )
