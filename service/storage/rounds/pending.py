"""Rounds that wait while the database is away: bounded, in order, and every loss counted.

What a later round of the same cluster repeats is dropped, which is no loss: a checkpoint, and every change
that only says that a finding is unchanged. A round that is empty then is dropped too, so that thousands of
open findings do not fill the memory. When there are still too many rounds or changes, the oldest without a
transition is dropped first, then the oldest of all. Deltas of alerting merge into the newest round of their
cluster, so that none is lost with a round, and so do change events, of which the oldest are dropped when there
are too many.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from rules.open_findings import Change, Identity, Step
from service.alerting.alerts.delta import AlertDelta
from service.storage.rounds.clusters import ClusterKey
from service.storage.rounds.pieces import split, with_alerts_of_events
from service.storage.rounds.rounds import Round

WAITING_ROUNDS: Final = 1000  # four hours of a round every 15 seconds
# About 200 MB; a broker that flaps changes thousands in each round.
WAITING_CHANGES: Final = 200_000
WAITING_EVENTS: Final = 2000  # of one cluster
# Limits of one transaction: half a second, so that it ends before the timeouts on a machine that is busy.
PART_ROUNDS: Final = 50
PART_CHANGES: Final = 2000  # of findings, and rows of alerts


@dataclass(frozen=True, slots=True, kw_only=True)
class Pending:
    """Waiting rounds, oldest first, and counts of what was dropped since the start."""

    limit: int = WAITING_ROUNDS
    max_changes: int = WAITING_CHANGES
    rounds: tuple[Round, ...] = ()
    lost_rounds: int = 0
    lost_transitions: int = 0
    lost_openings: frozenset[tuple[ClusterKey, Identity]] = frozenset()  # not stored since

    def __post_init__(self) -> None:
        if self.limit < 1:
            raise ValueError(f"a buffer of {self.limit} rounds holds nothing")

    def add(self, new: Round) -> Pending:
        """Return the buffer with one more round at its end."""
        said = {change.identity: change for change in new.changes}
        older = (_drop_superseded(round_, new, said) for round_ in self.rounds)
        useful = (round_ for round_ in older if _is_of_use(round_))
        newest = _with_events_of(self.rounds, _with_alerts_of(self.rounds, new))
        return _drop_excess(replace(self, rounds=(*useful, newest)))

    def first_part(self, most: int = PART_CHANGES) -> tuple[tuple[Round, ...], Pending]:
        """Return the oldest rounds, as many as one transaction stores, and the buffer without them.

        It has about `most` changes. A round with more is stored piece by piece: the piece is a round too.
        """
        count = changes = 0
        for round_ in self.rounds[:PART_ROUNDS]:
            changes += round_.size
            if count and changes > most:
                break
            count += 1
        first, others = self.rounds[:count], self.rounds[count:]
        if count == 1 and first[0].size > most:
            piece, rest = split(first[0], most)
            first, others = (piece,), (*rest, *others)
        first, others = with_alerts_of_events(first, others)
        return first, replace(self, rounds=others)

    def tried(self, part: Sequence[Round]) -> Pending:
        """Return the buffer with a part before it that was taken out and may or may not be stored.

        It is tried again as it is, or in smaller pieces of its own, so that what is stored is recognised.
        """
        return replace(self, rounds=(*part, *self.rounds))


def _is_of_use(round_: Round) -> bool:
    is_more = round_.checkpoint is not None or round_.alerts is not None
    return bool(round_.changes) or is_more or bool(round_.change_events)


def _drop_superseded(old: Round, new: Round, said: Mapping[Identity, Change]) -> Round:
    """Return a round without what a later one repeats."""
    checkpoint = None if new.checkpoint else old.checkpoint
    has_only_transitions = old.transitions == len(old.changes)
    if old.cluster != new.cluster:
        return old
    if old.is_piece:
        return replace(old, checkpoint=checkpoint) if old.checkpoint is not checkpoint else old
    if old.alerts is not None or old.change_events:
        old = replace(old, alerts=None, change_events=())  # merged into the new one
    if has_only_transitions and checkpoint is old.checkpoint:
        return old
    changes = tuple(
        change for change in old.changes if not _is_superseded(change, said.get(change.identity))
    )
    if len(changes) == len(old.changes) and checkpoint is old.checkpoint:
        return old
    return replace(old, changes=changes, checkpoint=checkpoint)


def _with_alerts_of(rounds: Sequence[Round], new: Round) -> Round:
    """Return a round with the alerting deltas of the same cluster's earlier rounds merged into its own."""
    left: AlertDelta | None = None
    for round_ in (*rounds, new):
        if round_.cluster == new.cluster and round_.alerts is not None and not round_.is_piece:
            left = round_.alerts if left is None else left.then(round_.alerts)
    return new if left is new.alerts else replace(new, alerts=left)


def _with_events_of(rounds: Sequence[Round], new: Round) -> Round:
    """Return a round with the change events of the same cluster's earlier rounds before its own."""
    earlier = [
        event
        for round_ in rounds
        if round_.cluster == new.cluster and not round_.is_piece
        for event in round_.change_events
    ]
    if not earlier:
        return new
    return replace(new, change_events=(*earlier, *new.change_events)[-WAITING_EVENTS:])


def _is_superseded(old: Change, new: Change | None) -> bool:
    if new is None or old.is_transition:
        return False
    # A BREACH sets the time of the last breach; only another BREACH replaces it.
    return old.step is not Step.STILL or new.step is Step.STILL


def _drop_excess(pending: Pending) -> Pending:
    while places := _too_many(pending):
        pending = _without_one(pending, places)
    return pending


def _too_many(pending: Pending) -> Sequence[int]:
    """Return the positions of rounds one of which has to be dropped; never the newest."""
    every = [place for place, round_ in enumerate(pending.rounds[:-1]) if not round_.is_piece]
    older = [place for place in every if pending.rounds[place].alerts is None] or every
    if len(pending.rounds) > pending.limit:
        return older
    if sum(len(round_.changes) for round_ in pending.rounds) > pending.max_changes:
        return [place for place in older if pending.rounds[place].changes]
    return ()


def _without_one(pending: Pending, places: Sequence[int]) -> Pending:
    """Drop the oldest round without a transition, else the oldest, among some positions."""
    quiet = (place for place in places if not pending.rounds[place].transitions)
    place = next(quiet, places[0])
    lost = pending.rounds[place]
    return replace(
        pending,
        rounds=pending.rounds[:place] + pending.rounds[place + 1 :],
        lost_rounds=pending.lost_rounds + 1,
        lost_transitions=pending.lost_transitions + lost.transitions,
        lost_openings=pending.lost_openings.union(
            (lost.cluster, change.identity) for change in lost.changes if change.step is Step.OPENED
        ),
    )
