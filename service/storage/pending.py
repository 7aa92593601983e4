"""Rounds that wait while the database is away: bounded, in order, and every loss counted.

A round's checkpoint is superseded by that of a later round of the same cluster, which is no loss.
When there are too many rounds the oldest without a transition goes first, since it only said that
things are as they were; then the oldest of all.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from rules.errors import StoreError
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
        kept = self.rounds
        if new.checkpoint is not None:
            kept = tuple(
                replace(one, checkpoint=None) if one.cluster == new.cluster else one for one in kept
            )
        grown = replace(self, rounds=(*kept, new))
        return grown if len(grown.rounds) <= self.limit else _without_one(grown)


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
