"""Rounds of a cluster whose transactions cost something: what was written, and what ended."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any, Final

from rules.facts.batch_samples import BatchSamples, PartitionSample, WriterSample
from rules.facts.identity import BrokerId, TopicPartition
from rules.facts.transaction_log import EndedTransaction, TransactionLog
from rules.judgement import Finding
from rules.verdict import Verdict
from rules.view import View
from tests.factories import at, broker, ended, offsets, partitions, snapshot
from tests.unit.rules.catalogue.judging import Judge, view_of

MINUTE: Final = 60.0
TOPICS: Final = {"orders": 3, "__consumer_offsets": 1}
PLACES: Final = tuple(TopicPartition("orders", number) for number in range(3))
GROUPS: Final = TopicPartition("__consumer_offsets", 0)


def transactions_of(
    transactional_id: str = "payments",
    number: int = 1,
    *,
    on: Iterable[TopicPartition] = PLACES[:1],
    took: float = 0.005,
    coordinator: int = 2,
) -> Sequence[EndedTransaction]:
    """Return transactions that marked these partitions, `took` seconds after the decision."""
    one = ended(
        transactional_id=transactional_id,
        decided_at=at(-took),
        partitions=frozenset(on),
        coordinator=BrokerId(coordinator),
    )
    return [one] * number


def sampled(
    place: TopicPartition, *, records: int = 0, markers: int = 20, size_bytes: int = 0
) -> PartitionSample:
    """Return a sample of one partition with batches and markers of producer 7, and a batch of another one."""
    writer = WriterSample(
        producer_id=7,
        producer_epoch=3,
        first_offset=0,
        last_offset=0,
        first_sequence=0,
        first_epoch=3,
        first_record_at=None,
        last_record_at=None,
        batch_count=1,
        is_transactional=True,
        record_count=records,
        size_bytes=size_bytes,
    )
    return PartitionSample(
        row=PLACES.index(place),
        sampled_from=0,
        sampled_to=64,
        writers=(writer, replace(writer, producer_id=8, record_count=999)),
        markers=((7, markers), (8, 1)),
    )


def observed(
    ends: Sequence[int | None] = (0, 0, 0, 0),
    *transactions: Sequence[EndedTransaction],
    is_whole: bool = True,
    samples: tuple[PartitionSample, ...] = (),
) -> dict[str, Any]:
    """Return a round that read these high watermarks of TOPICS, and that these transactions ended."""
    together = tuple(one for each in transactions for one in each)
    return {
        "brokers": (broker(1), broker(2), broker(3)),
        "partitions": partitions(TOPICS),
        "offsets": offsets(4, high_watermark=ends, log_end_offset=ends, last_stable_offset=ends),
        "batch_samples": BatchSamples(is_read=bool(samples), partitions=samples),
        "transaction_log": TransactionLog(is_read=True, ended=together, is_whole=is_whole),
    }


def play(*rounds: dict[str, Any], seconds: float = MINUTE) -> View:
    """Return the view of the last of these rounds."""
    step = timedelta(seconds=seconds)
    return view_of([
        snapshot(**{"taken_at": at(0) + number * step, **each}) for number, each in enumerate(rounds)
    ])  # fmt: skip


START: Final = observed()


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One line of a rule's specification; a minute lies between two rounds by default."""

    id: str
    because: str
    rounds: tuple[dict[str, Any], ...]
    seconds: float = MINUTE
    verdict: Verdict
    reason: str


def of_first(judge: Judge, case: Case, **labels: str) -> Finding:
    """Judge a case's last round and return the finding of the subject with these labels, or the first."""
    judgement = judge(play(*case.rounds, seconds=case.seconds))
    if not labels or judgement.subjects.labels(0) == {"cluster": "default"}:
        return judgement.finding(0)
    [place] = judgement.subjects.find([{"cluster": "default", **labels}])
    assert place is not None
    return judgement.finding(place)
