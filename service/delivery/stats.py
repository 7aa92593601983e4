"""Counts of deliveries since the start of the process, and of what waits."""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from rules.names import NOTIFICATION_DURATION
from service.alerting.alerts.outbox_row import RowState
from service.alerting.sending.sender import Attempt
from service.metrics.alerting import DeliveryStats, ReceiverStats
from service.storage.delivery.deliveries import Backlog

_BOUNDS = NOTIFICATION_DURATION.buckets


@dataclass(slots=True)
class _Tally:
    """One receiver's counters."""

    outcomes: Counter[str] = field(default_factory=Counter)
    failures: Counter[str] = field(default_factory=Counter)
    durations: list[int] = field(default_factory=lambda: [0] * (len(_BOUNDS) + 1))
    seconds: float = 0.0


class Stats:
    """Counts of one process; thread-safe."""

    def __init__(self, receivers: Mapping[str, object]) -> None:
        self._tallies = {name: _Tally() for name in receivers}
        self._backlogs: Mapping[str, Backlog] | None = None  # None: not read yet
        self._fallbacks = 0
        self._rejected = 0
        self._turn = threading.Lock()
        self.is_up = True  # whether the outbox answers

    def attempted(self, receiver: str, attempt: Attempt) -> None:
        """Count an attempt."""
        tally, took = self._tallies[receiver], attempt.took.total_seconds()
        if attempt.failure is not None:
            tally.failures[str(attempt.failure)] += 1
        tally.durations[bisect_left(_BOUNDS, took)] += 1
        tally.seconds += took

    def ended(self, receiver: str, state: RowState, count: int = 1) -> None:
        """Count notifications that ended; those of removed receivers are not counted."""
        with self._turn:
            if receiver in self._tallies:
                self._tallies[receiver].outcomes[str(state)] += count

    def fell_back(self, count: int) -> None:
        """Count notifications to the fallback receiver."""
        self._fallbacks += count

    def rejected(self) -> None:
        """Count an attempt that the database rejects for good: its notification will be sent again."""
        self._rejected += 1

    def waiting(self, backlogs: Mapping[str, Backlog]) -> None:
        """Take the backlogs of the outbox."""
        self._backlogs = dict(backlogs)

    def reported(self, now: datetime) -> DeliveryStats:
        """Return all stats as of now."""
        return DeliveryStats(
            is_up=self.is_up,
            fallbacks=self._fallbacks,
            rejected_rows=self._rejected,
            receivers={name: self._of(name, tally, now) for name, tally in self._tallies.items()},
        )

    def _of(self, name: str, tally: _Tally, now: datetime) -> ReceiverStats:
        backlog = None if self._backlogs is None else self._backlogs.get(name, Backlog())
        return ReceiverStats(
            outcomes=dict(tally.outcomes),
            failures=dict(tally.failures),
            durations=tuple(tally.durations),
            seconds=tally.seconds,
            waiting=None if backlog is None else backlog.waiting,
            dead=None if backlog is None else backlog.dead,
            oldest_seconds=None if backlog is None else _oldest_seconds(backlog, now),
        )


def _oldest_seconds(backlog: Backlog, now: datetime) -> float:
    """Return for how long the oldest notification has waited, 0 if none waits."""
    since = backlog.oldest_waiting_at
    return 0.0 if since is None else max((now - since).total_seconds(), 0.0)
