"""Fetches batch headers of short offset ranges, many partitions in one request.

A broker exceeds the requested size only for the first non-empty partition of a Fetch; others whose
next batch is larger come back empty. Such ranges are fetched again, fewer together with more space for each,
and those that come back empty once more each in a request of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any, Final

from collectors.naming import chunks, grouped
from collectors.session import Build, Request, Session, body_of
from collectors.translate import failure_of
from collectors.wire import codec
from collectors.wire.api import FETCH, READ_COMMITTED
from collectors.wire.batches import AbortedTransaction, BatchHeader, holds_records, read_headers
from collectors.wire.failure import Failure
from rules.facts.identity import Broker, TopicPartition

ALONE_PER_LEADER: Final = 10  # an answer for one range alone may hold a batch of a megabyte
# Times as much space for each range: more than the batches that clients send by default.
WIDER: Final = 8
WIDE_PER_LEADER: Final = 4  # requests


@dataclass(frozen=True, slots=True, kw_only=True)
class Reach:
    """Size of one scan."""

    isolation: int
    partition_bytes: int
    ranges_per_request: int


# So that an answer stays near a megabyte.
SHORT: Final = Reach(isolation=READ_COMMITTED, partition_bytes=4096, ranges_per_request=250)


@dataclass(slots=True, kw_only=True)
class Range:
    """The offsets of one partition to scan, and what was found so far."""

    name: TopicPartition
    leader: Broker
    leader_epoch: int
    position: int  # next offset to fetch
    end: int  # exclusive; for commits, the last stable offset
    starts: list[int] = field(default_factory=list)  # committed offsets to decide on
    headers: list[BatchHeader] = field(default_factory=list)
    aborted: list[AbortedTransaction] = field(default_factory=list)
    failure: Failure | None = None
    empty_answers: int = 0  # in a row: fetch with more space, then in a request of its own

    def include(self, committed: int) -> None:
        """Add a committed offset to decide on."""
        self.starts.append(committed)
        self.position = min(self.position, committed)

    def holds_records(self, committed: int) -> bool | None:
        """Whether a reader at `committed` would get a record, None while that is unknown."""
        if self.failure is not None:
            return None
        return holds_records(self.headers, self.aborted, start=committed, end=self.end)

    def clear_until(self, committed: int) -> int:
        """Return the offset up to which a reader at `committed` certainly gets nothing.

        A later scan may begin there: the broker lists aborted transactions from the fetched offset on.
        """
        end = min(self.position, self.end)
        holds = holds_records(self.headers, self.aborted, start=committed, end=end)
        return max(committed, end) if holds is False else committed

    @property
    def is_settled(self) -> bool:
        """Whether nothing more has to be fetched."""
        if self.failure is not None or self.position >= self.end:
            return True
        return all(self.holds_records(committed) is not None for committed in self.starts)


def fetch(session: Session, ranges: Sequence[Range], reach: Reach = SHORT) -> None:
    """Fetch once from each range, all leaders in parallel; a partition has one range."""
    batches = _batches(ranges, reach)
    requests = [Request(batch[0].leader, FETCH, _body(batch, size)) for batch, size in batches]
    for (batch, _), response in zip(batches, session.exchange(requests), strict=True):
        answer = response.read_without_error()
        if isinstance(answer, Failure):
            for piece in batch:
                piece.failure = answer
        else:
            _take_answer(batch, answer)


def _batches(ranges: Sequence[Range], reach: Reach) -> list[tuple[Sequence[Range], Reach]]:
    """Return what one request fetches each, with its size."""
    few = max(reach.ranges_per_request // WIDER, 1)
    wide = replace(reach, partition_bytes=WIDER * reach.partition_bytes, ranges_per_request=few)
    sizes = (
        (reach, reach.ranges_per_request, len(ranges)),
        (wide, few, few * WIDE_PER_LEADER),
        (reach, 1, ALONE_PER_LEADER),
    )
    batches: list[tuple[Sequence[Range], Reach]] = []
    for empty_answers, (size, together, most) in enumerate(sizes):
        due = (piece for piece in ranges if min(piece.empty_answers, 2) == empty_answers)
        by_leader = grouped((piece.leader.broker_id, piece) for piece in due)
        for members in by_leader.values():
            batches += [(part, size) for part in chunks(members[:most], together)]
    return batches


def _take_answer(batch: Sequence[Range], answer: Any) -> None:
    by_name = {piece.name: piece for piece in batch}
    for topic in answer.responses:
        for partition in topic.partitions:
            name = TopicPartition(topic.topic, int(partition.partition_index))
            piece = by_name.get(name)
            if piece is not None:
                _take(piece, partition)


def _take(piece: Range, partition: Any) -> None:
    code = int(partition.error_code)
    if code != codec.NO_ERROR:
        needs = f"READ on Topic {piece.name.topic}"
        piece.failure = failure_of(code, piece.leader, needs=needs)
        return
    headers = read_headers(bytes(partition.records or b""))
    piece.empty_answers = 0 if headers else piece.empty_answers + 1
    piece.headers += headers
    piece.aborted += [
        AbortedTransaction(int(entry.producer_id), int(entry.first_offset))
        for entry in partition.aborted_transactions or ()
    ]
    if headers:
        piece.position = headers[-1].last_offset + 1


def _body(ranges: Sequence[Range], reach: Reach) -> Build:
    partitions = (
        (
            piece.name.topic,
            {
                "partition": piece.name.partition,
                "current_leader_epoch": piece.leader_epoch,
                "fetch_offset": piece.position,
                "partition_max_bytes": reach.partition_bytes,
            },
        )
        for piece in ranges
    )
    return fetch_body(partitions, reach.isolation)


def fetch_body(
    partitions: Iterable[tuple[str, Mapping[str, Any]]], isolation: int, **limits: int
) -> Build:
    """Return a Fetch that waits for nothing, of partitions with their topics."""
    topics = [{"topic": name, "partitions": parts} for name, parts in grouped(partitions).items()]
    return body_of(
        FETCH,
        max_wait=timedelta(0),
        min_bytes=0,
        isolation_level=isolation,
        topics=topics,
        forgotten_topics_data=(),
        **limits,
    )
