"""Suspicions: rejected batches that only a counter shows, by broker and time.

A broker counts each error of a request (`ErrorsPerSec`), and neither its partition nor its producer. Where
its log cannot be read, as in managed Kafka, that is all that shows a rejected sequence. A suspicion
holds what was counted, which partitions the broker led then, and what became of them. It is never a
proof of loss, and ends without one unless every partition proves that nothing can be missing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TypeAlias

from rules.facts.identity import TopicId, TopicPartition
from rules.facts.times import change_if_set

CounterKey: TypeAlias = tuple[str, str]  # address of the process, Kafka's name of the error


class SuspicionSource(StrEnum):
    """What counted."""

    BROKER = "broker"  # rejected batches
    CLIENT = "client"  # records that failed or were sent again, after a leader change


class SuspicionOutcome(StrEnum):
    """What became of a suspicion."""

    AWAITING_LINES = "awaiting_lines"  # a broker's log is read, and the lines may still come
    BY_LINES = "by_lines"  # a broker's log has the rejections: they are judged as sequence events
    NOTHING_MISSING = "nothing_missing"  # in no partition can an acknowledged record be missing
    LOSS_REPORTED = (
        "loss_reported"  # a leader change of one of the partitions lost committed records
    )
    LEADER_CHANGED = "leader_changed"  # a leader change of one may have lost records
    # Leaders changed before the partition was observed, or while unclean elections were allowed.
    CLEAN_NOT_PROVEN = "clean_not_proven"
    NOT_OBSERVED = "not_observed"  # a partition's leader gave no answer
    BROKER_NOT_KNOWN = "broker_not_known"  # the counter's address is no broker's


SETTLED = frozenset({SuspicionOutcome.BY_LINES, SuspicionOutcome.NOTHING_MISSING})


class PartitionState(StrEnum):
    """What is known of a partition's leaders before the rejections."""

    FIRST_EPOCH = "first_epoch"  # it never had another leader
    CLEAN_CHANGES = "clean_changes"  # every change since its creation was certainly clean
    LONG_LED = "long_led"  # no change for longer than brokers remember a producer that is idle
    CONTINUED = "continued"  # each of its producers goes on without a gap over the change
    LOST = "lost"  # a change lost committed records
    CHANGED = "changed"  # a change was unclean, or it is not known whether it was
    # It had changes before it was observed, or seemingly clean ones while unclean elections were allowed.
    CLEAN_NOT_PROVEN = "clean_not_proven"
    NOT_OBSERVED = "not_observed"  # its leader gave no answer


# In these no acknowledged record can be missing before a rejection.
PROVEN = frozenset(
    {
        PartitionState.FIRST_EPOCH,
        PartitionState.CLEAN_CHANGES,
        PartitionState.LONG_LED,
        PartitionState.CONTINUED,
    }
)


class BreakKind(StrEnum):
    """How a producer's batches in the log do not follow each other."""

    NEW_EPOCH = "new_epoch"  # it began again at sequence 0 in a newer epoch, without a marker
    JUMP = "jump"  # sequences between are not there
    SILENT = "silent"  # nothing of it was appended since the leader change
    STARTS_LATE = "starts_late"  # the first batch in the log does not begin at sequence 0


@dataclass(frozen=True, slots=True, kw_only=True)
class SequenceBreak:
    """A place in a partition's log at which a producer's sequence does not go on."""

    producer_id: int
    kind: BreakKind
    last_sequence: int | None  # before it, None: nothing of this producer was found before
    last_epoch: int | None  # of the producer
    last_leader_epoch: int | None  # in which that batch was appended
    next_offset: int | None  # of the batch after it; None: there is none
    next_sequence: int | None
    next_epoch: int | None
    next_leader_epoch: int | None

    @property
    def is_over_change(self) -> bool:
        """Whether the leader changed in between; without a change nothing acknowledged is missing."""
        return self.last_leader_epoch is None or self.last_leader_epoch != self.next_leader_epoch


@dataclass(frozen=True, slots=True, kw_only=True)
class SuspectedPartition:
    """One partition that may have rejected the batches."""

    name: TopicPartition
    topic_id: TopicId | None
    state: PartitionState
    leader_epoch: int | None
    changed_us: int | None = None  # the last observation before the change, or when it was seen
    change_epoch: int | None = None  # the leader epoch that the change began
    is_written: bool = False  # its log grew around that time
    producers: int | None = None  # that its leader remembers; None: not described yet
    breaks: tuple[SequenceBreak, ...] = ()

    @property
    def is_open(self) -> bool:
        """Whether an acknowledged record may be missing here."""
        return self.state not in PROVEN


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientRise:
    """A client of which records failed, or were sent again, at that time; None: not exposed."""

    client_id: str
    address: str
    topic: str | None
    errors: int
    retries: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Suspicion:
    """Rejections that a counter shows; times in microseconds since 1970-01-01 UTC."""

    id: str  # unique, lasting
    source: SuspicionSource
    error: str  # Kafka's name of it; of a client: record-error or record-retry
    address: str  # of the process that counted; of a client's the topic
    brokers: tuple[int, ...]  # it is one of these; empty: the address is no broker's
    topic: str | None  # None: of any topic
    since_us: int  # it was counted after this
    until_us: int  # and before this
    count: int
    opened_us: int
    outcome: SuspicionOutcome
    partitions: tuple[SuspectedPartition, ...] = ()  # the worst first; those that are proven last
    partition_count: int = 0  # all that were led by the broker then
    open_count: int = 0  # of those, in which something may be missing
    clients: tuple[ClientRise, ...] = ()
    hints: Mapping[str, int] = field(default_factory=dict)  # other errors of that time, by name
    queries: int = 0  # rounds that queried the leaders since the last count
    total_queries: int = 0
    is_querying: bool = False  # the next round queries them
    ended_us: int | None = None

    @property
    def is_settled(self) -> bool:
        """Whether nothing acknowledged can be missing, or lines show what was rejected."""
        return self.outcome in SETTLED


@dataclass(frozen=True, slots=True, kw_only=True)
class CounterSeen:
    """How far a counter has been handled."""

    total: int
    seen_us: int
    handled_us: int  # the end of its latest rise that was handled


@dataclass(frozen=True, slots=True, kw_only=True)
class SuspicionMemory:
    """The remembered suspicions, and the counters that they begin with."""

    open: tuple[Suspicion, ...] = ()  # the latest last
    ended: tuple[Suspicion, ...] = ()  # of the last day, ascending by when they ended
    counters: Mapping[CounterKey, CounterSeen] = field(default_factory=dict)
    # When each process with such counters was read last: a counter that is new there counts from 0.
    addresses: Mapping[str, int] = field(default_factory=dict)
    # Processes that an earlier Tidemark read, and this one not yet: their totals are compared once.
    to_compare: frozenset[str] = frozenset()

    @property
    def suspicions(self) -> tuple[Suspicion, ...]:
        """Return all suspicions, those that ended first."""
        return (*self.ended, *self.open)

    @property
    def undecided(self) -> tuple[Suspicion, ...]:
        """Return those because of which it is not known whether records are missing."""
        awaiting = SuspicionOutcome.AWAITING_LINES
        return tuple(
            each for each in self.open if not each.is_settled and each.outcome is not awaiting
        )


def merge_suspicions(stored: SuspicionMemory, seen: SuspicionMemory) -> SuspicionMemory:
    """Merge the stored suspicions into memory; totals of the earlier process are compared once."""
    ids = {suspicion.id for suspicion in seen.suspicions}
    return SuspicionMemory(
        open=(*(each for each in stored.open if each.id not in ids), *seen.open),
        ended=(*(each for each in stored.ended if each.id not in ids), *seen.ended),
        counters={**seen.counters, **stored.counters},
        addresses={**seen.addresses, **stored.addresses},
        to_compare=frozenset(stored.addresses),
    )


def suspicions_with_times(memory: SuspicionMemory, change: Callable[[int], int]) -> SuspicionMemory:
    """Return the memory with its times changed."""
    return replace(
        memory,
        open=tuple(_move(suspicion, change) for suspicion in memory.open),
        ended=tuple(_move(suspicion, change) for suspicion in memory.ended),
        counters={
            key: replace(seen, seen_us=change(seen.seen_us), handled_us=change(seen.handled_us))
            for key, seen in memory.counters.items()
        },
        addresses={address: change(seen_us) for address, seen_us in memory.addresses.items()},
    )


def latest_suspicion_time(memory: SuspicionMemory) -> int:
    """Return the latest remembered time, 0 where there is none."""
    times = [suspicion.ended_us or suspicion.until_us for suspicion in memory.suspicions]
    times += [max(seen.seen_us, seen.handled_us) for seen in memory.counters.values()]
    return max([*times, *memory.addresses.values()], default=0)


def _move(suspicion: Suspicion, change: Callable[[int], int]) -> Suspicion:
    return replace(
        suspicion,
        since_us=change(suspicion.since_us),
        until_us=change(suspicion.until_us),
        opened_us=change(suspicion.opened_us),
        ended_us=change_if_set(suspicion.ended_us, change),
        partitions=tuple(
            replace(partition, changed_us=change_if_set(partition.changed_us, change))
            for partition in suspicion.partitions
        ),
    )
