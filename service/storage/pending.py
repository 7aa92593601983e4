"""Rounds that wait while the database is away: bounded, in order, and every loss counted.

What a later round of the same cluster says again is dropped, which is no loss: a checkpoint, and
every change that only said that a finding is as it was. A round of which nothing is left goes too,
so that thousands of open findings do not fill the memory while the database is away. When there are
still too many rounds, the oldest without a transition goes first, then the oldest of all.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from rules.open_findings import Change, Identity, Step
from service.storage.rounds import Round

WAITING_ROUNDS: Final = 1000  # four hours of a round every 15 seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class Pending:
    """What waits, oldest first, and what was dropped since the start."""

    limit: int = WAITING_ROUNDS
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
        kept = (one for one in older if one.changes or one.checkpoint is not None)
        grown = replace(self, rounds=(*kept, new))
        return grown if len(grown.rounds) <= self.limit else _without_one(grown)


def _superseded(old: Round, new: Round, said: Mapping[Identity, Change]) -> Round:
    """Return what of a round a later one does not say again."""
    if old.cluster != new.cluster:
        return old
    kept = tuple(one for one in old.changes if not _is_said_again(one, said.get(one.identity)))
    return replace(old, changes=kept, checkpoint=None if new.checkpoint else old.checkpoint)


def _is_said_again(old: Change, new: Change | None) -> bool:
    if new is None or old.is_transition:
        return False
    # A BREACH sets the time of the last one; only another BREACH sets it anew.
    return old.step is not Step.STILL or new.step is Step.STILL


def _without_one(pending: Pending) -> Pending:
    """Drop the oldest round without a transition, else the oldest; never the newest."""
    quiet = (place for place, one in enumerate(pending.rounds[:-1]) if not one.transitions)
    place = next(quiet, 0)
    return replace(
        pending,
        rounds=pending.rounds[:place] + pending.rounds[place + 1 :],
        lost_rounds=pending.lost_rounds + 1,
        lost_transitions=pending.lost_transitions + pending.rounds[place].transitions,
    )
