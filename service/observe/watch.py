"""Watching one cluster: a round, what is remembered of it, and what the rules say.

Nothing here waits or sleeps; the caller decides when a round is due, by `next_due`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Final, Protocol

import numpy as np

from rules.baseline.unusual_values import UnusualValues
from rules.catalogue.all_rules import (
    Attempt,
    Judged,
    judge_blind,
    judge_round,
    run_unguarded,
)
from rules.errors import CollectError
from rules.facts.at_risk_observations import AtRiskObservations
from rules.facts.gap import GapScope
from rules.facts.lag_objectives import LagObjective
from rules.facts.last_observation import microseconds, overlay_observations
from rules.facts.matching import matching_rows
from rules.facts.memory import Memory, shift_times
from rules.facts.scrapes import Scrapes
from rules.facts.snapshot import Snapshot
from rules.facts.times import MICROSECOND
from rules.objectives import with_objectives
from rules.question import BatchesQuestion, EpochEndQuestion, ProducersQuestion, Question
from rules.remembering import view_of_round
from rules.time_lag import EndHistory, TimeLags, time_lags
from rules.time_lag import advance as advance_ends
from rules.time_lag import shift_times as shifted_ends
from rules.view import View
from service.observe.cluster_reader import Scope
from service.observe.feeds import LogFeed, read_feeds, unread_feeds
from service.runtime.clock import ClockReading, step_between

EARLY_SECONDS: Final = 1.0  # after a leader change: long enough for the new leader to answer


class SnapshotSource(Protocol):
    """Makes snapshots of a cluster."""

    def read(self, scope: Scope) -> Snapshot:
        """Read a snapshot; CollectError when the cluster cannot be queried at all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchedRound:
    """The result of one round; `snapshot` is None when the cluster could not be queried."""

    at: datetime
    snapshot: Snapshot | None
    judged: Judged
    view: View | None = None  # what the rules were given; there is one with every snapshot
    time_lags: TimeLags | None = None  # by commit of the snapshot; there are some with each
    error: str | None = None  # why there is no snapshot, one line
    leaders_moved: bool = False
    clock_step: timedelta | None = None  # by how much the wall clock was set since the last round

    @property
    def next_is_early(self) -> bool:
        """Whether the next round should be early: a leader changed, a verdict needs it, or log lines wait.

        If a leader rejected the request that a verdict needs, repeating it sooner changes nothing.
        """
        gaps = self.snapshot.gaps if self.snapshot is not None else ()
        is_behind = self.snapshot is not None and self.snapshot.broker_log.is_behind
        rejected = {gap.scope for gap in gaps}
        urgent = (
            (isinstance(question, EpochEndQuestion) and GapScope.EPOCHS not in rejected)
            or (isinstance(question, BatchesQuestion) and GapScope.BATCHES not in rejected)
            or (isinstance(question, ProducersQuestion) and question.is_urgent)
            for question in self.judged.questions
        )
        return self.leaders_moved or is_behind or any(urgent)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Remembered:
    """The memory that a restart needs, so that its first round judges as the next one would have."""

    memory: Memory | None = None
    unknown_since: Mapping[str, int] = field(default_factory=dict)
    log_positions: Mapping[str, str] = field(default_factory=dict)  # up to where feeds are judged
    ends: EndHistory | None = None  # too large for a checkpoint: kept in a file of its own

    def shift_times(self, step: timedelta) -> Remembered:
        """Return it with all times moved by a step of the clock."""
        by_us = step // MICROSECOND
        return replace(
            self,
            memory=None if self.memory is None else shift_times(self.memory, by_us),
            unknown_since={rule: since + by_us for rule, since in self.unknown_since.items()},
            ends=None if self.ends is None else shifted_ends(self.ends, by_us),
        )


class Watcher:
    """Makes round after round over one cluster and judges each."""

    def __init__(  # noqa: PLR0913 - two clocks beside the cluster
        self,
        cluster: str,
        source: SnapshotSource,
        scope: Scope,
        *,
        utc_now: Callable[[], datetime],
        monotonic: Callable[[], float],
        remembered: Remembered | None = None,
        attempt: Attempt = run_unguarded,
        light_observations: Callable[[], AtRiskObservations | None] = lambda: None,
        feeds: Sequence[LogFeed] = (),
        scrapes: Callable[[], Scrapes] = Scrapes.unread,
        objectives: Sequence[LagObjective] = (),
        unusual: Callable[[], UnusualValues] = UnusualValues,
    ) -> None:
        """`attempt` runs each rule; it logs a defect of one, and the others still judge.

        `light_observations` returns the observations between the rounds, once; `feeds` return log lines, and
        `scrapes` the latest facts from metrics, `unusual` what the rounds before were scored as.
        """
        self._cluster = cluster
        self._source = source
        self._attempt = attempt
        self._light_observations = light_observations
        self._scrapes = scrapes
        self._objectives = objectives
        self._unusual = unusual
        self._feeds = feeds
        self._scope = scope
        self._utc_now = utc_now
        self._monotonic = monotonic
        self._clock: ClockReading | None = None  # when the last round began
        self._last: Snapshot | None = None
        self._questions: tuple[Question, ...] = ()  # of the last round that could be judged
        self.remembered = remembered or Remembered()

    def now(self) -> datetime:
        """Return the time by the clock that rounds are stamped with."""
        return self._utc_now()

    def make_round(self, *, knows_positions: bool = True) -> WatchedRound:
        """Make a round and judge it; a cluster that is away makes every rule UNKNOWN.

        If the wall clock was set since the last round, what is remembered moves along, so that
        nothing seems unchanged for longer or shorter than it is. Without `knows_positions`, while what an
        earlier process stored is not read yet, feeds are not read: their positions are unknown.
        """
        began = ClockReading(wall=self._utc_now(), monotonic_seconds=self._monotonic())
        step = None if self._clock is None else step_between(self._clock, began)
        self._clock = began
        if step is not None:
            self.remembered = self.remembered.shift_times(step)
        self._remember_light_observations()
        watched = self._make_round(began.wall, knows_positions=knows_positions)
        return replace(watched, clock_step=step)

    def _remember_light_observations(self) -> None:
        """Take the observations so far; those made during the round may be newer than its snapshot."""
        light, memory = self._light_observations(), self.remembered.memory
        if light is not None and memory is not None:
            finer = replace(memory, observations=overlay_observations(memory.observations, light))
            self.remembered = replace(self.remembered, memory=finer)

    def _make_round(self, began: datetime, *, knows_positions: bool) -> WatchedRound:
        try:
            snapshot = self._source.read(self._next_scope())
        except CollectError as exc:
            judged = judge_blind(self._cluster, self.remembered.unknown_since, began)
            self.remembered = replace(self.remembered, unknown_since=judged.unknown_since)
            return WatchedRound(at=began, snapshot=None, judged=judged, error=str(exc))
        seen = self._with_scrapes(snapshot)
        return self._judge(self._with_log(seen, knows_positions=knows_positions))

    def _next_scope(self) -> Scope:
        """Return what the next round observes: for the first one, with the commits of an earlier process."""
        memory = self.remembered.memory
        return replace(
            self._scope,
            questions=self._questions,
            remembered=memory if self._last is None else None,
            memory=memory,
        )

    def _with_log(self, snapshot: Snapshot, *, knows_positions: bool) -> Snapshot:
        """Add the feeds' log lines; only a round that is judged to its end advances their positions."""
        positions = self.remembered.log_positions
        if knows_positions:
            log, gaps = read_feeds(self._feeds, positions)
        else:
            log, gaps = unread_feeds(self._feeds)
        return replace(snapshot, broker_log=log, gaps=(*snapshot.gaps, *gaps))

    def _with_scrapes(self, snapshot: Snapshot) -> Snapshot:
        """Add the latest facts from metrics of brokers and clients; nothing is scraped here."""
        scrapes = self._scrapes()
        return replace(snapshot, scrapes=scrapes, gaps=(*snapshot.gaps, *scrapes.gaps()))

    def _judge(self, snapshot: Snapshot) -> WatchedRound:
        view = view_of_round(snapshot, self.remembered.memory)
        ends = _ends_of(view, self.remembered.ends)
        unusual = self._unusual().of_cluster(snapshot.cluster_id)
        view = replace(view, time_lags=time_lags(ends, snapshot), unusual=unusual)
        view = with_objectives(view, self._objectives)
        judged = judge_round(view, self.remembered.unknown_since, self._attempt)
        self.remembered = replace(
            self.remembered,
            memory=view.memory,
            unknown_since=judged.unknown_since,
            ends=ends,
            log_positions=snapshot.broker_log.positions or self.remembered.log_positions,
        )
        moved = self._last is not None and leaders_moved(self._last, snapshot)
        self._last, self._questions = snapshot, judged.questions
        return WatchedRound(
            at=snapshot.taken_at,
            snapshot=snapshot,
            judged=judged,
            view=view,
            time_lags=view.time_lags,
            leaders_moved=moved,
        )


def _ends_of(view: View, before: EndHistory | None) -> EndHistory:
    """Remember the end offsets of this round; topics that it did not list keep theirs."""
    seen = view.snapshot
    return advance_ends(
        before,
        cluster_id=seen.cluster_id,
        partitions=view.memory.partitions,
        offsets=seen.offsets,
        now_us=microseconds(seen.taken_at + seen.ends_read_after),
    )


def leaders_moved(before: Snapshot, after: Snapshot) -> bool:
    """Whether a partition that both rounds know has another leader or leader epoch."""
    rows = matching_rows(after.partitions, before.partitions)
    for new, old in (
        (after.partitions.leader, before.partitions.leader.take(rows)),
        (after.offsets.leader_epoch, before.offsets.leader_epoch.take(rows)),
    ):
        both = new.valid & old.valid
        if np.any(both & (new.values != old.values)):
            return True
    return False


def next_due(began: float, ended: float, *, interval_seconds: float, early: bool) -> float:
    """Return when the next round is due, on the clock of `began` and `ended`.

    Intervals count from start to start and rounds never overlap: one that took longer than the
    interval is followed at once. After a leader change the next round is early, so that the new leader's
    answers are fresh; so it is where a verdict needs a second observation.
    """
    regular = began + interval_seconds
    due = min(regular, ended + EARLY_SECONDS) if early else regular
    return max(due, ended)
