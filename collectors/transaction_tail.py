"""Requests to the leaders of `__transaction_state`: the ends of partitions, and their new records.

The Fetch is read_uncommitted. Coordinators write without transactions, so that nothing here is ever
undecided; with read_committed, a hanging transaction of another client in this topic would hold back
the reading. Nothing above the high watermark is returned either way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from collectors.naming import grouped
from collectors.offset_plan import TIMEOUT_MS, UNFENCED
from collectors.range_fetch import fetch_body
from collectors.session import Build, Request, Session
from collectors.transaction_endings import MAX_REMEMBERED, Endings
from collectors.translate import (
    OFFSET_OUT_OF_RANGE,
    TOPIC_AUTHORIZATION_FAILED,
    failure_of,
    present,
)
from collectors.wire import blocks, codec
from collectors.wire.api import FETCH, LIST_OFFSETS, READ_UNCOMMITTED, Api
from collectors.wire.blocks import HIGH_WATERMARK, TopicRequest
from collectors.wire.failure import Failure
from collectors.wire.records import RecordSet, read_records
from rules.facts.gap import GapCause
from rules.facts.identity import TRANSACTION_STATE, Broker

# Of one answer: large enough for 10,000 records, small enough for one per leader in memory.
FETCH_BYTES: Final = 2 * 1024 * 1024
_Body = Callable[[Sequence["Tail"]], Build]
_LEADERS: Final = f"the leaders of {TRANSACTION_STATE}"
CUT_SHORT: Final = Failure(
    GapCause.GONE, "the log was truncated or recreated below what was read: begun again at its end"
)
_CROWDED: Final = Failure(
    GapCause.LIMIT,
    f"more than {MAX_REMEMBERED:,} transactions were open on one: how the oldest end, and where "
    "their markers are, will not be seen",
)


@dataclass(slots=True, kw_only=True)
class Tail:
    """One partition: how far it was read, and the state of this round."""

    number: int
    position: int | None = None  # next offset to read; absent: start at the end
    last_epoch: int | None = None  # leader epoch of the last batch that was read
    endings: Endings = field(default_factory=Endings)
    # Of this round.
    leader: Broker | None = None
    leader_epoch: int | None = None
    high_watermark: int | None = None
    advanced: int = 0  # offsets
    failure: Failure | None = None  # ends the reading of this round
    lost: Failure | None = None  # something is missing, and reading went on

    def begin_round(self, leader: Broker | None, leader_epoch: int | None) -> None:
        """Forget the state of the last round, and take over the present leader."""
        self.leader, self.leader_epoch = leader, leader_epoch
        self.high_watermark, self.advanced = None, 0
        self.failure = self.lost = None
        self.endings.dropped = 0
        self.endings.coordinator = None if leader is None else leader.broker_id

    def start_at(self, offset: int | None) -> None:
        """Move to an offset (None: to the end, wherever that is), skipping what is not read."""
        self.position, self.last_epoch = offset, None
        self.endings.restart()

    @property
    def failures(self) -> list[Failure]:
        """Everything that is missing from this round."""
        crowded = _CROWDED if self.endings.dropped else None
        return [failure for failure in (self.failure, self.lost, crowded) if failure is not None]

    @property
    def behind(self) -> int:
        """Offsets that are there and not read, as far as this round knows."""
        if self.position is None or self.high_watermark is None:
            return 0
        return max(self.high_watermark - self.position, 0)

    @property
    def is_due(self) -> bool:
        """Whether to fetch: nothing failed, and there may be more to read."""
        if self.failure is not None or self.position is None:
            return False
        return self.high_watermark is None or self.behind > 0

    def __str__(self) -> str:
        return f"{TRANSACTION_STATE}-{self.number}"


def find_ends(session: Session, tails: Sequence[Tail]) -> None:
    """Move each of these tails to the end of its partition, all leaders in parallel."""
    for leader, led, answer in _exchange(session, LIST_OFFSETS, _ends_body, tails):
        entries = [entry for topic in answer.topics for entry in topic.partitions]
        by_number = {int(entry.partition_index): entry for entry in entries}
        for tail in led:
            entry = by_number.get(tail.number)
            code = codec.NO_ERROR if entry is None else int(entry.error_code)
            end = present(int(entry.offset)) if entry is not None else None
            if code != codec.NO_ERROR:
                tail.failure = failure_of(
                    code, leader, needs=f"DESCRIBE on Topic {TRANSACTION_STATE}"
                )
            elif end is None:
                tail.failure = _incomplete(leader)
            else:
                tail.start_at(end)


def fetch(session: Session, tails: Sequence[Tail]) -> Iterator[tuple[Tail, RecordSet]]:
    """Fetch once from each tail, all leaders in parallel; yield the records and move on.

    The partitions of a leader share its answer in equal parts, so that a busy one leaves space.
    """
    for leader, led, answer in _exchange(session, FETCH, _fetch_body, tails):
        entries = [entry for topic in answer.responses for entry in topic.partitions]
        by_number = {int(entry.partition_index): entry for entry in entries}
        for tail in led:
            entry = by_number.get(tail.number)
            if entry is None:
                tail.failure = _incomplete(leader)
                continue
            record_set = _take(tail, leader, entry)
            if record_set is not None:
                yield tail, record_set


def _take(tail: Tail, leader: Broker, entry: Any) -> RecordSet | None:
    code = int(entry.error_code)
    if code == OFFSET_OUT_OF_RANGE or int(entry.diverging_epoch.end_offset) >= 0:
        tail.start_at(None)
        tail.failure = CUT_SHORT
        return None
    if code != codec.NO_ERROR:
        # A permission is missing at all leaders: the same failure for all makes one gap.
        source = _LEADERS if code == TOPIC_AUTHORIZATION_FAILED else leader
        tail.failure = failure_of(code, source, needs=f"READ on Topic {TRANSACTION_STATE}")
        return None
    tail.high_watermark = int(entry.high_watermark)
    record_set = read_records(bytes(entry.records or b""))
    if (
        record_set.next_offset is None
        or tail.position is None
        or record_set.next_offset <= tail.position
    ):
        return None
    offsets = record_set.next_offset - tail.position
    record_set = record_set.since(tail.position)
    lost = _lost(record_set, offsets)
    if lost is not None:
        tail.lost = lost
        tail.endings.restart()
    tail.advanced += offsets
    tail.position, tail.last_epoch = record_set.next_offset, record_set.leader_epoch
    return record_set


def _lost(record_set: RecordSet, offsets: int) -> Failure | None:
    """Return why there are fewer records than offsets, None if not; the topic has no markers."""
    if record_set.unreadable:
        return Failure(GapCause.UNREADABLE, f"a batch {record_set.unreadable[0].why}")
    if len(record_set.records) < offsets:
        return Failure(GapCause.GONE, "a part was compacted before it was read")
    return None


def _exchange(
    session: Session, api: Api, body: _Body, tails: Sequence[Tail]
) -> Iterator[tuple[Broker, list[Tail], Any]]:
    """Send one request to each leader for its tails; without an answer all of them fail."""
    by_leader = grouped((tail.leader, tail) for tail in tails if tail.leader is not None)
    requests = [Request(leader, api, body(led)) for leader, led in by_leader.items()]
    for response, led in zip(session.exchange(requests), by_leader.values(), strict=True):
        answer = response.read_without_error()
        if isinstance(answer, Failure):
            for tail in led:
                tail.failure = answer
        else:
            yield response.request.broker, led, answer


def _incomplete(leader: Broker) -> Failure:
    return Failure(GapCause.UNREADABLE, f"{leader} did not answer for all requested partitions")


def _fence(tail: Tail) -> int:
    return UNFENCED if tail.leader_epoch is None else tail.leader_epoch


def _ends_body(tails: Sequence[Tail]) -> Build:
    request = TopicRequest(
        TRANSACTION_STATE,
        np.array([tail.number for tail in tails], np.int64),
        np.array([_fence(tail) for tail in tails], np.int64),
    )
    return lambda version: blocks.list_offsets_body(
        [request], HIGH_WATERMARK, version=version, timeout_ms=TIMEOUT_MS
    )


def _fetch_body(tails: Sequence[Tail]) -> Build:
    """Request from the positions on; a leader whose log diverges there answers so (KIP-595)."""
    partitions = (
        (
            TRANSACTION_STATE,
            {
                "partition": tail.number,
                "current_leader_epoch": _fence(tail),
                "fetch_offset": tail.position,
                "last_fetched_epoch": UNFENCED if tail.last_epoch is None else tail.last_epoch,
                "partition_max_bytes": FETCH_BYTES // len(tails),
            },
        )
        for tail in tails
    )
    return fetch_body(partitions, READ_UNCOMMITTED, max_bytes=FETCH_BYTES)
