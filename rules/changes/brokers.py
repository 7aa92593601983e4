"""Which brokers joined, left or advertise another address, and which controller became active.

A broker that left is not registered any more; whether its process ended is not known. One that joined again did
not necessarily restart: it may have been fenced for a while.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from rules.changes.grouping import Change
from rules.facts.change_events import ChangedSubject, ChangeEventKind
from rules.facts.change_memory import KnownController
from rules.facts.identity import Broker


def addresses_of(brokers: Iterable[Broker]) -> dict[int, str]:
    """Return what each registered broker advertises, by broker id."""
    return {
        int(broker.broker_id): f"{broker.host}:{broker.port}"
        + (f" (rack {broker.rack})" if broker.rack else "")
        for broker in brokers
    }


def compare_brokers(
    new: Mapping[int, str], old: Mapping[int, str], since_us: int
) -> Iterator[Change]:
    """Yield the differences of two lists of registered brokers."""
    for broker in sorted({*new, *old}):
        before, after = old.get(broker), new.get(broker)
        if before == after:
            continue
        kind = ChangeEventKind.BROKER_MOVED
        if before is None:
            kind = ChangeEventKind.BROKER_JOINED
        elif after is None:
            kind = ChangeEventKind.BROKER_LEFT
        subject = ChangedSubject(broker=broker, before=before, after=after)
        yield Change(kind=kind, subject=subject, since_us=since_us)


def compare_controllers(
    new: KnownController, old: KnownController, since_us: int
) -> Iterator[Change]:
    """Yield that another controller was elected; a lower epoch is an older answer."""
    if new.leader_epoch > old.leader_epoch and new.leader != old.leader:
        subject = ChangedSubject(before=str(old.leader), after=str(new.leader))
        yield Change(kind=ChangeEventKind.CONTROLLER_MOVED, subject=subject, since_us=since_us)
