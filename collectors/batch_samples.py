"""Samples the newest batches of some partitions whose log grew: headers only, at most a megabyte in a round.

Each broker gets at most one Fetch in a round. It answers the first partition that has something with a whole
batch, however large, and all others within the sizes that are requested. So a partition whose batches are
known to be small comes first; while a broker has none, it is queried alone, with all of the round's bytes.
Partitions take turns, those that waited longest first; one with a batch beyond a round's bytes is left out. Needs
READ on the topics; without it, there is a gap.
Of `__consumer_offsets`, the keys of commits are read too: they name the group.
Source: Fetch with isolation read_uncommitted, `ReplicaManager.readFromLog` of the broker (order and sizes).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from collectors.naming import grouped, summarize
from collectors.offset_record import commit_name
from collectors.range_fetch import fetch_body
from collectors.sampled_writers import markers_of, writers_of
from collectors.session import Request, Session
from collectors.translate import TOPIC_AUTHORIZATION_FAILED, failure_of, timestamp_of
from collectors.wire import codec
from collectors.wire.api import FETCH, READ_UNCOMMITTED
from collectors.wire.batches import read_all_headers, split_batches
from collectors.wire.failure import Failure
from collectors.wire.records import read_records
from rules.facts.batch_samples import BatchSamples, CommitSample, PartitionSample
from rules.facts.column import Bools, Int64s
from rules.facts.gap import GapScope
from rules.facts.identity import CONSUMER_OFFSETS, Broker, TopicPartition
from rules.facts.matching import matching_rows
from rules.facts.offsets import Offsets
from rules.facts.partitions import Partitions

# Bytes of records in all answers of a round: a mebibyte without the framing.
ROUND_BYTES: Final = 960 * 1024
PARTITION_BYTES: Final = 20 * 1024  # more than the 16 KiB of a Java producer's batch by default
# Offsets before the end: a sample is of now, and not of all that was written since the last one.
NEWEST: Final = 64
MAX_PARTITIONS: Final = 120  # in a round, over all brokers
MAX_DUE: Final = 4000  # partitions among which a round chooses, those that waited longest
DENIED_FOR: Final = 30  # rounds, after which a topic without READ is tried again
_UNKNOWN: Final = -1  # bytes of a batch


@dataclass(slots=True, eq=False)
class _Progress:
    """How far each partition was sampled; one value per row."""

    partitions: Partitions
    sampled_to: Int64s
    turn: Int64s  # the round of its last turn, 0: none yet
    largest: Int64s  # bytes of the largest batch of the last sample, `_UNKNOWN` before it
    is_large: Bools  # its next batch did not fit behind those of other partitions

    @classmethod
    def first(cls, partitions: Partitions, ends: Int64s) -> _Progress:
        """Return that nothing is to be sampled before the logs grow beyond these ends."""
        zeros = np.zeros(len(partitions), np.int64)
        return cls(partitions, ends.copy(), zeros, zeros + _UNKNOWN, zeros > 0)

    def on_to(self, partitions: Partitions) -> _Progress:
        """Return the progress by other rows; a partition that is new is sampled from its beginning."""
        rows = matching_rows(partitions, self.partitions, needs_id=False)
        same = np.flatnonzero(rows >= 0)
        newer = _Progress.first(partitions, np.zeros(len(partitions), np.int64))
        for name in ("sampled_to", "turn", "largest", "is_large"):
            getattr(newer, name)[same] = getattr(self, name)[rows[same]]
        return newer


@dataclass(frozen=True, slots=True)
class _Batch:
    """What one request fetches: rows in the order in which the broker serves them."""

    leader: Broker
    rows: tuple[int, ...]
    max_bytes: int


@dataclass(slots=True)
class BatchSampler:
    """Samples partitions in turn, and remembers how far."""

    _progress: _Progress | None = None
    _round: int = 0
    _was_alone: bool = False  # the last round queried one broker with all of its bytes
    # Topic without READ -> the round in which it was tried last.
    _denied: dict[str, int] = field(default_factory=dict)

    def collect(self, session: Session, partitions: Partitions, offsets: Offsets) -> BatchSamples:
        """Return what this round samples; the first one only notes where the logs end."""
        self._round += 1
        progress = self._move_to(partitions, offsets)
        due = self._due(session, progress, offsets)
        batches = self._plan(session, progress, due)
        requests = [self._request(batch, progress, offsets) for batch in batches]
        taken = _Taken(progress, self._round, self._denied)
        for batch, response in zip(batches, session.exchange(requests), strict=True):
            answer = response.read_without_error()
            if not isinstance(answer, Failure):
                taken.take(batch, answer, offsets)
        self._add_gap(session, partitions)
        planned = sum(len(batch.rows) for batch in batches)
        return BatchSamples(
            is_read=True,
            partitions=tuple(taken.samples),
            commits=tuple(taken.commits),
            denied_topics=tuple(sorted(self._denied)),
            waiting=len(due) - planned,
            sampled_bytes=taken.sampled_bytes,
            requests=len(requests),
        )

    def _move_to(self, partitions: Partitions, offsets: Offsets) -> _Progress:
        """Carry the progress to the rows of this round; a truncated log ends below what was sampled."""
        ends = offsets.high_watermark
        here = np.where(ends.valid, ends.values, np.iinfo(np.int64).max)
        progress = self._progress
        if progress is None:
            progress = _Progress.first(partitions, here)
        elif progress.partitions is not partitions:
            progress = progress.on_to(partitions)
        np.minimum(progress.sampled_to, here, out=progress.sampled_to)
        self._progress = progress
        return progress

    def _due(self, session: Session, progress: _Progress, offsets: Offsets) -> Int64s:
        """Return the rows whose log grew, those first that waited longest."""
        partitions = progress.partitions
        ends = offsets.high_watermark
        grew = ends.valid & (ends.values > progress.sampled_to) & offsets.leader_epoch.valid
        usable = [b.broker_id for b in session.brokers if b.broker_id not in session.unanswered]
        grew &= partitions.leader.valid & np.isin(partitions.leader.values, usable)
        grew &= progress.largest <= ROUND_BYTES
        grew &= self._mark_sampled(partitions)[partitions.index.topic_of_row]
        rows = np.flatnonzero(grew)
        due: Int64s = rows[np.argsort(progress.turn[rows], kind="stable")].astype(np.int64)
        return due[:MAX_DUE]

    def _mark_sampled(self, partitions: Partitions) -> Bools:
        """Mark the topics that are sampled: none without READ, of the internal ones that of commits."""
        denied = {
            topic for topic, tried in self._denied.items() if self._round - tried < DENIED_FOR
        }
        names = zip(partitions.index.topics, partitions.internal, strict=True)
        return np.array(
            [
                name not in denied and (name == CONSUMER_OFFSETS or not inner)
                for name, inner in names
            ],
            np.bool_,
        )

    def _plan(self, session: Session, progress: _Progress, due: Int64s) -> list[_Batch]:
        """Return a request per broker with a partition that can come first, or one request alone."""
        by_leader = grouped(
            (int(progress.partitions.leader.values[row]), row) for row in due.tolist()
        )
        if not by_leader:
            return []
        share = ROUND_BYTES // len(by_leader)
        most = max(MAX_PARTITIONS // len(by_leader), 1)
        firsts = {leader: _first(progress, rows, share) for leader, rows in by_leader.items()}
        guarded = {leader: first for leader, first in firsts.items() if first is not None}
        alone = next((row for row in due.tolist() if not _is_small(progress, row, share)), None)
        is_alone = alone is not None and (not guarded or not self._was_alone)
        if is_alone and alone is not None:
            guarded = {int(progress.partitions.leader.values[alone]): alone}
            share, most = ROUND_BYTES, MAX_PARTITIONS
        self._was_alone = is_alone
        return [
            _Batch(broker, _ordered(progress, first, by_leader[leader], most), share)
            for leader, first in guarded.items()
            if (broker := session.broker(leader)) is not None
        ]

    def _request(self, batch: _Batch, progress: _Progress, offsets: Offsets) -> Request:
        parts = (
            (
                progress.partitions.index.topic_partition(row).topic,
                {
                    "partition": progress.partitions.index.topic_partition(row).partition,
                    "current_leader_epoch": int(offsets.leader_epoch.values[row]),
                    "fetch_offset": _start(progress, offsets, row),
                    "partition_max_bytes": PARTITION_BYTES,
                },
            )
            for row in batch.rows
        )
        body = fetch_body(parts, READ_UNCOMMITTED, max_bytes=batch.max_bytes)
        return Request(batch.leader, FETCH, body)

    def _add_gap(self, session: Session, partitions: Partitions) -> None:
        """Add one gap for all topics without READ; a rare failure of another kind costs one turn only."""
        here = partitions.index.position_of_topic
        self._denied = {name: tried for name, tried in self._denied.items() if name in here}
        if self._denied:
            names = sorted(self._denied)
            failure = failure_of(
                TOPIC_AUTHORIZATION_FAILED, "Fetch", needs=f"READ on Topic {names[0]}"
            )
            what = f"samples of the batches of {summarize(names, 'topic')}"
            session.add_gap(GapScope.BATCH_SAMPLES, what, failure)


@dataclass(slots=True)
class _Taken:
    """What the answers of one round hold; notes the progress."""

    progress: _Progress
    round: int
    denied: dict[str, int]
    samples: list[PartitionSample] = field(default_factory=list)
    commits: list[CommitSample] = field(default_factory=list)
    sampled_bytes: int = 0

    def take(self, batch: _Batch, answer: Any, offsets: Offsets) -> None:
        """Take one broker's answer."""
        by_name = {
            (entry.topic, int(part.partition_index)): part
            for entry in answer.responses
            for part in entry.partitions
        }
        used = 0
        for row in batch.rows:
            name = self.progress.partitions.index.topic_partition(row)
            part = by_name.get((name.topic, name.partition))
            if part is None:
                continue
            records = bytes(part.records or b"")
            if int(part.error_code) != codec.NO_ERROR:
                self._note_error(row, name, int(part.error_code))
            elif records:
                self.denied.pop(name.topic, None)
                self._note(row, name, records, offsets)
            elif used + PARTITION_BYTES <= batch.max_bytes:
                self.progress.turn[row], self.progress.is_large[row] = self.round, True
            used += len(records)
        self.sampled_bytes += used

    def _note_error(self, row: int, name: TopicPartition, code: int) -> None:
        self.progress.turn[row] = self.round
        if code == TOPIC_AUTHORIZATION_FAILED:
            self.denied[name.topic] = self.round

    def _note(self, row: int, name: TopicPartition, records: bytes, offsets: Offsets) -> None:
        start, end = _start(self.progress, offsets, row), int(offsets.high_watermark.values[row])
        headers = [header for header in read_all_headers(records) if header.last_offset >= start]
        self.progress.turn[row] = self.round
        if not headers:
            return
        self.progress.largest[row] = max(header.size for header in headers)
        self.progress.is_large[row] = False
        sampled_to = min(headers[-1].last_offset + 1, end)
        self.progress.sampled_to[row] = sampled_to
        if name.topic == CONSUMER_OFFSETS:
            self.commits += commits_of(records, start)
            return
        self.samples.append(
            PartitionSample(
                row=row,
                sampled_from=max(headers[0].base_offset, start),
                sampled_to=sampled_to,
                writers=writers_of(headers),
                markers=markers_of(headers),
            )
        )


def _start(progress: _Progress, offsets: Offsets, row: int) -> int:
    """Return where the sample of a row begins."""
    newest = int(offsets.high_watermark.values[row]) - NEWEST
    return max(newest, int(progress.sampled_to[row]), offsets.log_start_offset[row] or 0)


def _is_small(progress: _Progress, row: int, share: int) -> bool:
    """Whether a partition can come first in a request of `share` bytes, as far as its last sample shows."""
    return not progress.is_large[row] and _UNKNOWN < progress.largest[row] <= share


def _first(progress: _Progress, rows: Sequence[int], share: int) -> int | None:
    """Return what comes first in a request: a partition that fits nowhere else, if one is due."""
    fitting = [row for row in rows if _is_small(progress, row, share)]
    wider = (row for row in fitting if progress.largest[row] > PARTITION_BYTES)
    return next(wider, fitting[0] if fitting else None)


def _ordered(progress: _Progress, first: int, rows: Sequence[int], most: int) -> tuple[int, ...]:
    """Return `first`, then others that may fit behind it, topic by topic, as a request lists them."""
    others = [
        row
        for row in rows
        if row != first and not progress.is_large[row] and progress.largest[row] <= PARTITION_BYTES
    ]
    index = progress.partitions.index
    chosen = [first, *others[: most - 1]]
    by_topic = grouped((index.topic_partition(row).topic, row) for row in chosen)
    return tuple(row for own in by_topic.values() for row in own)


def commits_of(records: bytes, start: int) -> Iterator[CommitSample]:
    """Yield the commits in a piece of `__consumer_offsets`; a deleted one is none."""
    for header, batch in split_batches(records):
        if header.is_control:
            continue
        for record in read_records(batch).since(start).records:
            name = commit_name(record.key)
            if name is not None and record.value is not None:
                yield CommitSample(
                    group_id=name[0],
                    name=name[1],
                    offset=record.offset,
                    producer_id=header.producer_id if header.is_transactional else None,
                    record_at=None
                    if record.timestamp_ms is None
                    else timestamp_of(record.timestamp_ms),
                )
