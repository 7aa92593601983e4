"""Logs of partitions, as a leader answers Fetch and ListOffsets over them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from kio.schema.errors import ErrorCode

from collectors.batches import BatchReader
from collectors.wire.api import FETCH, LIST_OFFSETS, Api
from collectors.wire.failure import Failure
from rules.facts.batches import BatchesOf
from rules.facts.gap import Gap
from rules.facts.identity import Broker, TopicPartition
from rules.facts.offsets import Offsets
from rules.facts.producers import Producers
from rules.question import BatchesQuestion, BatchRequest
from tests.factories import broker, no_producers, offsets, partitions
from tests.unit.collectors.scripted_pool import scripted
from tests.unit.collectors.wire.messages import NO_THROTTLE, answer, list_offsets_answer, part
from tests.unit.collectors.wire.records import Batch

ME = broker(1)
NOBODY = -1
NOT_LEADER, OUT_OF_RANGE, READ_DENIED = 6, 1, 29


def data(at: int, *, of: int = 7, sequence: int = 0, count: int = 1, **more: Any) -> Batch:
    """Return a batch of a producer."""
    return Batch(
        base_offset=at,
        last_delta=count - 1,
        producer_id=of,
        producer_epoch=more.pop("epoch", 0),
        base_sequence=sequence,
        **more,
    )


def wanted(
    *, partition: int = 0, of: int = 7, at: int | None = 100, last: int | None = None, **more: Any
) -> BatchRequest:
    """Ask for the batches of a producer that was rejected at an offset, behind a last sequence."""
    return BatchRequest(
        name=TopicPartition("orders", partition), producer_id=of, offset=at, sequence=last, **more
    )


@dataclass
class Logs:
    """A leader's log per partition, its answers, and rounds of one reader over it."""

    logs: Mapping[int, Sequence[Batch]]
    times: Mapping[datetime, int] = field(default_factory=dict)  # the first offset of a time
    errors: Mapping[int, int] = field(default_factory=dict)
    time_error: int = 0
    answer_bytes: int | None = None  # of one partition; None: as many as asked for
    reader: BatchReader = field(default_factory=BatchReader)
    fetched: list[tuple[int, int]] = field(default_factory=list)  # partition, offset
    gaps: list[Gap] = field(default_factory=list)
    requests: dict[str, int] = field(default_factory=dict)

    def observe(
        self,
        *asked: BatchRequest,
        ends: Offsets | None = None,
        producers: Producers | None = None,
    ) -> tuple[BatchesOf, ...]:
        """Make a round; every high watermark is the end of its log unless told otherwise."""
        rows = max(len(self.logs), 3)
        session, pool = scripted([ME], self.respond)
        seen = ends or offsets(rows, high_watermark=[self.end(row) for row in range(rows)])
        found = self.reader.collect(
            session,
            partitions({"orders": rows}),
            seen,
            producers or no_producers(rows),
            [BatchesQuestion(asked)],
        )
        self.gaps, self.requests = session.gaps, dict(session.requests)
        self.fetched = [
            (int(one.partition), int(one.fetch_offset))
            for _, request in pool.of(FETCH)
            for topic in request.topics
            for one in topic.partitions
        ]
        return found

    def end(self, partition: int) -> int:
        log = self.logs.get(partition, ())
        return log[-1].base_offset + log[-1].last_delta + 1 if log else 0

    def respond(self, _: Broker, api: Api, request: Any) -> bytes | Failure:
        if api is LIST_OFFSETS:
            return self.at_times(request)
        assert int(request.isolation_level) == 0, "what is not committed is wanted too"
        is_first = True
        told = []
        for topic in request.topics:
            for one in topic.partitions:
                records = self.records(one, is_first=is_first)
                is_first &= not records
                told.append(self.partition(int(one.partition), records))
        topic = part(FETCH, 12, "FetchableTopicResponse")(topic="orders", partitions=tuple(told))
        return answer(
            FETCH, 12, throttle_time=NO_THROTTLE, error_code=ErrorCode(0), responses=(topic,)
        )

    def records(self, one: Any, *, is_first: bool) -> bytes:
        """Return what a broker sends: a batch that is too large only as the first of an answer."""
        most = self.answer_bytes or int(one.partition_max_bytes)
        found = b""
        for batch in self.logs.get(int(one.partition), ()):
            if batch.base_offset + batch.last_delta < int(one.fetch_offset):
                continue
            encoded = batch.encode()
            if len(found) + len(encoded) > most and (found or not is_first):
                break
            found += encoded
        return found

    def partition(self, number: int, records: bytes) -> Any:
        return part(FETCH, 12, "PartitionData")(
            partition_index=number,
            error_code=ErrorCode(self.errors.get(number, 0)),
            high_watermark=self.end(number),
            aborted_transactions=(),
            records=records,
        )

    def at_times(self, request: Any) -> bytes:
        by_ms = {int(time.timestamp() * 1000): offset for time, offset in self.times.items()}
        entries = [
            (int(one.partition_index), self.time_error, by_ms.get(int(one.timestamp), NOBODY), 5)
            for topic in request.topics
            for one in topic.partitions
        ]
        return list_offsets_answer({"orders": entries})
