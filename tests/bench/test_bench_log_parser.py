"""Reading lines of brokers' logs: ordinary ones mostly, and 10 MB of each kind of hostile ones.

Stats are printed. Hostile text is read in two sizes: twice the bytes take twice the time, whatever
they are.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Final

import pytest

from collectors.broker_log.parser import KINDS
from service.runtime.clock import monotonic
from tests.bench.memory import weighed
from tests.log_lines import append_failed, parser, stamped, thrown

LINES: Final = 400_000
RECORDS_EVERY: Final = 200  # lines: far more than a healthy broker writes
TRIES: Final = 3
MB: Final = 1_000_000

ORDINARY: Final = (
    stamped("[GroupCoordinator 1]: Preparing to rebalance group payments in state PreparingRebalance with old generation 41 (__consumer_offsets-13) (reason: Updating metadata for member consumer-7 during Stable; client reason: not provided)"),
    stamped("[GroupCoordinator 1]: Stabilized group payments generation 42 (__consumer_offsets-13) with 6 members", logger="kafka.coordinator.group.GroupCoordinator"),
    stamped("[ProducerStateManager partition=orders-7] Wrote producer snapshot at offset 1205114 with 12 producer ids in 1 ms.", logger="org.apache.kafka.storage.internals.log.ProducerStateManager"),
    stamped("[UnifiedLog partition=orders-7, dir=/var/lib/kafka/data] Deleting segments due to log start offset 1100000 breach", logger="org.apache.kafka.storage.internals.log.UnifiedLog"),
    stamped("[LocalLog partition=orders-7, dir=/var/lib/kafka/data] Rolled new log segment at offset 1205114 in 2 ms.", logger="org.apache.kafka.storage.internals.log.LocalLog"),
    stamped("[SocketServer listenerType=BROKER, nodeId=1] Failed authentication with /10.0.0.7 (channelId=10.0.0.1:9092-10.0.0.7:51234-42) (SSL handshake failed)", logger="org.apache.kafka.common.network.Selector"),
    stamped("[TransactionCoordinator id=1] Initialized transactionalId payments-3 with producerId 4012 and producer epoch 7 on partition __transaction_state-8", logger="kafka.coordinator.transaction.TransactionCoordinator"),
    stamped("[ReplicaFetcherManager on broker 1] Removed fetcher for partitions Set(orders-7, orders-9)", logger="kafka.server.ReplicaFetcherManager"),
    stamped("[Partition orders-7 broker=1] ISR updated to 1,2,3  and version updated to 88", logger="kafka.cluster.Partition"),
    "\tat kafka.server.KafkaRequestHandler.run(KafkaRequestHandler.scala:159) ~[kafka_2.13-4.1.1.jar:?]",
)  # fmt: skip
RECORD: Final = (
    append_failed("10MutW2kQReRXczn4GtumQ:orders-a-0"),
    thrown(
        "Out of order sequence number for producer 2001 at offset 3 in partition orders-a-0:"
        " 27 (incoming seq. number), 2 (current end sequence number)"
    ),
)
ALMOST: Final = (
    RECORD[1].replace("current end", "something else"),
    RECORD[1].replace("orders-a-0", "-0" * 200),
    RECORD[1].replace("2001", "9" * 500),
    stamped("[Partition a-0 broker=1] Shrinking ISR from " + "1," * 2000),
    stamped("Completed load of Log(dir=" + ", topic=a" * 500),
    stamped("[QuorumController id=1] UNCLEAN partition change for a-0 with topic ID " + "A" * 22 + ": " + "isr: [1, " * 500),
    stamped("[Partition " * 200 + "Shrinking ISR from 1,2 to 1"),
    stamped("\x1b[0;" * 500 + "Truncating partition " + "a-" * 500),
    stamped("2026-11-21 11:56:4" * 20 + "Follower " + "a-0 starts at leader epoch " * 100),
)  # fmt: skip


def mixed() -> list[bytes]:
    """Return what a busy broker writes in some hours, with an episode of rejected batches."""
    chooser, lines = random.Random(7), list[bytes]()
    while len(lines) < LINES:
        lines += (chooser.choice(ORDINARY).encode() for _ in range(RECORDS_EVERY))
        lines += (line.encode() for line in RECORD)
    return lines


def randomly(size: int) -> list[bytes]:
    return random.Random(7).randbytes(size).split(b"\n")


def one_random_line(size: int) -> list[bytes]:
    return [random.Random(7).randbytes(size).replace(b"\n", b" ")]


def lines_of_1_mb(size: int) -> list[bytes]:
    return [b"x" * MB for _ in range(size // MB)]


def lines_of_1_mb_of_marks(size: int) -> list[bytes]:
    marks = [kind.mark.encode() for kind in KINDS]
    return [(marks[n % len(marks)] * MB)[:MB] for n in range(size // MB)]


def short_marks(size: int) -> list[bytes]:
    marks = [kind.mark.encode() for kind in KINDS]
    return marks * (size // sum(len(mark) + 1 for mark in marks))


def almost_matching(size: int) -> list[bytes]:
    lines = [line.encode() for line in ALMOST]
    return lines * (size // sum(map(len, lines)))


def almost_matching_in_one_record(size: int) -> list[bytes]:
    return [b"\n".join(almost_matching(size))]


def empty(size: int) -> list[bytes]:
    return [b""] * size


HOSTILE: Final[Sequence[Callable[[int], list[bytes]]]] = (
    randomly,
    one_random_line,
    lines_of_1_mb,
    lines_of_1_mb_of_marks,
    short_marks,
    almost_matching,
    almost_matching_in_one_record,
    empty,
)


def seconds_for(lines: Sequence[bytes]) -> tuple[float, int, int]:
    """Return the best time, the count of events, and how many lines could not be read."""
    took, events, unparsed = [], 0, 0
    for _ in range(TRIES):
        made, begin = parser(), monotonic()
        events = len(made.feed(lines))
        took.append(monotonic() - begin)
        unparsed = made.unparsed
    return min(took), events, unparsed


def test_reading_a_mixed_log() -> None:
    lines = mixed()
    took, events, unparsed = seconds_for(lines)
    size = sum(len(line) + 1 for line in lines)
    print(f"\n{len(lines):,} lines of a mixed log, {size / MB:.0f} MB, {events:,} events")
    print(f"  {len(lines) / took:,.0f} lines/s, {size / took / MB:.0f} MB/s; {weighed()}")
    assert (events, unparsed) == (LINES // (RECORDS_EVERY + 2) + 1, 0)


def test_reading_nothing_but_records() -> None:
    lines = [line.encode() for line in RECORD] * (LINES // 10)
    took, events, _ = seconds_for(lines)
    print(
        f"\n{len(lines):,} lines of nothing but rejected batches: {len(lines) / took:,.0f} lines/s"
    )
    assert events == LINES // 10


@pytest.mark.parametrize("text", HOSTILE)
def test_reading_hostile_text(text: Callable[[int], list[bytes]]) -> None:
    (half, *_), (whole, events, unparsed) = (seconds_for(text(size)) for size in (5 * MB, 10 * MB))
    print(
        f"\n  {text.__name__:30} 5 MB {half:6.3f} s, 10 MB {whole:6.3f} s, {whole / half:4.1f} times"
    )
    print(f"  {unparsed:,} lines counted as unreadable")
    assert events == 0
