"""Answers `nothing_to_read`: whether a read_committed reader would get anything more.

A group that has read everything on a transactional topic still has lag: markers and aborted records
use offsets too. One bounded Fetch of batch headers from the committed offset on tells the
difference. It needs READ on the topic; without it the answer stays unknown.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any, Final

import numpy as np

from collectors.naming import listed
from collectors.session import Ask, Session
from collectors.translate import failure_of
from collectors.wire import codec
from collectors.wire.api import FETCH
from collectors.wire.batches import AbortedTransaction, BatchHeader, holds_records, read_headers
from collectors.wire.failure import Failure
from rules.facts.column import Bools, Column
from rules.facts.gap import GapCause
from rules.facts.groups import Commits
from rules.facts.identity import Broker, TopicPartition
from rules.facts.offsets import Offsets
from rules.facts.partitions import Partitions

MAX_LAG: Final = 10  # a larger lag is judged by its growth, not by looking into the log
MAX_FETCHES: Final = 3  # per partition and round; a range that needs more stays unknown
PARTITION_BYTES: Final = 4096  # a broker sends one whole batch even when it is larger
READ_COMMITTED: Final = 1
"""Isolation level of the Fetch: the answer then ends at the LSO and lists aborted transactions."""


@dataclass(slots=True)
class _Range:
    """The offsets of one partition to look at, and what was found so far."""

    row: int
    name: TopicPartition
    leader: Broker
    leader_epoch: int
    position: int  # next offset to fetch
    end: int  # the last stable offset, exclusive
    headers: list[BatchHeader] = field(default_factory=list)
    aborted: list[AbortedTransaction] = field(default_factory=list)
    is_settled: bool = False


def collect(
    session: Session, partitions: Partitions, offsets: Offsets, commits: Commits, ask: Bools
) -> Commits:
    """Return the commits with `nothing_to_read` filled in where it can be known.

    A lag of zero is true without asking. `ask` marks the commits to look into; of these only lags
    up to `MAX_LAG` are.
    """
    lag = commits.read_committed_lag(offsets)
    small = ask & lag.valid & (lag.values > 0) & (lag.values <= MAX_LAG)
    ranges = _ranges(session, partitions, offsets, commits, small)
    for _ in range(MAX_FETCHES):
        open_ranges = [found for found in ranges.values() if not found.is_settled]
        if not open_ranges:
            break
        _fetch(session, open_ranges)
    answers: list[int | None] = [None] * len(commits)
    for position in np.flatnonzero(lag.valid & (lag.values == 0)).tolist():
        answers[position] = 1
    for position in np.flatnonzero(small).tolist():
        found = ranges.get(int(commits.row[position]))
        if found is not None:
            answers[position] = _judge(found, int(commits.committed_offset[position]))
    return replace(commits, nothing_to_read=Column.of(answers))


def _judge(found: _Range, committed: int) -> int | None:
    has_records = holds_records(found.headers, found.aborted, start=committed, end=found.end)
    return None if has_records is None else int(not has_records)


def _ranges(
    session: Session, partitions: Partitions, offsets: Offsets, commits: Commits, small: Bools
) -> dict[int, _Range]:
    """Return one range per partition: from the lowest of its small-lag commits to the LSO."""
    ranges: dict[int, _Range] = {}
    for position in np.flatnonzero(small).tolist():
        row, committed = int(commits.row[position]), int(commits.committed_offset[position])
        leader_id, end = partitions.leader[row], offsets.last_stable_offset[row]
        epoch = offsets.leader_epoch[row]
        leader = session.broker(leader_id) if leader_id is not None else None
        if leader is None or end is None or epoch is None:
            continue
        name = partitions.index.topic_partition(row)
        fresh = _Range(row, name, leader, epoch, committed, end)
        known = ranges.setdefault(row, fresh)
        known.position = min(known.position, committed)
    return ranges


# ------------------------------------------------------------------ fetching
def _fetch(session: Session, ranges: Sequence[_Range]) -> None:
    per_leader: dict[int, list[_Range]] = {}
    for found in ranges:
        per_leader.setdefault(found.leader.broker_id, []).append(found)
    asks = [Ask(found[0].leader, FETCH, _Request(found)) for found in per_leader.values()]
    for members, reply in zip(per_leader.values(), session.exchange(asks), strict=True):
        answer = reply.read()
        if not isinstance(answer, Failure) and int(answer.error_code) != codec.NO_ERROR:
            answer = failure_of(int(answer.error_code), reply.ask.broker)
        if isinstance(answer, Failure):
            _give_up(session, members, answer)
        else:
            _take_answer(session, members, answer)


def _take_answer(session: Session, members: Sequence[_Range], answer: Any) -> None:
    by_name = {found.name: found for found in members}
    refused: dict[int, list[_Range]] = {}
    for topic in answer.responses:
        for partition in topic.partitions:
            found = by_name[TopicPartition(topic.topic, int(partition.partition_index))]
            code = int(partition.error_code)
            if code != codec.NO_ERROR:
                refused.setdefault(code, []).append(found)
            else:
                _take(found, partition)
    for code, ranges in refused.items():
        topics = listed(sorted({found.name.topic for found in ranges}))
        failure = failure_of(code, ranges[0].leader)
        if failure.cause is GapCause.NOT_AUTHORIZED:
            failure = replace(failure, why=f"{failure.why}: needs READ on Topic {topics}")
        _give_up(session, ranges, failure)


def _take(found: _Range, partition: Any) -> None:
    headers = read_headers(bytes(partition.records or b""))
    found.headers += headers
    found.aborted += [
        AbortedTransaction(int(entry.producer_id), int(entry.first_offset))
        for entry in partition.aborted_transactions or ()
    ]
    if headers:
        found.position = headers[-1].last_offset + 1
    found.is_settled = not headers or found.position >= found.end


def _give_up(session: Session, ranges: Sequence[_Range], failure: Failure) -> None:
    for found in ranges:
        found.is_settled = True
    names = listed([str(found.name) for found in ranges])
    session.add_gap(f"whether there is anything to read on {names}", failure)


@dataclass(frozen=True, slots=True)
class _Request:
    """Builds the Fetch for some ranges of one leader."""

    ranges: Sequence[_Range]

    def __call__(self, version: int) -> bytes:
        partition = codec.message(FETCH, version, "FetchPartition")
        topic = codec.message(FETCH, version, "FetchTopic")
        request = codec.message(FETCH, version, "FetchRequest")
        by_topic: dict[str, list[Any]] = {}
        for found in self.ranges:
            entry = partition(
                partition=found.name.partition,
                current_leader_epoch=found.leader_epoch,
                fetch_offset=found.position,
                partition_max_bytes=PARTITION_BYTES,
            )
            by_topic.setdefault(found.name.topic, []).append(entry)
        return codec.encode(
            request(
                max_wait=timedelta(0),
                min_bytes=0,
                isolation_level=READ_COMMITTED,
                topics=tuple(topic(topic=t, partitions=tuple(p)) for t, p in by_topic.items()),
                forgotten_topics_data=(),
            )
        )
