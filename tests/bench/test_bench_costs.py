"""What counting the cost of transactions costs: 2,000 transactional ids over 10,000 partitions; stats are printed."""

from __future__ import annotations

import statistics
import tracemalloc
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import Final

from rules.catalogue import coordinator_slow, partition_skewed, transaction_too_small
from rules.facts.identity import BrokerId, TopicPartition
from rules.facts.last_observation import microseconds
from rules.facts.memory import advance
from rules.facts.snapshot import Snapshot
from rules.facts.transaction_costs import CostMemory, advance_costs
from rules.facts.transaction_log import EndedTransaction, TransactionLog
from rules.transactions.costs import costs_of, mean_records
from rules.view import View
from service.runtime.clock import monotonic
from tests.bench.large import ROWS, moving
from tests.factories import at, ended

IDS: Final = 2000
EACH: Final = 15  # transactions of one id in a round: one per second
PARTITIONS: Final = 3  # of one id
ROUNDS: Final = 45  # more than the ten minutes of the longest window, at 15 s each
STEP: Final = timedelta(seconds=15)


def _transactions(index_of: Snapshot) -> tuple[EndedTransaction, ...]:
    index = index_of.partitions.index
    made: list[EndedTransaction] = []
    for number in range(IDS):
        rows = ((number * PARTITIONS + place) % ROWS for place in range(PARTITIONS))
        names = frozenset[TopicPartition](index.topic_partition(row) for row in rows)
        one = ended(
            transactional_id=f"orders-enrichment-{number}",
            partitions=names,
            decided_at=at(-0.004),
            coordinator=BrokerId(number % 3 + 1),
        )
        made += [one] * EACH
    return tuple(made)


def test_costs_of_2000_transactional_ids() -> None:
    first = moving(0)
    log = TransactionLog(is_read=True, ended=_transactions(first))
    rounds = [
        replace(moving(number), taken_at=first.taken_at + number * STEP, transaction_log=log)
        for number in range(ROUNDS)
    ]
    tracemalloc.start()
    costs, took = CostMemory(), list[float]()
    for seen in rounds:
        now_us, before = microseconds(seen.taken_at), costs
        begin = monotonic()
        costs = advance_costs(seen, now_us, before)
        took.append(monotonic() - begin)
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    plain = [_seconds(lambda: advance_costs(rounds[-1], now_us, before)) for _ in range(5)]
    memory = replace(advance(rounds[-1]), costs=costs)
    view = View(snapshot=rounds[-1], memory=memory, before=None, now=rounds[-1].taken_at)
    print(
        f"\n{IDS:,} transactional ids, {len(log.ended):,} transactions per round, {ROWS:,} partitions"
        f"\n  counting a round      median {statistics.median(plain) * 1000:6.1f} ms"
        f"\n  memory of the window  {held / 1e6:6.1f} MB"
    )
    for name, judge in (
        ("transaction_too_small", transaction_too_small.judge),
        ("coordinator_slow", coordinator_slow.judge),
        ("partition_skewed", partition_skewed.judge),
        ("costs, as listed", costs_of),
        ("records per transaction", mean_records),
    ):
        spent = [_seconds(partial(judge, view)) for _ in range(5)]
        print(f"  {name:24} median {statistics.median(spent) * 1000:6.1f} ms")
    assert len(costs_of(view).ids) == IDS


def _seconds(work: Callable[[], object]) -> float:
    begin = monotonic()
    work()
    return monotonic() - begin
