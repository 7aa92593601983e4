"""The latest state of the service: one immutable value that any thread may read at any time.

A reader takes it once and uses that value throughout; the next round replaces it as a whole.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from typing import Final

from rules.facts.gap_words import GapKey, gaps_since
from rules.facts.scrapes import EndpointState
from rules.facts.snapshot import Snapshot
from rules.judgement import Judgement
from rules.open_findings import Identity, OpenFinding
from rules.time_lag import TimeLags
from rules.view import View
from service.metrics.log_stats import LogStats
from service.rounds.persistence import PersistenceStatus

STALE_INTERVALS: Final = 3
STALE_SECONDS: Final = 30.0  # the limits of a round and of storing it, and some for a busy machine


class RoundOutcome(StrEnum):
    """How a round ended."""

    COMPLETE = "complete"
    GAPS = "gaps"  # something could not be seen
    FAILED = "failed"  # the cluster could not be queried at all
    DIED = "died"  # a defect of ours ended it: the log has the traceback


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ServiceState:
    """The state of the service after a round, and before the first one."""

    cluster: str  # the configured name
    version: str  # of Tidemark
    started_at: datetime  # aware, UTC
    interval_seconds: float
    # Why no baseline runs are made; None: they are, or are turned off.
    nightly_error: str | None = None
    rounds: int = 0  # made since the start
    at: datetime | None = None  # when the last round began; None before the first
    outcome: RoundOutcome | None = None
    error: str | None = None  # why the last round failed, one line
    took_seconds: float | None = None  # the last round, judging and storing included
    snapshot: Snapshot | None = None  # of the last round that gave one
    view: View | None = None  # what the rules were given in that round
    time_lags: TimeLags | None = None  # of that round
    judgements: tuple[Judgement, ...] = ()  # of the last round
    open_findings: Mapping[Identity, OpenFinding] = field(default_factory=dict)
    persistence: PersistenceStatus = field(default_factory=PersistenceStatus)
    restarts: Mapping[str, int] = field(default_factory=dict)  # task -> times it was restarted
    logs: Mapping[str, LogStats] = field(default_factory=dict)  # by source of log lines
    endpoints: tuple[EndpointState, ...] = ()  # of metrics of brokers and clients
    # Since when each gap of the snapshot has been in every observation.
    gaps_since: Mapping[GapKey, datetime] = field(default_factory=dict)
    is_stale: bool = False  # no round has ended for so long that nothing of it is news

    @property
    def is_current(self) -> bool:
        """Whether the snapshot is that of the last round, and that one is recent."""
        if self.snapshot is None or self.outcome in (RoundOutcome.FAILED, RoundOutcome.DIED):
            return False
        return self.snapshot.taken_at == self.at and not self.is_stale

    @property
    def stale_after_seconds(self) -> float:
        """Return after how long a state is stale: one slow or missed round does not make it so."""
        return STALE_INTERVALS * self.interval_seconds + STALE_SECONDS


class Latest:
    """Holds the newest state; one writer, any number of readers."""

    def __init__(
        self, first: ServiceState, *, monotonic: Callable[[], float] = lambda: 0.0
    ) -> None:
        """Without a clock a state never becomes stale."""
        self._state = first
        self._monotonic = monotonic
        self._round_ended = monotonic()  # or the start

    @property
    def state(self) -> ServiceState:
        """Return the newest state, marked if no round has ended for long: a round may hang."""
        state = self._state
        silent = self.silent_seconds
        if silent <= state.stale_after_seconds:
            return state
        error = state.error or f"no round has ended for {silent:.0f} s"
        return replace(state, is_stale=True, error=error)

    @property
    def silent_seconds(self) -> float:
        """Return for how long no round has ended."""
        return self._monotonic() - self._round_ended

    def publish(self, state: ServiceState) -> None:
        """Replace the state."""
        if state.rounds != self._state.rounds:
            self._round_ended = self._monotonic()
        since = gaps_since(self._state.gaps_since, state.snapshot)
        self._state = replace(state, gaps_since=since)
