"""The rounds of `tidemark tx`: as few as needed to determine which transaction holds which offset.

The first round shows what coordinators list and which offsets are held; the next one describes the
producers that hold them, and the third confirms that no coordinator will ever end a transaction.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

import numpy as np

from collectors.naming import counted, listed
from rules.catalogue.read_committed_consumers_blocked import TRANSIENT
from rules.facts.column import Bools, Column, Int64s
from rules.facts.gap import Gap, GapCause, GapScope
from rules.facts.identity import TopicPartition
from rules.facts.matching import matching_rows
from rules.facts.memory import Memory, advance
from rules.facts.transaction_unknown import UnknownReason
from rules.question import ProducersQuestion
from rules.transactions.classes import TransactionClass
from rules.transactions.listing import HOLDING_SCOPES, gaps_about
from rules.transactions.lso_blocker import lso_blockers
from rules.view import View
from service.observe.cluster_reader import Scope
from service.observe.watch import SnapshotSource

AT_ONCE: Final = 4  # rounds at most, one right after the other
NEEDED: Final = 3  # rounds that confirm a hanging transaction: held, seen unlisted, unlisted again
AT_MOST: Final = 6  # rounds, if a broker has just died or a new transaction appears meanwhile
TRANSIENT_CAUSES: Final = frozenset(
    {
        GapCause.TIMEOUT,
        GapCause.UNREACHABLE,
        GapCause.LEADER_CHANGING,
        GapCause.COORDINATOR_MOVING,
    }
)

_NO_ROWS: Final[Int64s] = np.zeros(0, np.int64)


class ClusterObserver:
    """Makes rounds over one cluster, with the memory that rules need."""

    def __init__(self, source: SnapshotSource) -> None:
        self._source = source
        self._memory: Memory | None = None

    def observe(self, *questions: ProducersQuestion) -> View:
        """Make one round."""
        snapshot = self._source.read(Scope(questions=questions))
        memory = self._memory
        before = memory if memory and memory.cluster_id == snapshot.cluster_id else None
        self._memory = advance(snapshot, before)
        return View(snapshot=snapshot, memory=self._memory, before=before, now=snapshot.taken_at)


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservedRounds:
    """The last of several rounds, and the partitions whose producers were never described."""

    view: View
    overlooked: tuple[TopicPartition, ...] = ()

    def gaps(self, scopes: Iterable[GapScope]) -> tuple[Gap, ...]:
        """Return the gaps of these scopes, with one more for the overlooked partitions."""
        own_gaps = gaps_about(self.view.snapshot, scopes)
        if not self.overlooked:
            return own_gaps
        names = listed([str(name) for name in self.overlooked])
        own = Gap(
            what=f"open transactions of {counted(len(self.overlooked), 'partition')} ({names})",
            why="they moved on, have a new leader, or were not seen before: run the command again",
            cause=GapCause.LEADER_CHANGING,
            scope=GapScope.PRODUCERS,
        )
        return (*own_gaps, own)


def observe_at_once(observer: ClusterObserver) -> ObservedRounds:
    """Make rounds at once, until every partition with an open span has its producers described."""
    view, rows = observer.observe(), _NO_ROWS
    unclear = _unclear(view)
    for _ in range(AT_ONCE - 1):
        open_rows = _open_rows(view)
        if not len(open_rows):
            return ObservedRounds(view=view)
        before, view = view, observer.observe(_about(view, open_rows))
        unclear = _still_unclear(view, before, unclear)
        rows = _overlooked(view, before, unclear)
        if not len(rows) and not _has(view, (UnknownReason.CONFIRMING,)):
            break
    return ObservedRounds(view=view, overlooked=_names(view, rows))


def find_hanging(observer: ClusterObserver, *, begin: Callable[[int, int], None]) -> ObservedRounds:
    """Make rounds until it is certain what hangs, or that it cannot be determined.

    `begin` is called before each round with its number and the least number of rounds; it waits until
    the round is due. Partitions that are held from round to round are always described. The third
    round also describes those that moved on and were open all the time: a hanging transaction may
    follow one that has just ended. Transactions that began after the first round need no check.
    """
    begin(1, NEEDED)
    view, number = observer.observe(), 1
    rows = queried = _NO_ROWS
    unclear = _unclear(view)
    while number < AT_MOST:
        number += 1
        begin(number, max(number, NEEDED))
        before, view = view, observer.observe(*([_about(view, queried)] if len(queried) else []))
        unclear = _still_unclear(view, before, unclear)
        rows = _overlooked(view, before, unclear)
        if not len(rows) and not _may_pass(view):
            break
        queried = np.union1d(rows, _behind(view))
    return ObservedRounds(view=view, overlooked=_names(view, rows))


def _may_pass(view: View) -> bool:
    """Whether the cause of an unknown verdict is transient, as after a broker's death."""
    gaps = gaps_about(view.snapshot, HOLDING_SCOPES)
    return _has(view, TRANSIENT) or any(gap.cause in TRANSIENT_CAUSES for gap in gaps)


def _open_rows(view: View) -> Int64s:
    span = view.snapshot.offsets.open_span
    return np.flatnonzero(span.valid & (span.values > 0)).astype(np.int64)


def _about(view: View, rows: Int64s) -> ProducersQuestion:
    return ProducersQuestion(view.snapshot.partitions, rows)


def _unclear(view: View) -> Bools:
    """Mark partitions that may have an open span, and whose producers were not described now."""
    span = view.snapshot.offsets.open_span
    may_be_open: Bools = ~span.valid | (span.values > 0)
    mask: Bools = may_be_open & ~view.snapshot.producers.observed
    return mask


def _still_unclear(view: View, before: View, unclear: Bools) -> Bools:
    """Mark partitions that are unclear now and were so in each round before, as far as observed."""
    places = matching_rows(view.snapshot.partitions, before.snapshot.partitions, needs_id=False)
    was = Column.known(unclear.astype(np.int64)).take(places)
    mask: Bools = _unclear(view) & ~(was.valid & (was.values == 0))
    return mask


def _behind(view: View) -> Int64s:
    """Return the rows with an uncertain transaction after the one that holds the last stable offset.

    The collector describes producers by itself only where an offset is held.
    """
    stable = view.snapshot.offsets.last_stable_offset
    rows = {
        blocker.row
        for blocker in lso_blockers(view)
        if blocker.class_ is TransactionClass.HANGING or blocker.unknown_reason in TRANSIENT
        if (held_from := stable[blocker.row]) is not None
        and (blocker.start_offset or 0) > held_from
    }
    return np.array(sorted(rows), np.int64)


def _overlooked(view: View, before: View, unclear: Bools) -> Int64s:
    """Return the rows that may be held and whose producers were not described.

    Rows that were not open in the round before need no check, nor do rows that have moved since, unless
    they were `unclear` in every round. If a leader rejected the request there is a gap already, and
    repeating it is of no use.
    """
    if any(gap.scope is GapScope.PRODUCERS for gap in view.snapshot.gaps):
        return _NO_ROWS
    snapshot, old = view.snapshot, before.snapshot
    places = matching_rows(snapshot.partitions, old.partitions, needs_id=False)
    stable = old.offsets.last_stable_offset.take(places)
    span = old.offsets.open_span.take(places)
    moved = stable.valid & (snapshot.offsets.last_stable_offset.values > stable.values)
    is_new = span.valid & (span.values == 0)
    rows = _open_rows(view)
    overlooked: Int64s = rows[~(snapshot.producers.observed | (moved & ~unclear) | is_new)[rows]]
    return overlooked


def _names(view: View, rows: Int64s) -> tuple[TopicPartition, ...]:
    index = view.snapshot.partitions.index
    return tuple(index.topic_partition(row) for row in rows.tolist())


def _has(view: View, unknown_reasons: tuple[UnknownReason, ...]) -> bool:
    return any(blocker.unknown_reason in unknown_reasons for blocker in lso_blockers(view))
