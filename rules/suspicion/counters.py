"""What brokers have counted since the last round: answers to Produce with an error of sequences.

A counter says nothing before it was seen twice (`collectors.scrapes.counting`), and a restart of Tidemark
begins anew there. So the totals are remembered: what an earlier process had seen is compared once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from rules.facts.last_observation import microseconds
from rules.facts.scrapes import RequestErrors, Scrapes, rises_within
from rules.facts.suspicions import CounterKey, CounterSeen, SuspicionMemory
from rules.facts.times import EPOCH, MICROSECOND

PRODUCE: Final = "Produce"
# A broker answers so to a batch that does not follow the last one of its producer.
SUSPICIOUS: Final = ("OUT_OF_ORDER_SEQUENCE_NUMBER", "UNKNOWN_PRODUCER_ID")
# These have other causes, mostly: they stand beside a suspicion and begin none.
HINTS: Final = ("INVALID_PRODUCER_EPOCH", "PRODUCER_FENCED", "INVALID_TXN_STATE")
SAME_RISE_US: Final = 100_000  # times of one rise differ by rounding
MAX_COUNTERS: Final = 20_000
FORGOTTEN_AFTER: Final = timedelta(days=7)  # of a process that is read no more


@dataclass(frozen=True, slots=True, kw_only=True)
class CountedErrors:
    """A rise of one error at one process."""

    reading: RequestErrors
    since_us: int
    until_us: int
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class NewCounts:
    """What was counted since the last round, and what is remembered of the counters."""

    rises: tuple[CountedErrors, ...]
    counters: Mapping[CounterKey, CounterSeen]
    addresses: Mapping[str, int]
    to_compare: frozenset[str]


def count_new(scrapes: Scrapes, before: SuspicionMemory, now_us: int) -> NewCounts:
    """Return the rises since the last round; one process at two endpoints counts once."""
    counters, addresses = dict(before.counters), dict(before.addresses)
    rises: list[CountedErrors] = []
    for reading in _each_once(scrapes):
        key = reading.address, reading.error
        seen = counters.get(key)
        new = list(_rises(reading, seen, before, scrapes))
        rises += new
        ends = [microseconds(rise.until) for rise in reading.counted.rises]
        handled = max([*ends, 0 if seen is None else seen.handled_us])
        counters[key] = CounterSeen(
            total=reading.counted.total or 0, seen_us=now_us, handled_us=handled
        )
    read = {
        reading.address
        for reading in scrapes.request_errors
        if not reading.is_gone and reading.endpoint in scrapes.fresh
    }
    addresses |= dict.fromkeys(read, now_us)
    oldest = now_us - FORGOTTEN_AFTER // MICROSECOND
    return NewCounts(
        rises=tuple(rises),
        counters=_limit({key: seen for key, seen in counters.items() if seen.seen_us > oldest}),
        addresses={name: at for name, at in addresses.items() if at > oldest},
        to_compare=before.to_compare - read,
    )


def count_hints(scrapes: Scrapes, address: str, since_us: int, until_us: int) -> dict[str, int]:
    """Return how often a process counted other errors of producers in a time, by their names."""
    since, until = EPOCH + since_us * MICROSECOND, EPOCH + until_us * MICROSECOND
    counts: dict[str, int] = {}
    for reading in scrapes.request_errors:
        if reading.address != address or reading.error not in HINTS:
            continue
        within = sum(rise.count or 0 for rise in rises_within(reading.counted, since, until))
        if within:
            counts[reading.error] = max(within, counts.get(reading.error, 0))
    return counts


def _each_once(scrapes: Scrapes) -> Iterable[RequestErrors]:
    """Return the reading of each process and error with the largest total: it is the latest."""
    best: dict[CounterKey, RequestErrors] = {}
    for reading in scrapes.request_errors:
        if reading.request != PRODUCE or reading.error not in SUSPICIOUS:
            continue
        key = reading.address, reading.error
        other = best.get(key)
        if other is None or (reading.counted.total or 0) > (other.counted.total or 0):
            best[key] = reading
    return best.values()


def _rises(
    reading: RequestErrors, seen: CounterSeen | None, before: SuspicionMemory, scrapes: Scrapes
) -> Iterator[CountedErrors]:
    missed = _missed(reading, seen, before, scrapes)
    if missed is not None:
        yield missed
        return
    handled = 0 if seen is None else seen.handled_us
    for rise in reading.counted.rises:
        until_us = microseconds(rise.until)
        if until_us > handled + SAME_RISE_US and rise.count:
            yield CountedErrors(
                reading=reading,
                since_us=microseconds(rise.since),
                until_us=until_us,
                count=rise.count,
            )


def _missed(
    reading: RequestErrors, seen: CounterSeen | None, before: SuspicionMemory, scrapes: Scrapes
) -> CountedErrors | None:
    """Return what was counted since an earlier process read the counter; None: not to be compared."""
    known_us = before.addresses.get(reading.address) if seen is None else seen.seen_us
    total = reading.counted.total
    if reading.address not in before.to_compare or known_us is None:
        return None
    if total is None or reading.is_gone:
        return None
    had = 0 if seen is None else seen.total
    count = total - had if total >= had else total  # a process that began anew counts from 0
    if count <= 0:
        return None
    answered = [state.answered_at for state in scrapes.endpoints if state.name == reading.endpoint]
    until = next((at for at in answered if at is not None), None)
    if until is None:
        return None
    return CountedErrors(
        reading=reading,
        since_us=min(known_us, microseconds(until)),
        until_us=microseconds(until),
        count=count,
    )


def _limit(counters: dict[CounterKey, CounterSeen]) -> dict[CounterKey, CounterSeen]:
    if len(counters) <= MAX_COUNTERS:
        return counters
    latest = sorted(counters, key=lambda key: counters[key].seen_us)[-MAX_COUNTERS:]
    return {key: counters[key] for key in latest}
