"""What live scoring says to the rules of a round: what is open, and the last step that was judged."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from rules.baseline.grid import Int64s
from rules.baseline.live_series import UNKNOWN_REASONS, StepVerdict, UnknownReason
from rules.baseline.open_series import ClosedSeries, OpenSeries
from rules.facts.times import EPOCH

Floats = NDArray[np.float64]


class ScoringState(StrEnum):
    """Whether anything is judged."""

    OFF = "off"  # no history is kept, or no baseline run is in force: nothing is judged
    STARTING = "starting"  # nothing was judged yet: the baselines are being loaded
    JUDGED = "judged"


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoredSeries:
    """One series as of the last step that was judged; the value is in the metric's unit."""

    at: datetime  # aware, UTC: when the step began
    value: float | None  # None: not measured
    usual_deviations: float | None  # away from what is expected; None: not known
    unknown_reason: str | None  # a `live_series.UnknownReason`; None: it is known
    unusual_since: datetime | None  # None: it is not open


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class UnusualValues:
    """What is unusual as of the last step that was judged."""

    state: ScoringState = ScoringState.OFF
    step: StepVerdict | None = None  # there is one when something was judged
    open: OpenSeries = field(default_factory=OpenSeries.none)  # as last known, also at the start
    closed: ClosedSeries = field(default_factory=ClosedSeries.none)
    valid_for: timedelta = timedelta(0)  # after the step began
    cluster_id: str = ""  # that was scored; empty: none

    def of_cluster(self, cluster_id: str) -> UnusualValues:
        """Return the same for a cluster id; of another one than was scored nothing is known yet."""
        if self.cluster_id in ("", cluster_id):
            return self
        return UnusualValues(state=ScoringState.STARTING)

    def of_series(self, series_id: int) -> ScoredSeries | None:
        """Return a series as it was scored last; None: it is not in the run, or nothing was judged."""
        if self.step is None:
            return None
        rows, has_row = self.step.day.find(np.array([series_id], np.int64))
        if not has_row[0]:
            return None
        row, reason = rows[0], UNKNOWN_REASONS[self.step.unknown[rows[0]]]
        place = np.flatnonzero(self.open.series_id == series_id)
        opened = [_time(int(at_ms)) for at_ms in self.open.opened_ms[place].tolist()]
        return ScoredSeries(
            at=_time(self.step.start_ms),
            value=_finite(self.step.values[row]),
            usual_deviations=_finite(self.step.verdict.scores.seasonal[row, 0]),
            unknown_reason=None if reason is UnknownReason.NONE else reason.value,
            unusual_since=opened[0] if opened else None,
        )

    def values_of(self, ids: Int64s, now: datetime) -> tuple[Floats, Floats]:
        """Return what was judged last of series, and by how many usual deviations it is above what is expected.

        NaN: not known, or too long ago.
        """
        values, scores = (np.full(len(ids), np.nan) for _ in range(2))
        if self.step is not None and self.is_current(now):
            rows, has_row = self.step.day.find(ids)
            values[has_row] = self.step.values[rows[has_row]]
            judged = self.step.verdict.scores
            above = np.copysign(judged.seasonal, judged.residual)[rows[has_row], 0]
            scores[has_row] = above + np.float32(0)  # no -0.0
        return values, scores

    def unusual_within(self, span: timedelta, now: datetime) -> Int64s:
        """Return the ids of what was known to be open within a time of at most an hour before `now`, ascending."""
        since_ms = (now - span - EPOCH) // timedelta(milliseconds=1)
        closed = self.closed.series_id[self.closed.closed_ms >= since_ms]
        return np.union1d(closed, self.open.series_id[self.open.known_ms >= since_ms])

    def is_current(self, now: datetime) -> bool:
        """Whether the last step is recent; a clock that was set back makes it none."""
        if self.step is None:
            return False
        age = now - _time(self.step.start_ms)
        return -self.valid_for <= age <= self.valid_for


def _time(at_ms: int) -> datetime:
    return EPOCH + timedelta(milliseconds=at_ms)


def _finite(value: np.float32) -> float | None:
    return float(value) if np.isfinite(value) else None
