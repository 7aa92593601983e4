"""Reading 60,000 records of `__transaction_state`; stats are printed.

That is a round of 15 s on a cluster that ends 1,000 transactions a second with four records each:
a partition is added, another one, the decision, the end.
"""

from __future__ import annotations

import tracemalloc
from collections.abc import Sequence
from dataclasses import replace

from collectors.transaction_log import read_endings
from collectors.transaction_record import TransactionRecord, TransactionValue
from collectors.transaction_tail import Tail
from collectors.wire.records import read_records
from rules.facts.transaction_log import EndedTransaction
from rules.facts.transactions import TransactionState
from service.runtime.clock import monotonic
from tests.bench.memory import weighed
from tests.unit.collectors.transaction_records import NOON_MS, render_log, value

TRANSACTIONS = 15_000
IDS = 2_000
PER_ANSWER = 10_000  # records: some 1.6 MiB
TRIES = 5
LIMIT_SECONDS = 2.0  # far above what is aimed at, 0.5 s: a slow machine is no defect


def written() -> list[bytes]:
    """Return answers with the log of all of them, one batch per record as coordinators write it."""
    records: list[TransactionRecord] = []
    for number in range(TRANSACTIONS):
        name, at = f"payments-service-{number % IDS:04}", NOON_MS + number
        states = transaction(at, epoch=number // IDS)
        records += [TransactionRecord(name, state, state.last_update_ms) for state in states]
    starts = range(0, len(records), PER_ANSWER)
    return [render_log(records[start : start + PER_ANSWER], base=start) for start in starts]


def transaction(at: int, epoch: int) -> tuple[TransactionValue, ...]:
    base = value(producer_epoch=epoch, client_transaction_version=2, start_ms=at)
    both = (("orders-of-the-shop", (3,)), ("payments-of-the-shop", (1, 7)))
    ended = replace(base, producer_epoch=epoch + 1, partitions=both)
    return (
        replace(base, last_update_ms=at),
        replace(base, last_update_ms=at + 1, partitions=both),
        replace(ended, last_update_ms=at + 50, state=TransactionState.PREPARE_COMMIT),
        replace(
            ended, last_update_ms=at + 60, state=TransactionState.COMPLETE_COMMIT, partitions=()
        ),
    )


def read(answers: Sequence[bytes]) -> list[EndedTransaction]:
    """Do what a round does with the answers of leaders."""
    tail, ended = Tail(number=0), list[EndedTransaction]()
    for answer in answers:
        ended += read_endings(tail, read_records(answer))
    assert tail.lost is None
    return ended


def test_reading_a_busy_round() -> None:
    answers, took = written(), []
    for _ in range(TRIES):
        begin = monotonic()
        ended = read(answers)
        took.append(monotonic() - begin)
        assert len(ended) == TRANSACTIONS
    tracemalloc.start()
    read(answers)
    peak = tracemalloc.get_traced_memory()[1] / 2**20
    tracemalloc.stop()
    size = sum(len(answer) for answer in answers)
    print(
        f"\n60,000 records of __transaction_state, {size / 2**20:.1f} MiB in {len(answers)} answers"
    )
    print(f"  read in {min(took):.3f} s at best, {max(took):.3f} s at worst")
    print(f"  {peak:.0f} MiB more at most; {weighed()}")
    assert min(took) < LIMIT_SECONDS
