"""Columns of many series: the samples of a day that a baseline run reads, and the baselines it writes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from enum import StrEnum
from typing import Final, Self

import numpy as np
from numpy.typing import NDArray

from rules.baseline.series import Metric

METRICS: Final = tuple(Metric)  # a metric's code is its place here
METRIC_CODES: Final = {metric: code for code, metric in enumerate(METRICS)}

Float32s = NDArray[np.float32]


class Outcome(StrEnum):
    """The result of a baseline run for a series."""

    BANDED = "banded"
    YOUNG = "young"  # known for less than a day: at most a first band, which opens nothing
    SPARSE = "sparse"  # mostly zero: rules that count and rules for stalls are better
    NO_DATA = "no_data"  # nothing was measured that day; the previous band stays
    VANISHED = "vanished"  # nothing was measured for a week; no band


class Reason(StrEnum):
    """Why the outcome is what it is."""

    LEARNT = "learnt"  # enough was seen
    FIRST_WEEKS = "first_weeks"  # banded; too young for a weekly profile
    FIRST_DAY = "first_day"  # young; one level for the whole day
    FEW_HOURS = "few_hours"  # young; less than two hours seen: no band
    MOSTLY_ZERO = "mostly_zero"
    SILENT_DAY = "silent_day"
    SILENT_WEEK = "silent_week"


class Profile(StrEnum):
    """What the expected value depends on."""

    NONE = "none"
    CONSTANT = "constant"
    DAILY = "daily"
    WEEKLY = "weekly"


class ThresholdBy(StrEnum):
    """Which of its terms made the threshold."""

    LEAST = "least"  # k_min
    OWN_HISTORY = "own_history"  # the cap binds: the series is often that far out
    LIMIT = "limit"  # the cap would be higher still


OUTCOMES: Final = tuple(Outcome)
REASONS: Final = tuple(Reason)
PROFILES: Final = tuple(Profile)
THRESHOLDS_BY: Final = tuple(ThresholdBy)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DayBlock:
    """The samples of n series over one civil day, on one grid; never changed by what reads them."""

    series_id: NDArray[np.int64]  # (n,)
    metric: NDArray[np.uint8]  # (n,) codes: places in `METRICS`
    step_ms: int  # divides a quarter of an hour
    values: Float32s  # (n, samples of the day), C order; NaN: not measured; sample 0 is at midnight
    masked: NDArray[np.bool_] | None = None  # the same shape: not to learn from; None: nothing is

    def __len__(self) -> int:
        return len(self.series_id)

    def at(self, rows: slice | list[int]) -> Self:
        """Return some of the series: a view for a slice, in the order of the rows otherwise."""
        return replace(
            self,
            series_id=self.series_id[rows],
            metric=self.metric[rows],
            values=self.values[rows],
            masked=None if self.masked is None else self.masked[rows],
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BaselineBlock:
    """The baselines of n series after a run, by the slots of a day or of a week.

    The rows are those of the day; the columns are those of `packed.RunColumn`. `mid`, `upper` and `lower`
    are always a week wide; the first `slots` of a row count. `is_kept` is False where a state has no
    recent measurement: the series is left out of the run.
    """

    series_id: NDArray[np.int64]  # (n,), as all others
    metric: NDArray[np.uint8]
    outcome: NDArray[np.uint8]  # places in `OUTCOMES`
    reason: NDArray[np.uint8]  # places in `REASONS`
    profile: NDArray[np.uint8]  # places in `PROFILES`
    slots: NDArray[np.int32]  # 0, 48 or 336
    mid: Float32s  # (n, 336)
    upper: Float32s  # (n, 336)
    lower: Float32s  # (n, 336)
    threshold: Float32s  # of values above what is expected
    threshold_below: Float32s
    drift_threshold: Float32s  # of slow changes
    fall_share: Float32s  # less than this share of the expected is always reported; 0: nothing is
    threshold_by: NDArray[np.uint8]  # places in `THRESHOLDS_BY`
    delta: Float32s
    slope: Float32s  # per day
    changed_at_ms: NDArray[np.int64]  # 0: no change of level is known
    changed_before: Float32s
    changed_after: Float32s
    days: NDArray[np.int32]
    is_kept: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.series_id)

    def take(self, rows: NDArray[np.int64]) -> BaselineBlock:
        """Return some of the rows."""
        return BaselineBlock(
            **{place.name: getattr(self, place.name)[rows] for place in fields(self)}
        )

    @classmethod
    def join(cls, parts: Sequence[BaselineBlock]) -> BaselineBlock:
        """Return the rows of all parts, one after another; there is at least one part."""
        columns = {
            place.name: np.concatenate([getattr(part, place.name) for part in parts])
            for place in fields(cls)
        }
        return cls(**columns)
