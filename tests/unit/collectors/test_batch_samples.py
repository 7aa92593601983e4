"""Samples of batches: whose turn it is, what may come first in an answer, and what it costs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from kio.schema.errors import ErrorCode

from collectors.batch_samples import DENIED_FOR, PARTITION_BYTES, ROUND_BYTES, BatchSampler
from collectors.wire.api import FETCH, Api
from rules.facts.batch_samples import BatchSamples, WriterSample
from rules.facts.column import Column
from rules.facts.gap import Gap, GapCause, GapScope
from rules.facts.identity import CONSUMER_OFFSETS, Broker
from rules.facts.partitions import Partitions
from tests.factories import broker, offsets, partitions
from tests.unit.collectors.scripted_pool import scripted
from tests.unit.collectors.wire.messages import NO_THROTTLE, answer, part
from tests.unit.collectors.wire.records import CONTROL, TRANSACTIONAL, Batch

DENIED = 29
BIG = 100_000
HUGE = 900_000


def batch(at: int, size: int = 100, **more: Any) -> Batch:
    """Return a batch of one record and about so many bytes."""
    return Batch(base_offset=at, payload=b"x" * max(size - 61, 1), **more)


@dataclass
class Cluster:
    """Leaders with logs by row, which answer as brokers do, and rounds of one sampler over them."""

    logs: list[list[Batch]]
    leaders: Sequence[int] = (1, 1, 1)
    topics: Mapping[str, int] = field(default_factory=lambda: {"orders": 3})
    denied: set[str] = field(default_factory=set)
    sampler: BatchSampler = field(default_factory=BatchSampler)
    gaps: list[Gap] = field(default_factory=list)
    served: list[list[int]] = field(default_factory=list)  # rows, by request of the last round
    placed: Partitions | None = None

    def round(self) -> BatchSamples:
        """Make a round."""
        brokers = [broker(number) for number in sorted(set(self.leaders))]
        session, _ = scripted(brokers, self.respond)
        if self.placed is None:
            self.placed = partitions(dict(self.topics), leader=Column.of(self.leaders))
        ends = [log[-1].base_offset + 1 if log else 0 for log in self.logs]
        self.served = []
        sampled = self.sampler.collect(
            session, self.placed, offsets(len(self.logs), high_watermark=ends)
        )
        self.gaps = session.gaps
        return sampled

    def append(self, row: int, count: int = 1, size: int = 100, **more: Any) -> None:
        """Append batches of one record each."""
        log = self.logs[row]
        start = log[-1].base_offset + 1 if log else 0
        log += [batch(start + number, size, **more) for number in range(count)]

    def respond(self, _: Broker, api: Api, request: Any) -> bytes:
        assert api is FETCH
        left, is_first, topics = int(request.max_bytes), True, []
        self.served.append([])
        for topic in request.topics:
            answers = []
            for one in topic.partitions:
                row = self.row(topic.topic, int(one.partition))
                self.served[-1].append(row)
                error = DENIED if topic.topic in self.denied else 0
                most = min(int(one.partition_max_bytes), left)
                records = b"" if error else self.read(row, int(one.fetch_offset), most, is_first)
                is_first &= not records
                left = max(left - len(records), 0)
                answers.append(self.answer_of(one, error, records))
            kind = part(FETCH, 12, "FetchableTopicResponse")
            topics.append(kind(topic=topic.topic, partitions=tuple(answers)))
        return answer(
            FETCH, 12, throttle_time=NO_THROTTLE, error_code=ErrorCode(0), responses=tuple(topics)
        )

    def row(self, topic: str, partition: int) -> int:
        assert self.placed is not None
        row = self.placed.index.row(topic, partition)
        assert row is not None
        return row

    def read(self, row: int, offset: int, most: int, is_first: bool) -> bytes:  # noqa: FBT001
        log = [each.encode() for each in self.logs[row] if each.base_offset >= offset]
        if not log or (len(log[0]) > most and not is_first):
            return b""
        return b"".join(log)[: max(most, len(log[0]))]

    def answer_of(self, one: Any, error: int, records: bytes) -> Any:
        return part(FETCH, 12, "PartitionData")(
            partition_index=one.partition,
            error_code=ErrorCode(error),
            high_watermark=0,
            aborted_transactions=(),
            records=records,
        )


def writers(sampled: BatchSamples, row: int) -> tuple[WriterSample, ...]:
    return next(each.writers for each in sampled.partitions if each.row == row)


def test_nothing_is_sampled_before_a_log_grows() -> None:
    cluster = Cluster([[batch(0)], [], []])
    assert cluster.round() == cluster.round() == BatchSamples(is_read=True)


def test_a_writer_is_what_the_headers_show_of_it() -> None:
    cluster = Cluster([[batch(0)], [], []])
    cluster.round()
    cluster.append(0, 2, producer_id=7, producer_epoch=0, base_sequence=0)
    cluster.append(0)
    cluster.append(0, producer_id=9, producer_epoch=4, attributes=TRANSACTIONAL, base_sequence=5)
    cluster.append(0, producer_id=9, producer_epoch=4, attributes=TRANSACTIONAL | CONTROL)
    sampled = cluster.round()
    idempotent, plain, transactional = writers(sampled, 0)
    assert (idempotent.producer_id, idempotent.begins, idempotent.batch_count) == (7, True, 2)
    assert (plain.producer_id, plain.first_offset, plain.last_offset) == (None, 3, 3)
    assert (transactional.is_transactional, transactional.batch_count) == (True, 1)
    assert (sampled.partitions[0].sampled_from, sampled.partitions[0].sampled_to) == (1, 6)
    assert cluster.round().partitions == (), "nothing was appended since"


def test_one_request_per_broker_once_each_has_a_partition_with_small_batches() -> None:
    cluster = Cluster([[] for _ in range(6)], [1, 1, 2, 2, 3, 3], {"orders": 6})
    cluster.round()
    requests = []
    for _ in range(7):
        for row in range(6):
            cluster.append(row)
        requests.append(cluster.round().requests)
    assert requests[0] == 1, "of no broker it is known how large the first batch is"
    assert requests[-1] == 3
    assert all(number <= 3 for number in requests)


def test_a_large_batch_has_all_bytes_of_a_round_and_never_those_of_others() -> None:
    cluster = Cluster([[] for _ in range(6)], [1, 1, 2, 2, 3, 3], {"orders": 6})
    cluster.round()
    seen: set[int] = set()
    for _ in range(14):
        for row in range(6):
            cluster.append(row, size=HUGE if row % 2 else 100)
        sampled = cluster.round()
        seen |= {each.row for each in sampled.partitions}
        assert sampled.sampled_bytes < 1024 * 1024
    assert seen == set(range(6))


def test_a_batch_that_fits_into_a_share_comes_first_when_it_waited_longest() -> None:
    cluster = Cluster([[], [], []])
    cluster.round()
    turns = []
    for _ in range(6):
        for row in range(3):
            cluster.append(row, size=BIG if row == 2 else 100)
        turns.append({each.row for each in cluster.round().partitions})
    assert turns[-1] == {0, 1, 2}, "its size is known, and it needs no round of its own"
    assert PARTITION_BYTES < BIG < ROUND_BYTES


def test_without_read_there_is_one_gap_and_the_topic_is_left_alone_for_a_while() -> None:
    cluster = Cluster([[], [], []], [1, 1, 1], {"orders": 2, "secret": 1}, {"secret"})
    sampled = cluster.round()
    served = []
    for _ in range(DENIED_FOR):
        for row in range(3):
            cluster.append(row)
        sampled = cluster.round()
        served += [row for rows in cluster.served for row in rows]
    assert sampled.denied_topics == ("secret",)
    assert served.count(2) == 1
    [gap] = cluster.gaps
    assert (gap.scope, gap.cause) == (GapScope.BATCH_SAMPLES, GapCause.NOT_AUTHORIZED)
    assert "READ on Topic secret" in gap.why
    cluster.denied.clear()
    for _ in range(2):
        cluster.append(2)
        sampled = cluster.round()
    assert (sampled.denied_topics, cluster.gaps) == ((), [])


def test_of_internal_topics_only_that_of_commits_is_sampled() -> None:
    cluster = Cluster([[], [], []], [1, 1, 1], {"orders": 1, CONSUMER_OFFSETS: 1, "__other": 1})
    cluster.round()
    for row in range(3):
        cluster.append(row)
    assert {each.row for each in cluster.round().partitions} == {0}
    assert cluster.served == [[0, 1]]
