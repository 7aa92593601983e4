"""Rounds that wait while the database is away: bounded, in order, and every loss counted.

What a later round of the same cluster says again is dropped, which is no loss: a checkpoint, and
every change that only said that a finding is as it was. A round of which nothing is left goes too,
so that thousands of open findings do not fill the memory while the database is away. When there are
still too many rounds, the oldest without a transition goes first, then the oldest of all.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from rules.errors import StoreError
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


class WriteBehind:
    """Stores rounds as long as the database answers, and keeps them while it does not.

    One caller at a time: rounds never overlap.
    """

    def __init__(
        self, store: Callable[[Sequence[Round]], None], limit: int = WAITING_ROUNDS
    ) -> None:
        self._store = store
        self._pending = Pending(limit=limit)

    @property
    def pending(self) -> Pending:
        """Return what waits and what was lost: a metric, and a line on the dashboard."""
        return self._pending

    def add(self, new: Round) -> StoreError | None:
        """Queue a round and store all that waits; return why it has to wait on, if it does.

        Raises:
            StoreError: one that no later try will mend; the rounds wait on.
        """
        self._pending = self._pending.add(new)
        return self.flush()

    def flush(self) -> StoreError | None:
        """Store all that waits in one transaction; return why it has to wait on, if it does.

        Raises:
            StoreError: one that no later try will mend; the rounds wait on.
        """
        if not self._pending.rounds:
            return None
        try:
            self._store(self._pending.rounds)
        except StoreError as exc:
            if not exc.retryable:
                raise
            return exc
        self._pending = replace(self._pending, rounds=())
        return None
