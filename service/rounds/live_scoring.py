"""Scores rounds as history takes them, and says to the rules of later rounds what is unusual.

It runs in the thread of history, after a round: no round waits for it. What it says is one polling interval
late, because a step of the grid is judged when it is over.
"""

from __future__ import annotations

import threading
from dataclasses import replace
from datetime import timedelta
from typing import Final, Protocol

import numpy as np

from rules.baseline.grid import Int64s
from rules.baseline.learnt_series import is_by_group
from rules.baseline.live_series import DayJudge, LiveSeries, SeriesMemory, StepVerdict
from rules.baseline.open_series import ClosedSeries, OpenSeries, ScoringMemory
from rules.baseline.series import Series
from rules.baseline.unusual_values import ScoringState, UnusualValues
from rules.facts.snapshot import Snapshot
from service.history.extraction import JudgedRound, RoundSamples

HOURS_STORED: Final = 100  # open series whose hour a restart has: it is stored with every round
VALID_INTERVALS: Final = 6  # so long after the last step that was judged nothing is known any more
LEAST_VALID: Final = timedelta(minutes=3)


class JudgesPort(Protocol):
    """The judges of the day."""

    has_run: bool | None  # whether a baseline run is in force; None: not known yet

    def at(self, at_ms: int) -> DayJudge | None:
        """Return the judge of a time; None: not loaded."""


class LiveScoring:
    """Scores the rounds of one cluster; `take` has one caller at a time, the rest may be called by any thread."""

    def __init__(self, judges: JudgesPort, *, interval_seconds: float) -> None:
        self._judges = judges
        self._interval_ms = round(interval_seconds * 1000)
        self._valid_for = max(timedelta(seconds=VALID_INTERVALS * interval_seconds), LEAST_VALID)
        self._cluster_id = ""
        self._live: LiveSeries | None = None
        self._open = OpenSeries.none()
        self._closed = ClosedSeries.none()
        self._gone = np.zeros(0, np.int64)  # open, and missing from a complete list and since
        self._lock = threading.Lock()  # of the rest
        self._stored: ScoringMemory | None = None  # of an earlier process: the next round takes it
        self._stored_of = ""  # its cluster id
        self._remembered: ScoringMemory | None = None
        self._values = UnusualValues(state=ScoringState.STARTING)

    def latest(self) -> UnusualValues:
        """Return what is unusual, for the rules."""
        if self._judges.has_run is False:
            return UnusualValues()
        return self._values

    @property
    def remembered(self) -> ScoringMemory | None:
        """Return what a restart needs; None: nothing was judged."""
        with self._lock:
            return self._stored or self._remembered

    def adopt(self, stored: ScoringMemory | None, cluster_id: str) -> None:
        """Take over what an earlier process had open of a cluster id; until the next round the rules know nothing."""
        if stored is None:
            return
        with self._lock:
            self._stored, self._stored_of = stored, cluster_id
            self._values = UnusualValues(
                state=ScoringState.STARTING,
                open=stored.open,
                cluster_id=cluster_id,
            )

    def take(self, judged: JudgedRound, samples: RoundSamples) -> None:
        """Take the samples of a round, and judge the steps that are over."""
        if self._judges.has_run is None:
            return  # the hour of what is open must not pass without a judge
        cluster_id = judged.snapshot.cluster_id
        live = self._begin(cluster_id, self._take_stored(cluster_id))
        if judged.clock_step is not None:
            by_ms = judged.clock_step // timedelta(milliseconds=1)
            self._open, self._closed = self._open.shifted(by_ms), self._closed.shifted(by_ms)
        step: StepVerdict | None = None
        for step in live.put(samples.at_ms, samples.ids, samples.values):
            before, self._open = self._open, self._open.after(step)
            self._closed = self._closed.after(before, self._open, step.start_ms)
        if step is not None:
            self._end(live, self._ended(step, judged.snapshot, samples.ids))
        self._publish(live, step)

    def _take_stored(self, cluster_id: str) -> ScoringMemory | None:
        """Return what was stored of a cluster id, once; what was stored of another one is dropped."""
        with self._lock:
            stored, self._stored = self._stored, None
            if stored is None or self._stored_of != cluster_id:
                return None
            self._remembered = stored  # a checkpoint may be made before this round is published
            return stored

    def _begin(self, cluster_id: str, stored: ScoringMemory | None) -> LiveSeries:
        """Return the scoring of this cluster id, with what was stored."""
        if self._cluster_id not in ("", cluster_id):
            self._live, self._open, self._gone = None, OpenSeries.none(), self._gone[:0]
            self._closed = ClosedSeries.none()
        self._cluster_id = cluster_id
        if stored is not None:
            self._open = self._open.merged(stored.open)
            memory = None if self._live is None else self._live.memory
            memory = stored.series if memory is None else memory.reopened(stored.open.series_id)
            self._live = self._score_from(memory)
        elif self._live is None:
            self._live = self._score_from(None)
        return self._live

    def _score_from(self, memory: SeriesMemory | None) -> LiveSeries:
        """Return the scoring that goes on from a memory; None: from an empty one."""
        return LiveSeries(self._judges.at, interval_ms=self._interval_ms, memory=memory)

    def _ended(self, step: StepVerdict, snapshot: Snapshot, ids: Int64s) -> Int64s:
        """Return what is open and cannot be judged any more: without a band, or twice without its subject."""
        rows, has_row = step.day.find(self._open.series_id)
        has_band = has_row & step.day.has_band[rows] if len(step.day.has_band) else has_row
        lost = self._open.series_id[~has_band]
        missing = _absent(self._open.series_id[has_band], ids)
        learnt = step.day.learnt
        if learnt is None or not len(missing):
            self._gone = missing[:0]
            return lost
        rows, _ = step.day.find(missing)
        is_gone = [_is_gone(learnt.series(row), snapshot) for row in rows.tolist()]
        gone, before = missing[np.array(is_gone, np.bool_)], self._gone
        self._gone = np.union1d(gone, np.intersect1d(before, missing))
        return np.union1d(lost, np.intersect1d(gone, before))

    def _end(self, live: LiveSeries, ids: Int64s) -> None:
        if len(ids):
            live.forget(ids)
            self._open = self._open.only(~np.isin(self._open.series_id, ids))

    def _publish(self, live: LiveSeries, step: StepVerdict | None) -> None:
        series = live.memory_of_open(HOURS_STORED)
        remembered = None if series is None else ScoringMemory(series=series, open=self._open)
        with self._lock:
            self._remembered = remembered
            if step is None or self._stored is not None:
                return  # what was stored meanwhile is not in it
            self._values = replace(
                self._values,
                state=ScoringState.JUDGED,
                step=step,
                open=self._open,
                closed=self._closed,
                valid_for=self._valid_for,
                cluster_id=self._cluster_id,
            )


def _absent(few: Int64s, ids: Int64s) -> Int64s:
    """Return the few that are not among ids; np.setdiff1d hashes all of these, which takes 20 ms."""
    if not len(few) or not len(ids):
        return few
    ordered = np.sort(ids)
    place = np.searchsorted(ordered, few).clip(max=len(ordered) - 1)
    absent: Int64s = few[ordered[place] != few]
    return absent


def _is_gone(series: Series, snapshot: Snapshot) -> bool:
    """Whether a complete list of the round lacks what a series that was not sampled is about."""
    if is_by_group(series.metric):
        return snapshot.commits_complete and series.group not in snapshot.groups_without_commits
    topics = snapshot.partitions.index.position_of_topic
    return snapshot.placement_complete and series.topic is not None and series.topic not in topics
