"""Finds where a new producer id continues what another one stopped writing, without a transactional id.

Headers do not name the application: what is proven is that one id stopped and another one began. A rolling
deployment, or a client that got another id, leaves the same traces, and has the same consequence; instances that are added,
another application that begins minutes later and a producer that only pauses are not meant.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from rules.facts.times import MICROSECOND
from rules.facts.writer_memory import Writer, WriterMemory, WrittenPartition

# A producer wrote regularly if so many samples of the partition hold it, of those between its first and last.
REGULAR_SAMPLES: Final = 3
REGULAR_SHARE: Final = 0.8
# It stopped if so many samples since then do not hold it, after this time and this many of its intervals.
STOPPED_SAMPLES: Final = 3
STOPPED_AFTER: Final = timedelta(seconds=30)
STOPPED_INTERVALS: Final = 5
SOON: Final = timedelta(minutes=2)  # from the last record of one to the first of the other
_CLOCKS: Final = timedelta(seconds=5)  # by which the clocks of two producers may differ

_Spans = Mapping[int, tuple[int, int]]  # producer id -> first and last seen on any partition


@dataclass(frozen=True, slots=True, kw_only=True)
class Replacement:
    """A producer id that stopped on a partition, and the one that began there afterwards."""

    partition: WrittenPartition
    former: Writer
    successor: Writer


def find_replacements(memory: WriterMemory, now_us: int) -> list[Replacement]:
    """Return what is proven: each former producer with its first successor, each successor once."""
    crowded = [each for each in memory.partitions.values() if len(each.writers) > 1]
    spans = _spans(memory) if crowded else {}
    pairs = [pair for partition in crowded for pair in _of_partition(partition, spans, now_us)]
    return sorted(pairs, key=lambda pair: (pair.partition.name, pair.successor.first_offset))


def _of_partition(partition: WrittenPartition, spans: _Spans, now_us: int) -> Iterator[Replacement]:
    idempotent = [writer for writer in partition.writers if writer.producer_id is not None]
    stopped = [writer for writer in idempotent if _has_stopped(partition, writer, spans, now_us)]
    begun = [writer for writer in idempotent if _has_begun(writer, spans)]
    taken: set[int] = set()
    for former in sorted(stopped, key=lambda writer: writer.last_offset):
        successor = _successor(former, begun, taken)
        if successor is not None and successor.producer_id is not None:
            taken.add(successor.producer_id)
            yield Replacement(partition=partition, former=former, successor=successor)


def _spans(memory: WriterMemory) -> _Spans:
    spans: dict[int, tuple[int, int]] = {}
    for partition in memory.partitions.values():
        for writer in partition.writers:
            if writer.producer_id is None:
                continue
            first, last = spans.get(writer.producer_id, (writer.first_seen_us, writer.last_seen_us))
            spans[writer.producer_id] = (
                min(first, writer.first_seen_us),
                max(last, writer.last_seen_us),
            )
    return spans


def _has_stopped(partition: WrittenPartition, writer: Writer, spans: _Spans, now_us: int) -> bool:
    """Whether it wrote regularly here, and writes no more, here or on another sampled partition."""
    between = writer.last_sample - writer.first_sample + 1
    is_regular = writer.samples >= REGULAR_SAMPLES and writer.samples >= REGULAR_SHARE * between
    if not is_regular or partition.samples - writer.last_sample < STOPPED_SAMPLES:
        return False
    interval = (writer.last_seen_us - writer.first_seen_us) // (writer.samples - 1)
    silent = now_us - spans[writer.producer_id or 0][1]
    return silent >= max(STOPPED_AFTER // MICROSECOND, STOPPED_INTERVALS * interval)


def _has_begun(writer: Writer, spans: _Spans) -> bool:
    """Whether this partition shows the first batch of the producer id, and no other one showed it before."""
    return writer.begins and spans[writer.producer_id or 0][0] == writer.first_seen_us


def _successor(former: Writer, begun: Sequence[Writer], taken: set[int]) -> Writer | None:
    """Return the producer that began first behind the last batch of `former`, and soon."""
    following = [
        writer
        for writer in begun
        if writer.first_offset > former.last_offset
        and writer.producer_id not in taken
        and _is_soon(former, writer)
    ]
    return min(following, key=lambda writer: writer.first_offset, default=None)


def _is_soon(former: Writer, successor: Writer) -> bool:
    ended, began = former.last_record_us, successor.first_record_us
    if ended is None or began is None:
        ended, began = former.last_seen_us, successor.first_seen_us
    return -(_CLOCKS // MICROSECOND) <= began - ended <= SOON // MICROSECOND
