"""Distinguishes commits that went back from commits that were deleted and recreated.

A group that is deleted and created again within a round has lower commits, as after a reset. In
`__consumer_offsets` the deletion leaves a tombstone of the commit before the new one. That topic is
read only if a commit is lower than in the last round, from the end of its partition two rounds ago.
It needs READ on the topic: without it, or if too much was written, no deletion is reported.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from collectors.offset_plan import UNFENCED
from collectors.offset_record import CommitName, commit_name, committed_offset
from collectors.range_fetch import fetch_body
from collectors.session import Build, Request, Session
from collectors.state_topic import partition_of
from collectors.wire import codec
from collectors.wire.api import FETCH, READ_UNCOMMITTED
from collectors.wire.failure import Failure
from collectors.wire.records import Record, read_records
from rules.facts.column import Column, Int64s
from rules.facts.commit_keys import CommitKeys
from rules.facts.groups import Commits, Group
from rules.facts.identity import CONSUMER_OFFSETS, Broker
from rules.facts.offsets import Offsets
from rules.facts.partitions import Partitions

FETCH_BYTES: Final = 2 * 1024 * 1024
MAX_SCANS: Final = 4  # at one partition
MAX_PARTITIONS: Final = 16  # in one round; deletions on the others are not reported


@dataclass(slots=True)
class _Range:
    """The records written to one partition of the topic since it ended at `position`."""

    number: int
    leader: Broker
    leader_epoch: int
    position: int
    end: int
    records: list[Record] = field(default_factory=list)

    @property
    def is_read(self) -> bool:
        return self.position >= self.end


@dataclass(slots=True)
class CommitDeletionReader:
    """Remembers the commits of the last round, and where the topic ended in the last two."""

    _keys: CommitKeys | None = None
    _committed: Int64s = field(default_factory=lambda: np.zeros(0, np.int64))
    _ends: Mapping[int, int] = field(default_factory=dict)
    _older_ends: Mapping[int, int] = field(default_factory=dict)

    def collect(
        self,
        session: Session,
        partitions: Partitions,
        groups: Sequence[Group],
        commits: Commits,
        offsets: Offsets,
    ) -> frozenset[int]:
        """Return the positions of the commits that were deleted and recreated since the last round."""
        names = tuple(group.group_id for group in groups)
        lower = self._find_lower(partitions, groups, commits)
        ends = _ends(partitions, offsets)
        lower_commits = {
            place: (
                names[int(commits.group[place])],
                partitions.index.topic_partition(int(commits.row[place])),
            )
            for place in lower
        }
        anew = self._find_recreated(session, partitions, offsets, set(lower_commits.values()), ends)
        self._keys = CommitKeys(
            partitions=partitions, group_ids=names, group=commits.group, row=commits.row
        )
        self._committed = commits.committed_offset
        self._ends, self._older_ends = ends, self._ends
        return frozenset(place for place, name in lower_commits.items() if name in anew)

    def _find_lower(
        self, partitions: Partitions, groups: Sequence[Group], commits: Commits
    ) -> list[int]:
        if self._keys is None:
            return []
        places = self._keys.find(partitions, groups, commits, needs_id=True)
        before = Column.known(self._committed).take(places)
        lower: list[int] = np.flatnonzero(
            before.valid & (commits.committed_offset < before.values)
        ).tolist()
        return lower

    def _find_recreated(
        self,
        session: Session,
        partitions: Partitions,
        offsets: Offsets,
        names: set[CommitName],
        ends: Mapping[int, int],
    ) -> set[CommitName]:
        count = _count(partitions)
        if not names or not count:
            return set()
        numbers = sorted({partition_of(group, count) for group, _ in names})[:MAX_PARTITIONS]
        pieces = [self._range(session, partitions, offsets, number, ends) for number in numbers]
        ranges = [piece for piece in pieces if piece is not None]
        for _ in range(MAX_SCANS):
            _fetch(session, [piece for piece in ranges if not piece.is_read])
        records = [record for piece in ranges if piece.is_read for record in piece.records]
        return find_recreated(records) & names

    def _range(
        self,
        session: Session,
        partitions: Partitions,
        offsets: Offsets,
        number: int,
        ends: Mapping[int, int],
    ) -> _Range | None:
        row = partitions.index.row(CONSUMER_OFFSETS, number)
        start = self._older_ends.get(number, self._ends.get(number))
        leader = None if row is None else session.broker(partitions.leader[row])
        if row is None or start is None or leader is None or number not in ends:
            return None
        epoch = offsets.leader_epoch[row]
        fence = UNFENCED if epoch is None else epoch
        return _Range(number, leader, fence, start, ends[number])


def find_recreated(records: Iterable[Record]) -> set[CommitName]:
    """Return the commits that these records delete and recreate, and that have only gone forward since."""
    last: dict[CommitName, int] = {}
    anew: set[CommitName] = set()
    for record in records:
        name = commit_name(record.key)
        if name is None:
            continue
        if record.value is None:
            anew.add(name)
            last.pop(name, None)
            continue
        offset = committed_offset(record.value)
        if offset is None:
            continue
        if offset < last.get(name, offset):
            anew.discard(name)  # it went back by itself
        last[name] = offset
    return anew & last.keys()


def _count(partitions: Partitions) -> int:
    """Return the number of partitions of the topic; 0 if the round does not read it."""
    position = partitions.index.position_of_topic.get(CONSUMER_OFFSETS)
    if position is None:
        return 0
    return int(np.diff(partitions.index.starts[position : position + 2])[0])


def _ends(partitions: Partitions, offsets: Offsets) -> dict[int, int]:
    """Return the high watermarks of the topic's partitions that could be read."""
    rows = {
        number: partitions.index.row(CONSUMER_OFFSETS, number)
        for number in range(_count(partitions))
    }
    ends = {
        number: None if row is None else offsets.high_watermark[row] for number, row in rows.items()
    }
    return {number: end for number, end in ends.items() if end is not None}


def _fetch(session: Session, ranges: Sequence[_Range]) -> None:
    """Fetch once from each partition."""
    requests = [Request(piece.leader, FETCH, _body(piece)) for piece in ranges]
    for piece, response in zip(ranges, session.exchange(requests), strict=True):
        answer = response.read_without_error()
        if isinstance(answer, Failure):
            continue
        for entry in (entry for topic in answer.responses for entry in topic.partitions):
            if int(entry.error_code) != codec.NO_ERROR:
                continue
            record_set = read_records(bytes(entry.records or b""))
            if record_set.next_offset is None or record_set.unreadable:
                continue
            piece.records += record_set.since(piece.position).records
            piece.position = max(piece.position, record_set.next_offset)


def _body(piece: _Range) -> Build:
    partition = {
        "partition": piece.number,
        "current_leader_epoch": piece.leader_epoch,
        "fetch_offset": piece.position,
        "partition_max_bytes": FETCH_BYTES,
    }
    return fetch_body([(CONSUMER_OFFSETS, partition)], READ_UNCOMMITTED, max_bytes=FETCH_BYTES)
