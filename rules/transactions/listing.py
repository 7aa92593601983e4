"""The open transactions of a cluster in one list, for people: the worst first.

There is one entry per transaction that a coordinator lists as open, and one per transaction that only a
partition shows: it hangs, or its owner is not known. The groups that it blocks are computed on demand,
because that reads commits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

import numpy as np

from rules.facts.column import Bools
from rules.facts.gap import Gap, GapScope
from rules.facts.identity import BrokerId, TopicPartition
from rules.facts.last_observation import microseconds
from rules.facts.producers import OpenProducer
from rules.facts.snapshot import Snapshot
from rules.facts.times import time_of
from rules.facts.transaction_memory import SeenTransaction
from rules.facts.transaction_unknown import UnknownReason
from rules.facts.transactions import IdVisibility, Transaction, TransactionState
from rules.transactions.blocked import BlockedGroup, CommitsByRow
from rules.transactions.blocker_evidence import repair_command, running
from rules.transactions.classes import TransactionClass, class_of
from rules.transactions.lso_blocker import LsoBlocker, lso_blockers
from rules.view import View

WORST_FIRST: Final = (
    TransactionClass.HANGING,
    TransactionClass.UNKNOWN,  # it may hang
    TransactionClass.MARKER_NOT_REPLICATED,
    TransactionClass.PREPARE_COMMIT,
    TransactionClass.PREPARE_ABORT,
    TransactionClass.OVERDUE,
    TransactionClass.OPEN,
    TransactionClass.TWO_PHASE_COMMIT,
)
# Offsets are read before producers: a transaction that has just ended leaves a blocked offset behind.
NOBODY_IS_ODD_AFTER: Final = timedelta(seconds=3)
# Without these a transaction, or what it holds back, may be missing from the list.
HOLDING_SCOPES: Final = frozenset(
    {GapScope.PLACEMENT, GapScope.OFFSETS, GapScope.TRANSACTIONS, GapScope.PRODUCERS}
)
BLOCKING_SCOPES: Final = frozenset({GapScope.GROUPS, GapScope.COMMITS})  # whom it holds up


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """One partition of an open transaction; values that were not read are None."""

    name: TopicPartition
    row: int | None  # of the snapshot's partitions; None: they do not list it
    leader: BrokerId | None
    start_offset: int | None  # None: its leader was not queried, or did not answer
    last_stable_offset: int | None
    high_watermark: int | None
    holds_last_stable_offset: bool | None
    producer: OpenProducer | None  # as its leader reports it

    @property
    def open_span(self) -> int | None:
        """Return how many offsets the partition holds back."""
        if self.high_watermark is None or self.last_stable_offset is None:
            return None
        return self.high_watermark - self.last_stable_offset

    @property
    def blocks_from(self) -> int | None:
        """Return the offset beyond which no read_committed consumer reads."""
        if self.start_offset is None and self.holds_last_stable_offset:
            return self.last_stable_offset
        return self.start_offset


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedTransaction:
    """One entry of the list."""

    class_: TransactionClass
    unknown_reason: UnknownReason | None  # set where the class is unknown
    # By a coordinator, as open on these partitions; False: only a partition shows it
    is_listed: bool
    transactional_id: str | None
    producer_id: int | None
    producer_epoch: int | None
    coordinator: BrokerId | None
    state: TransactionState | None  # of the transactional id
    timeout: timedelta | None
    started_at: datetime | None  # aware, UTC, by the coordinator's clock
    first_seen_at: datetime | None  # aware, UTC, by ours
    partition_count: int | None  # None: its coordinator did not describe it
    places: tuple[Place, ...]  # those that hold a last stable offset first, then by name
    repair: str | None = None  # the command that ends it, where nothing else will

    def running(self, now: datetime) -> timedelta | None:
        """Return for how long it has been open, None where that is not known."""
        return running(self.started_at, now)

    @property
    def order(self) -> tuple[int, int, str, int, str, int, int]:
        """Return its place in the list: by class, oldest first; it is unique."""
        since = self.started_at or self.first_seen_at
        first = None if self.is_listed or not self.places else self.places[0]
        return (
            WORST_FIRST.index(self.class_),
            0 if since is None else max(microseconds(since), 0),
            self.transactional_id or "",
            self.producer_id or 0,
            "" if first is None else first.name.topic,
            0 if first is None else first.name.partition,
            0 if first is None else first.start_offset or 0,
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Listing:
    """The list, and what it may lack."""

    view: View  # of which it is the list
    commits: CommitsByRow
    transactions: tuple[ListedTransaction, ...]
    visibility: IdVisibility  # why no transactional id is hidden from us
    all_coordinators_answered: bool
    gaps: tuple[Gap, ...]
    was_ever_used: bool  # False: there is no coordinator, and no transaction ever was
    partitions_not_queried: int  # blocked by no listed transaction, and their leaders not queried

    @property
    def is_complete(self) -> bool:
        """Whether there is no other open transaction, and each entry is complete."""
        sees_all = self.visibility is not IdVisibility.UNPROVEN or not self.was_ever_used
        all_queried = not self.partitions_not_queried
        return self.all_coordinators_answered and sees_all and all_queried and not self.gaps

    def blocked_by(self, place: Place) -> list[BlockedGroup] | None:
        """Return the groups that a transaction blocks, None where that is not known."""
        if place.row is None or place.high_watermark is None:
            return None
        start = place.blocks_from
        if start is None:
            return [] if place.open_span == 0 else None
        return self.commits.blocked_groups(place.row, start)

    def holding_up(self, is_queried: Callable[[str], bool]) -> Iterator[ListedTransaction]:
        """Yield the transactions that block a group which `is_queried` selects by its id."""
        groups = self.view.snapshot.groups
        mask: Bools = np.fromiter((is_queried(group.group_id) for group in groups), np.bool_)
        if not mask.any():
            return
        for entry in self.transactions:
            if any(self._holds_up(place, mask) for place in entry.places):
                yield entry

    def _holds_up(self, place: Place, mask: Bools) -> bool:
        start = place.blocks_from
        if place.row is None or start is None:
            return False
        return self.commits.are_blocked(place.row, start, mask)


def listing(view: View) -> Listing:
    """Return the list as of a round."""
    snapshot = view.snapshot
    seen = view.memory.transactions.open
    owned: dict[str, list[LsoBlocker]] = {}
    alone: list[LsoBlocker] = []
    hidden = {
        transaction.transaction.producer_id: name
        for name, transaction in seen.items()
        if not transaction.is_seen
    }
    for held in lso_blockers(view):
        owner = _owner(held, hidden)
        if owner is not None:
            owned.setdefault(owner, []).append(held)
        elif held.unknown_reason is not UnknownReason.NOBODY_FOUND or _is_unchanged(view, held):
            alone.append(held)
    entries = [
        _listed_entry(view, transaction, owned.get(name, ())) for name, transaction in seen.items()
    ]
    entries += [_unlisted_entry(view, held) for held in alone]
    return Listing(
        view=view,
        commits=CommitsByRow(snapshot),
        transactions=tuple(sorted(entries, key=lambda entry: entry.order)),
        visibility=snapshot.transactions.visibility,
        all_coordinators_answered=snapshot.transactions.is_complete,
        gaps=gaps_about(snapshot, HOLDING_SCOPES | BLOCKING_SCOPES),
        was_ever_used=bool(seen) or snapshot.transactions.was_ever_used,
        partitions_not_queried=_count_unqueried(view, entries),
    )


def gaps_about(snapshot: Snapshot, scopes: Iterable[GapScope]) -> tuple[Gap, ...]:
    """Return the gaps of these scopes, without impossible lags, which hide no transaction."""
    selected = frozenset(scopes)
    return tuple(
        gap
        for gap in snapshot.gaps
        if gap.scope in selected and not (gap.scope is GapScope.OFFSETS and gap.group)
    )


def _owner(held: LsoBlocker, hidden: Mapping[int, str]) -> str | None:
    """Return the open transaction to which a blocker belongs.

    A producer that no coordinator lists may be one whose coordinator has stopped answering; a proven
    hanging transaction belongs to none.
    """
    entry = held.transaction
    if held.producer is None or held.class_ is TransactionClass.HANGING:
        return None
    if entry is None:
        return hidden.get(held.producer.producer_id)
    is_its = entry.partitions is None or held.name in entry.partitions
    return entry.transactional_id if entry.is_open and is_its else None


def _is_unchanged(view: View, held: LsoBlocker) -> bool:
    began, now = held.first_seen_us, microseconds(view.now)
    return began is not None and timedelta(microseconds=now - began) >= NOBODY_IS_ODD_AFTER


def _count_unqueried(view: View, entries: Iterable[ListedTransaction]) -> int:
    """Count the partitions whose blocking transaction may be missing from the list.

    A transaction that was not open in the previous round, or has moved since, has just begun or ended.
    """
    snapshot, since = view.snapshot, view.since(view.memory.last_stable_offset)
    span = snapshot.offsets.open_span
    is_held: Bools = span.valid & (span.values > 0) & ~snapshot.producers.observed
    if view.before is not None:
        is_held &= since.valid & (since.values < microseconds(view.now))
    for entry in entries:
        is_held[[place.row for place in entry.places if place.row is not None]] = False
    return int(np.count_nonzero(is_held))


def _listed_entry(
    view: View, seen: SeenTransaction, held: Sequence[LsoBlocker]
) -> ListedTransaction:
    entry = seen.transaction
    class_, unknown_reason = _classify(seen, view.now)
    by_name = {blocker.name: blocker for blocker in held}
    names = by_name.keys() | (entry.partitions or frozenset())
    return ListedTransaction(
        class_=class_,
        unknown_reason=unknown_reason,
        is_listed=True,
        transactional_id=entry.transactional_id,
        producer_id=entry.producer_id,
        producer_epoch=entry.producer_epoch,
        coordinator=entry.coordinator,
        state=entry.state,
        timeout=entry.timeout,
        started_at=entry.started_at,
        first_seen_at=_timestamp(seen.first_seen_us),
        partition_count=None if entry.partitions is None else len(entry.partitions),
        places=_sort_places(_place(view.snapshot, name, by_name.get(name)) for name in names),
    )


def _classify(
    seen: SeenTransaction, now: datetime
) -> tuple[TransactionClass, UnknownReason | None]:
    if not seen.is_seen:
        return TransactionClass.UNKNOWN, UnknownReason.COORDINATOR_NOT_SEEN
    class_ = class_of(seen.transaction, now)
    return class_, UnknownReason.NOT_DESCRIBED if class_ is TransactionClass.UNKNOWN else None


def _unlisted_entry(view: View, held: LsoBlocker) -> ListedTransaction:
    """Return an entry that only a partition shows; times of its transactional id are of another one."""
    entry: Transaction | None = held.transaction
    producer = held.producer
    hangs = held.class_ is TransactionClass.HANGING
    return ListedTransaction(
        class_=held.class_,
        unknown_reason=held.unknown_reason,
        is_listed=False,
        transactional_id=None if entry is None else entry.transactional_id,
        producer_id=None if producer is None else producer.producer_id,
        producer_epoch=None if producer is None else producer.producer_epoch,
        coordinator=None if entry is None else entry.coordinator,
        state=None if entry is None else entry.state,
        timeout=None if entry is None else entry.timeout,
        started_at=None,
        first_seen_at=_timestamp(held.first_seen_us),
        partition_count=1,
        places=(_place(view.snapshot, held.name, held),),
        repair=repair_command(view.snapshot, held) if hangs else None,
    )


def _place(snapshot: Snapshot, name: TopicPartition, held: LsoBlocker | None) -> Place:
    row = snapshot.partitions.index.row(name.topic, name.partition)
    stable = None if row is None else snapshot.offsets.last_stable_offset[row]
    end = None if row is None else snapshot.offsets.high_watermark[row]
    leader = None if row is None else snapshot.partitions.leader[row]
    start = None if held is None else held.start_offset
    return Place(
        name=name,
        row=row,
        leader=None if leader is None else BrokerId(leader),
        start_offset=start,
        last_stable_offset=stable,
        high_watermark=end,
        holds_last_stable_offset=_holds(held, start, stable, end),
        producer=None if held is None else held.producer,
    )


def _holds(
    held: LsoBlocker | None, start: int | None, stable: int | None, end: int | None
) -> bool | None:
    if stable is None:
        return None
    if held is not None and held.producer is None:
        return True  # the offset waits for the marker
    if start is not None:
        return start <= stable
    return False if stable == end else None


def _sort_places(places: Iterable[Place]) -> tuple[Place, ...]:
    return tuple(sorted(places, key=lambda place: (not place.holds_last_stable_offset, place.name)))


def _timestamp(time_us: int | None) -> datetime | None:
    return None if time_us is None else time_of(time_us)
