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
    """Compare: each acknowledged record is at its offset; one without an offset is somewhere.

    That it is nowhere else is not promised: librdkafka writes a record twice if it raises its epoch while
    an answer is missing (librdkafka issue 4953). `duplicates` counts those.
    """
    values = {(record.partition, record.offset): record.value for record in records}
    present = {(record.partition, record.value) for record in records}
    wrong = [
        (partition, f"{value!r} was acknowledged at {offset}, where {there!r} is")
        for (partition, offset), value in producer.acknowledged.items()
        if (there := values.get((partition, offset))) != value
    ]
    wrong += [
        (partition, f"{value!r} was acknowledged without an offset, and is not there")
        for partition, value in producer.without_offset
        if (partition, value) not in present
    ]
    return [
        BrokenPromise(place=(producer.topic, partition), what=what) for partition, what in wrong
    ]


def duplicates(producer: AuditedProducer, records: Sequence[Record]) -> int:
    """Count the acknowledged records that are there more than once."""
    times = Counter(record.value for record in records)
    return sum(times[value] > 1 for value in producer.acknowledged.values())


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
    output: str, source: Sequence[Record], records: Sequence[Record]
) -> list[BrokenPromise]:
    """Compare: each record of the input is in the output, as often as it is in the input."""
    given = Counter((record.partition, record.value) for record in source)
    passed_on = Counter(record.value for record in records)
    return [
        BrokenPromise(
            place=(output, partition),
            what=f"{value!r} was passed on {passed_on[value]} times, and was there {times} times",
        )
        for (partition, value), times in given.items()
        if passed_on[value] != times
    ]
