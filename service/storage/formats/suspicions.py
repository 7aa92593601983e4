"""The memory of suspicions as plain values for JSON; older checkpoints have none."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

from rules.facts.suspicions import CounterSeen, Suspicion, SuspicionMemory
from service.storage.formats.values import plain, read


class _Counter(NamedTuple):
    address: str
    error: str
    total: int
    seen_us: int
    handled_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _Suspicions:
    """What is stored."""

    open: tuple[Suspicion, ...] = ()
    ended: tuple[Suspicion, ...] = ()
    counters: tuple[_Counter, ...] = ()
    addresses: dict[str, int]


def plain_suspicions(memory: SuspicionMemory) -> dict[str, Any]:
    """Return the memory as JSON values."""
    stored = _Suspicions(
        open=memory.open,
        ended=memory.ended,
        counters=tuple(
            _Counter(*key, seen.total, seen.seen_us, seen.handled_us)
            for key, seen in memory.counters.items()
        ),
        addresses=dict(memory.addresses),
    )
    return dict(plain(stored))


def suspicions_of(stored: Any) -> SuspicionMemory:
    """Read the memory that `plain_suspicions` returned; each process is to be compared once.

    Raises:
        LookupError, TypeError, ValueError: the values are malformed.
    """
    suspicions = read(_Suspicions, stored)
    return SuspicionMemory(
        open=suspicions.open,
        ended=suspicions.ended,
        counters={
            (counter.address, counter.error): CounterSeen(
                total=counter.total, seen_us=counter.seen_us, handled_us=counter.handled_us
            )
            for counter in suspicions.counters
        },
        addresses=suspicions.addresses,
        to_compare=frozenset(suspicions.addresses),
    )
