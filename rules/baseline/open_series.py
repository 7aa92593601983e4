"""What is open of a cluster's series, since when, and which of it opened together.

One cause may move the series of hundreds of groups or topics at once. If more than a handful of these
open within a few minutes, they are one of many until they close, and so is what follows soon.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from rules.baseline.blocks import METRICS
from rules.baseline.grid import Int64s
from rules.baseline.learnt_series import MetricSeries
from rules.baseline.live_series import SeriesMemory, StepVerdict
from rules.baseline.scores import HOUR_MS
from rules.baseline.windows import Bools

MANY: Final = 10  # groups or topics: more that open together are one finding
TOGETHER_MS: Final = (
    3 * 60_000
)  # within it they open together; no alert on one of them fires earlier
COLUMNS: Final = ("series_id", "opened_ms", "known_ms", "many_ms", "is_slow")
FOLLOWING_MS: Final = 10 * 60_000  # what opens within it after the last of many is one of them


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class OpenSeries:
    """The open series after a step; times are ms since 1970-01-01 UTC."""

    series_id: Int64s  # (n,) ascending
    opened_ms: Int64s
    known_ms: Int64s  # when it was last measured and judged
    many_ms: Int64s  # when the first of the many opened that it is one of; 0: it is none
    is_slow: Bools  # it opened by a slow change

    @classmethod
    def none(cls) -> OpenSeries:
        """Return that nothing is open."""
        nothing, mask = np.zeros(0, np.int64), np.zeros(0, np.bool_)
        return cls(
            series_id=nothing, opened_ms=nothing, known_ms=nothing, many_ms=nothing, is_slow=mask
        )

    def __len__(self) -> int:
        return len(self.series_id)

    def only(self, mask: Bools) -> OpenSeries:
        """Return some of the rows."""
        return OpenSeries(**{name: getattr(self, name)[mask] for name in COLUMNS})

    def shifted(self, by_ms: int) -> OpenSeries:
        """Return it with all times moved by a step of the clock."""
        many_ms = np.where(self.many_ms > 0, self.many_ms + by_ms, 0)
        return replace(
            self,
            opened_ms=self.opened_ms + by_ms,
            known_ms=self.known_ms + by_ms,
            many_ms=many_ms,
        )

    def merged(self, stored: OpenSeries) -> OpenSeries:
        """Return the rows of both; what is stored has been open for longer."""
        mine = self.only(~np.isin(self.series_id, stored.series_id))
        columns = {
            name: np.concatenate([getattr(mine, name), getattr(stored, name)]) for name in COLUMNS
        }
        order = np.argsort(columns["series_id"])
        return OpenSeries(**{name: column[order] for name, column in columns.items()})

    def after(self, step: StepVerdict) -> OpenSeries:
        """Return what is open after a step."""
        day = step.day
        ids = np.union1d(day.series_id[step.is_open], step.without_baseline)
        is_kept = np.isin(ids, self.series_id)
        opened, known, many = (np.zeros(len(ids), np.int64) for _ in range(3))
        is_slow = np.zeros(len(ids), np.bool_)
        mine = np.searchsorted(self.series_id, ids[is_kept])
        opened[~is_kept] = known[~is_kept] = step.start_ms
        opened[is_kept], many[is_kept] = self.opened_ms[mine], self.many_ms[mine]
        known[is_kept] = self.known_ms[mine]
        is_slow[is_kept] = self.is_slow[mine]
        rows, has_row = day.find(ids)
        is_new = ~is_kept & has_row
        is_slow[is_new] = _opened_slowly(step, rows[is_new])
        known[has_row] = np.where(step.is_known(rows[has_row]), step.start_ms, known[has_row])
        after = OpenSeries(
            series_id=ids, opened_ms=opened, known_ms=known, many_ms=many, is_slow=is_slow
        )
        return after._mark_many(step)

    def _mark_many(self, step: StepVerdict) -> OpenSeries:
        """Mark what opened together, metric by metric; what is one of many stays so until it closes."""
        learnt = step.day.learnt
        if learnt is None or not len(self):
            return self
        rows, has_row = step.day.find(self.series_id)
        many_ms = self.many_ms.copy()
        for code in np.unique(learnt.metric[rows[has_row]]).tolist():
            series = learnt.of_metric(METRICS[code])
            place = np.searchsorted(series.row, rows).clip(max=max(len(series.row) - 1, 0))
            if len(series.row):
                is_mine = has_row & (series.row[place] == rows)
                mine = np.flatnonzero(is_mine)
                many_ms[mine] = self._many_of(series, place[mine], mine, step.start_ms)
        return replace(self, many_ms=many_ms)

    def _many_of(self, series: MetricSeries, place: Int64s, mine: Int64s, now_ms: int) -> Int64s:
        """Return since when each of the open series of a metric is one of many, 0 for none."""
        subjects, of = np.unique(series.subject[place], return_inverse=True)
        opened = np.full(len(subjects), np.iinfo(np.int64).max)
        np.minimum.at(opened, of, self.opened_ms[mine])
        many = np.zeros(len(subjects), np.int64)
        np.maximum.at(many, of, self.many_ms[mine])
        is_new = now_ms - opened < TOGETHER_MS
        last = opened[many > 0].max(initial=0)
        if last and now_ms - last < FOLLOWING_MS:
            many[is_new & (many == 0)] = many.max()
        elif np.count_nonzero(is_new) > MANY:
            many[is_new & (many == 0)] = opened[is_new].min()
        since: Int64s = many[of]
        return since


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ClosedSeries:
    """The series that closed within the last hour; times are ms since 1970-01-01 UTC."""

    series_id: Int64s  # (n,)
    closed_ms: Int64s

    @classmethod
    def none(cls) -> ClosedSeries:
        """Return that nothing has closed."""
        nothing = np.zeros(0, np.int64)
        return cls(series_id=nothing, closed_ms=nothing)

    def shifted(self, by_ms: int) -> ClosedSeries:
        """Return it with all times moved by a step of the clock."""
        return replace(self, closed_ms=self.closed_ms + by_ms)

    def after(self, before: OpenSeries, now: OpenSeries, at_ms: int) -> ClosedSeries:
        """Return what has closed after a step; `before` was open before it, and `now` is after it."""
        if not len(before) and not len(self.series_id):
            return self
        closed = np.setdiff1d(before.series_id, now.series_id)
        is_kept = (at_ms - self.closed_ms < HOUR_MS) & ~np.isin(self.series_id, closed)
        return ClosedSeries(
            series_id=np.concatenate([self.series_id[is_kept], closed]),
            closed_ms=np.concatenate([self.closed_ms[is_kept], np.full(len(closed), at_ms)]),
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ScoringMemory:
    """What a restart needs of live scoring: what is open, since when, and its hour."""

    series: SeriesMemory
    open: OpenSeries


def _opened_slowly(step: StepVerdict, rows: Int64s) -> Bools:
    """Mark the series, of those that opened now, that were far out before they were new."""
    judge, scores = step.day.judge, step.verdict.scores
    is_below = scores.residual[rows, 0] < 0
    threshold = np.where(is_below, judge.below[rows], judge.above[rows])
    is_slow: Bools = np.isfinite(judge.drift[rows]) & ~(scores.score[rows, 0] > threshold)
    return is_slow
