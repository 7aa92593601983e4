"""Rounds that wait while the database is away: bounded, in order, and every loss counted.

What a later round of the same cluster says again is dropped, which is no loss: a checkpoint, and
every change that only said that a finding is as it was. A round of which nothing is left goes too,
so that thousands of open findings do not fill the memory while the database is away. When there are
still too many rounds or changes, the oldest without a transition goes first, then the oldest of all.
What rounds leave of alerts merges into the newest round of their cluster, so that none of it is lost
with a round.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from rules.open_findings import Change, Identity, Step
from service.alerting.alerts.delta import AlertDelta
from service.storage.rounds.rounds import Round

WAITING_ROUNDS: Final = 1000  # four hours of a round every 15 seconds
WAITING_CHANGES: Final = (
    200_000  # about 200 MB; a broker that flaps changes thousands in each round
)
# What one transaction stores: a second or two, so that none reaches the limits of time.
PART_ROUNDS: Final = 50
PART_CHANGES: Final = 20_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Pending:
    """What waits, oldest first, and what was dropped since the start."""

    limit: int = WAITING_ROUNDS
    max_changes: int = WAITING_CHANGES
    rounds: tuple[Round, ...] = ()
    lost_rounds: int = 0
    lost_transitions: int = 0

    def __post_init__(self) -> None:
        if self.limit < 1:
            raise ValueError(f"a buffer of {self.limit} rounds holds nothing")

    def add(self, new: Round) -> Pending:
        """Return the buffer with one more round at its end."""
        said = {change.identity: change for change in new.changes}
        older = (_superseded(one, new, said) for one in self.rounds)
        kept = (one for one in older if _is_of_use(one))
        return _bounded(replace(self, rounds=(*kept, _with_alerts_of(self.rounds, new))))

    def first_part(self) -> tuple[Round, ...]:
        """Return the oldest rounds, as many as one transaction stores; none only if none waits."""
        count = changes = 0
        for one in self.rounds[:PART_ROUNDS]:
            changes += len(one.changes)
            if count and changes > PART_CHANGES:
                break
            count += 1
        return self.rounds[:count]

    def without(self, part: Sequence[Round]) -> Pending:
        """Return the buffer without its oldest rounds, which were stored."""
        return replace(self, rounds=self.rounds[len(part) :])


def _is_of_use(one: Round) -> bool:
    return bool(one.changes) or one.checkpoint is not None or one.alerts is not None


def _superseded(old: Round, new: Round, said: Mapping[Identity, Change]) -> Round:
    """Return what of a round a later one does not say again."""
    checkpoint = None if new.checkpoint else old.checkpoint
    only_tells = old.transitions == len(old.changes)
    if old.cluster != new.cluster:
        return old
    if old.alerts is not None:
        old = replace(old, alerts=None)  # the new one has it
    if only_tells and checkpoint is old.checkpoint:
        return old
    kept = tuple(
        change for change in old.changes if not _is_said_again(change, said.get(change.identity))
    )
    if len(kept) == len(old.changes) and checkpoint is old.checkpoint:
        return old
    return replace(old, changes=kept, checkpoint=checkpoint)


def _with_alerts_of(rounds: Sequence[Round], new: Round) -> Round:
    """Return a round with what the ones before it leave of the same cluster's alerts."""
    left: AlertDelta | None = None
    for one in (*rounds, new):
        if one.cluster == new.cluster and one.alerts is not None:
            left = one.alerts if left is None else left.then(one.alerts)
    return new if left is new.alerts else replace(new, alerts=left)


def _is_said_again(old: Change, new: Change | None) -> bool:
    if new is None or old.is_transition:
        return False
    # A BREACH sets the time of the last one; only another BREACH sets it anew.
    return old.step is not Step.STILL or new.step is Step.STILL


def _bounded(pending: Pending) -> Pending:
    while places := _too_many(pending):
        pending = _without_one(pending, places)
    return pending


def _too_many(pending: Pending) -> Sequence[int]:
    """Return the places of rounds of which one has to go; never the newest, however large it is."""
    every = range(len(pending.rounds) - 1)
    older = [place for place in every if pending.rounds[place].alerts is None] or every
    if len(pending.rounds) > pending.limit:
        return older
    if sum(len(one.changes) for one in pending.rounds) > pending.max_changes:
        return [place for place in older if pending.rounds[place].changes]
    return ()


def _without_one(pending: Pending, places: Sequence[int]) -> Pending:
    """Drop the oldest round without a transition, else the oldest, of those at some places."""
    quiet = (place for place in places if not pending.rounds[place].transitions)
    place = next(quiet, places[0])
    return replace(
        pending,
        rounds=pending.rounds[:place] + pending.rounds[place + 1 :],
        lost_rounds=pending.lost_rounds + 1,
        lost_transitions=pending.lost_transitions + pending.rounds[place].transitions,
    )
