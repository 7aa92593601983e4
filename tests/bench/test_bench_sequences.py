"""What sequences cost in a round of 10,000 partitions; stats are printed.

A quiet round, one that brings 1,000 rejections of as many producers, one that brings 1,000 of a single
producer, the answers to it, and the checkpoint with 1,000 episodes that ended.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final

from rules.catalogue import sequence_gap_loss
from rules.facts.batches import BatchesOf
from rules.facts.broker_log import BrokerLog, LogEvent
from rules.facts.identity import TopicPartition
from rules.facts.memory import Memory, advance
from rules.facts.snapshot import Snapshot
from rules.sequence.advance import with_sequences
from rules.view import View
from service.runtime.clock import monotonic
from service.storage.formats.checkpoint import Checkpoint, encode
from tests.bench.large import TITLE, moving
from tests.unit.rules.sequence.lines import rejected
from tests.unit.rules.sequence.stage import batch

ROUNDS: Final = 20
EVENTS: Final = 1_000


def timed(action: Callable[[], object]) -> float:
    """Return the milliseconds that an action takes: the median of many."""
    took: list[float] = []
    for _ in range(ROUNDS):
        begin = monotonic()
        action()
        took.append(1000 * (monotonic() - begin))
    return statistics.median(took)


def view_of(seen: Snapshot, before: Memory | None) -> View:
    return View(snapshot=seen, memory=advance(seen, before), before=before, now=seen.taken_at)


def with_lines(seen: Snapshot, events: Sequence[LogEvent]) -> Snapshot:
    return replace(seen, broker_log=BrokerLog(is_read=True, events=tuple(events)))


def many_producers() -> list[LogEvent]:
    """Return a rejection on each of 1,000 partitions, of a producer of its own."""
    return [
        rejected(
            27,
            2,
            producer_id=number,
            topic=f"topic-{number // 50:03}",
            partition=number % 50,
            second=number / 100,
        )
        for number in range(EVENTS)
    ]


def one_producer() -> list[LogEvent]:
    """Return 1,000 rejections of one producer whose last sequence moves on."""
    return [
        rejected(3 * n + 5, 3 * n, topic="topic-000", offset=100 + n, second=n / 100)
        for n in range(EVENTS)
    ]


def answers() -> tuple[BatchesOf, ...]:
    """Return where the last batches of those producers are."""
    return tuple(
        BatchesOf(
            name=TopicPartition(f"topic-{number // 50:03}", number % 50),
            producer_id=number,
            batches=(batch(97, 0, 3),),
            scanned_from=0,
            scanned_to=1000,
            largest_batch=1,
        )
        for number in range(EVENTS)
    )


def test_what_sequences_cost() -> None:
    first = with_sequences(view_of(moving(0), None)).memory
    quiet = view_of(with_lines(moving(1), ()), first)
    print(f"\n{TITLE}, medians of {ROUNDS}:")
    print(f"  quiet round: {timed(lambda: with_sequences(quiet)):.3f} ms")
    for title, events in (("producers", many_producers()), ("one producer", one_producer())):
        busy = view_of(with_lines(moving(1), events), first)
        print(f"  {EVENTS:,} rejections, {title}: {timed(lambda: with_sequences(busy)):.1f} ms")  # noqa: B023
    busy_view = with_sequences(view_of(with_lines(moving(1), many_producers()), first))
    judging = timed(lambda: sequence_gap_loss.judge(busy_view))
    print(f"  judged and asked: {judging:.1f} ms")
    answered = replace(moving(2), batches=answers())
    told = view_of(answered, busy_view.memory)
    print(f"  {EVENTS:,} answers: {timed(lambda: with_sequences(told)):.1f} ms")
    memory = with_sequences(told).memory
    print(f"  checkpoint without: {timed(lambda: encode(Checkpoint(memory=first))):.0f} ms")
    print(
        f"  checkpoint with {EVENTS:,}: {timed(lambda: encode(Checkpoint(memory=memory))):.0f} ms"
    )
    extra = len(encode(Checkpoint(memory=memory))) - len(encode(Checkpoint(memory=first)))
    print(f"  bytes of them: {extra:,}")
    assert len(memory.sequences.episodes) == EVENTS
