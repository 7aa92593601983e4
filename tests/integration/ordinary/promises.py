"""What clients were promised, compared with what can be read when all is over."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from tests.integration.ordinary.audited import AuditedProducer, Place
from tests.integration.ordinary.coordinator_logs import Record
from tests.integration.ordinary.transactions import Outcome, TransactionResult

# How often each record of a transaction can be read: the same number for all of them.
TIMES: Final[Mapping[Outcome, frozenset[tuple[int, ...]]]] = {
    Outcome.COMMITTED: frozenset({(1,)}),
    Outcome.ABORTED: frozenset({(0,)}),
    Outcome.UNKNOWN: frozenset({(0,), (1,), ()}),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokenPromise:
    """Something that a client was told and that is not so."""

    place: Place
    what: str


def check_producer(producer: AuditedProducer, records: Sequence[Record]) -> list[BrokenPromise]:
    """Compare: each acknowledged record is at its offset, and nowhere else."""
    values = {(record.partition, record.offset): record.value for record in records}
    times = Counter(record.value for record in records)
    broken = []
    for (partition, offset), value in producer.acknowledged.items():
        there = values.get((partition, offset))
        if there != value:
            what = f"{value!r} was acknowledged at {offset}, where {there!r} is"
        elif times[value] != 1:
            what = f"{value!r} is there {times[value]} times"
        else:
            continue
        broken.append(BrokenPromise(place=(producer.topic, partition), what=what))
    return broken


def check_transactions(
    results: Sequence[TransactionResult], records: Sequence[Record]
) -> list[BrokenPromise]:
    """Compare: all records of a committed transaction are there once, of an aborted one none is."""
    times: Counter[Any] = Counter(record.value for record in records)
    times.update((record.partition, record.offset) for record in records)
    broken = []
    for result in results:
        _, partition = result.place
        keys = [(partition, key) if isinstance(key, int) else key for key in result.written]
        seen = tuple(sorted({times[key] for key in keys}))
        if seen not in TIMES[result.outcome]:
            what = f"{result.outcome}: {result.written!r} are there {seen} times"
            broken.append(BrokenPromise(place=result.place, what=what))
    return broken


def check_pipeline(
    output: str, source: AuditedProducer, records: Sequence[Record]
) -> list[BrokenPromise]:
    """Compare: each record of the input is in the output once."""
    times = Counter(record.value for record in records)
    partitions = {record.value: record.partition for record in records}
    return [
        BrokenPromise(
            place=(output, partitions.get(value, 0)),
            what=f"{value!r} was passed on {times[value]} times",
        )
        for value in source.acknowledged.values()
        if times[value] != 1
    ]
