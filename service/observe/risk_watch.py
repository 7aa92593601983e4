"""Observes, every second, the partitions that may lose records when their leader dies.

When an ISR shrinks, the high watermark jumps to the log end, and hundreds of waiting records are
acknowledged within milliseconds. A proof of loss compares with the last observation before the leader died,
which is one of these if it died between two rounds. Nothing is judged and nothing is stored here: the next
round takes the observations. While nothing is at risk, no broker is queried.
"""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final, Protocol

import numpy as np

from collectors.at_risk_observations import AtRiskObservation, RiskTargets, next_targets
from rules.facts.at_risk_observations import AtRiskObservations
from rules.facts.last_observation import microseconds
from rules.facts.snapshot import Snapshot
from rules.facts.times import SECOND_US
from service.metrics.totals import RiskStats
from service.runtime.clock import set_within
from service.runtime.threads import in_thread

# For the requests, so that an observation is over before the next is due.
SHARE_OF_INTERVAL: Final = 0.8


class LightReader(Protocol):
    """Observes partitions at risk."""

    def observe(self, targets: RiskTargets, *, seconds: float, now_us: int) -> AtRiskObservation:
        """Observe the targets once, within so many seconds."""

    def close(self) -> None:
        """Close all connections."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RiskPace:
    """How often, for how long and how many partitions are observed."""

    interval_seconds: float  # from start to start
    request_seconds: float  # that a broker may take; never more than its share of the interval
    max_partitions: int  # 0: no observations

    @property
    def observation_seconds(self) -> float:
        """Return how long one observation may take."""
        return min(self.request_seconds, SHARE_OF_INTERVAL * self.interval_seconds)


class RiskWatch:
    """Observes the partitions that the latest round found at risk, and gives the next round the results.

    `note`, `take` and `stats` may be called while an observation goes on.
    """

    def __init__(
        self,
        reader: LightReader,
        pace: RiskPace,
        *,
        utc_now: Callable[[], datetime],
        monotonic: Callable[[], float],
        stop: asyncio.Event,
    ) -> None:
        self._reader = reader
        self._pace = pace
        self._utc_now = utc_now
        self._monotonic = monotonic
        self._stop = stop
        self._reader_lock = threading.Lock()  # held while the reader is in use
        # Held to change what is below, never while a broker is waited for.
        self._lock = threading.Lock()
        self._targets: RiskTargets | None = None
        self._last: AtRiskObservation | None = None
        self._before_last: AtRiskObservation | None = None
        # By the monotonic clock, for the wall clock may be set.
        self._observations: AtRiskObservations | None = None
        self._observation_count = 0
        self._took_seconds: float | None = None
        self._requests: Counter[str] = Counter()

    def note(self, snapshot: Snapshot) -> None:
        """Take from a round which partitions are at risk."""
        with self._lock:
            last, limit = self._last, self._pace.max_partitions
            stuck = last.stuck(self._before_last, snapshot.partitions) if last else None
            self._targets = next_targets(snapshot, self._targets, stuck, limit=limit)
            if not len(self._targets.rows):
                self._last = self._before_last = self._took_seconds = None
            if self._observations is not None:
                observations = self._observations.over(snapshot.partitions)
                self._observations = observations.not_behind(snapshot.offsets)

    def take(self) -> AtRiskObservations | None:
        """Return the observations since the last call, None if there were none; they are then forgotten."""
        with self._lock:
            observations, self._observations = self._observations, None
            if observations is None or not len(observations):
                return None
            ahead_us = microseconds(self._utc_now()) - self._uptime_us()
            return replace(observations, observed_at_us=observations.observed_at_us + ahead_us)

    def stats(self) -> RiskStats:
        """Return the counts."""
        with self._lock:
            targets = self._targets
            at_risk = 0 if targets is None else int(targets.is_at_risk.sum())
            watched = 0 if targets is None else len(targets.rows)
            observed = self._count_observed()
            return RiskStats(
                observed=observed,
                unobserved=watched - observed,
                unwatched=at_risk - watched,
                observations=self._observation_count,
                took_seconds=self._took_seconds,
                requests=dict(self._requests),
            )

    async def run(self) -> None:
        """Observe again and again until the service stops."""
        due = self._monotonic()
        while not await set_within(self._stop, due - self._monotonic()):
            due = self._monotonic() + self._pace.interval_seconds
            if self._has_work():
                await in_thread(self.observe_once, name="at_risk_observations")

    def observe_once(self) -> None:
        """Observe what is at risk now; blocks no longer than an observation may take."""
        with self._reader_lock:
            targets = self._targets
            if targets is None or not len(targets.rows):
                return
            began = self._monotonic()
            observation = self._reader.observe(
                targets, seconds=self._pace.observation_seconds, now_us=self._uptime_us()
            )
            self._keep(observation, self._monotonic() - began)

    def close(self) -> None:
        """Close the connections, after the observation under way."""
        waits = self._reader_lock.acquire(timeout=self._pace.observation_seconds)
        try:
            self._reader.close()
        finally:
            if waits:
                self._reader_lock.release()

    def _has_work(self) -> bool:
        targets = self._targets
        return targets is not None and len(targets.rows) > 0

    def _keep(self, observation: AtRiskObservation, took_seconds: float) -> None:
        with self._lock:
            placed = (
                observation.observations.partitions
                if self._targets is None
                else self._targets.partitions
            )
            fresh = observation.observations.over(placed)  # a round may have ended meanwhile
            self._observations = (self._observations or AtRiskObservations.none(placed)).with_newer(
                fresh
            )
            self._before_last, self._last = self._last, observation
            self._observation_count += 1
            self._took_seconds = took_seconds
            self._requests.update(observation.requests)

    def _count_observed(self) -> int:
        """Count the watched partitions that the latest observation has an answer of."""
        if self._targets is None or self._last is None:
            return 0
        # The observation may be of an older round's partitions.
        answered = self._last.observations.over(self._targets.partitions)
        return int(np.isin(self._targets.rows, answered.row).sum())

    def _uptime_us(self) -> int:
        return round(self._monotonic() * SECOND_US)
