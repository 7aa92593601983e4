"""Fetches batch headers of short offset ranges, many partitions in one request.

A broker sends a batch that is larger than asked only for the first partition of a Fetch that holds
any; the others come back empty. Such ranges are asked again by themselves.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Final

from collectors.session import Ask, Session
from collectors.translate import failure_of
from collectors.wire import codec
from collectors.wire.api import FETCH, READ_COMMITTED
from collectors.wire.batches import AbortedTransaction, BatchHeader, holds_records, read_headers
from collectors.wire.failure import Failure
from rules.facts.identity import Broker, TopicPartition

ALONE_PER_LEADER: Final = 10  # an answer for one range alone may hold a batch of a megabyte


@dataclass(frozen=True, slots=True, kw_only=True)
class Reach:
    """How much one scan takes."""

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
    end: int  # exclusive; where commits are asked about, the last stable offset
    starts: list[int] = field(default_factory=list)  # committed offsets that are asked about
    headers: list[BatchHeader] = field(default_factory=list)
    aborted: list[AbortedTransaction] = field(default_factory=list)
    failure: Failure | None = None
    came_empty: bool = False  # the last answer held nothing: ask by itself

    def include(self, committed: int) -> None:
        """Ask about one more committed offset."""
        self.starts.append(committed)
        self.position = min(self.position, committed)

    def holds_records(self, committed: int) -> bool | None:
        """Say whether a reader at `committed` would get anything, None while that is not known."""
        if self.failure is not None:
            return None
        return holds_records(self.headers, self.aborted, start=committed, end=self.end)

    def clear_until(self, committed: int) -> int:
        """Return the offset up to which it is sure that a reader at `committed` gets nothing.

        Looking may go on there: the broker lists what was aborted from the fetched offset on.
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
    """Scan once at each range, side by side over all leaders; a partition has one range."""
    batches = _batches(ranges, reach.ranges_per_request)
    asks = [Ask(batch[0].leader, FETCH, _Request(batch, reach)) for batch in batches]
    for batch, reply in zip(batches, session.exchange(asks), strict=True):
        answer = reply.read()
        if not isinstance(answer, Failure) and int(answer.error_code) != codec.NO_ERROR:
            answer = failure_of(int(answer.error_code), reply.ask.broker)
        if isinstance(answer, Failure):
            for found in batch:
                found.failure = answer
        else:
            _take_answer(batch, answer)


def _batches(ranges: Sequence[Range], most: int) -> list[list[Range]]:
    together: dict[int, list[Range]] = {}
    alone: dict[int, list[Range]] = {}
    for found in ranges:
        side = alone if found.came_empty else together
        side.setdefault(found.leader.broker_id, []).append(found)
    batches = [
        members[start : start + most]
        for members in together.values()
        for start in range(0, len(members), most)
    ]
    single = [[found] for members in alone.values() for found in members[:ALONE_PER_LEADER]]
    return batches + single


def _take_answer(batch: Sequence[Range], answer: Any) -> None:
    by_name = {found.name: found for found in batch}
    for topic in answer.responses:
        for partition in topic.partitions:
            name = TopicPartition(topic.topic, int(partition.partition_index))
            found = by_name.get(name)
            if found is not None:
                _take(found, partition)


def _take(found: Range, partition: Any) -> None:
    code = int(partition.error_code)
    if code != codec.NO_ERROR:
        needs = f"READ on Topic {found.name.topic}"
        found.failure = failure_of(code, found.leader, needs=needs)
        return
    headers = read_headers(bytes(partition.records or b""))
    found.came_empty = not headers
    found.headers += headers
    found.aborted += [
        AbortedTransaction(int(entry.producer_id), int(entry.first_offset))
        for entry in partition.aborted_transactions or ()
    ]
    if headers:
        found.position = headers[-1].last_offset + 1


@dataclass(frozen=True, slots=True)
class _Request:
    """Builds the Fetch for some ranges of one leader."""

    ranges: Sequence[Range]
    reach: Reach

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
                partition_max_bytes=self.reach.partition_bytes,
            )
            by_topic.setdefault(found.name.topic, []).append(entry)
        return codec.encode(
            request(
                max_wait=timedelta(0),
                min_bytes=0,
                isolation_level=self.reach.isolation,
                topics=tuple(topic(topic=t, partitions=tuple(p)) for t, p in by_topic.items()),
                forgotten_topics_data=(),
            )
        )
