"""Published baselines that were not learnt: every series is usually from 90 to 110."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from rules.baseline.blocks import (
    METRIC_CODES,
    OUTCOMES,
    PROFILES,
    REASONS,
    BaselineBlock,
    Outcome,
    Profile,
    Reason,
)
from rules.baseline.civil import SLOTS_PER_DAY, SLOTS_PER_WEEK, CivilDay
from rules.baseline.learnt_series import NONE, LearntColumns, LearntSeries, SeriesLabels
from rules.baseline.live_series import DayJudge
from rules.baseline.policy import BaselineSettings
from rules.baseline.series import Series

LEVEL: Final = 100.0
DEVIATION: Final = 10.0
DAYS: Final = 35


def flat_bands(series: Sequence[Series], outcome: Outcome = Outcome.BANDED) -> BaselineBlock:
    """Return the bands of series, which are ordered by their ids."""
    count = len(series)

    def codes(code: int) -> np.ndarray:
        return np.full(count, code, np.uint8)

    def reals(value: float) -> np.ndarray:
        return np.full(count, value, np.float32)

    def band(value: float) -> np.ndarray:
        slots = np.full((count, SLOTS_PER_WEEK), np.nan, np.float32)
        slots[:, :SLOTS_PER_DAY] = value
        return slots

    return BaselineBlock(
        series_id=np.array([each.series_id for each in series], np.int64),
        metric=np.array([METRIC_CODES[each.metric] for each in series], np.uint8),
        outcome=codes(OUTCOMES.index(outcome)),
        reason=codes(REASONS.index(Reason.LEARNT)),
        profile=codes(PROFILES.index(Profile.DAILY)),
        slots=np.full(count, SLOTS_PER_DAY, np.int32),
        mid=band(LEVEL),
        upper=band(LEVEL + DEVIATION),
        lower=band(LEVEL - DEVIATION),
        threshold=reals(3),
        threshold_below=reals(3),
        drift_threshold=reals(np.inf),
        fall_share=reals(0),
        threshold_by=codes(0),
        delta=reals(0),
        slope=reals(0),
        changed_at_ms=np.zeros(count, np.int64),
        changed_before=reals(np.nan),
        changed_after=reals(np.nan),
        days=np.full(count, DAYS, np.int32),
        is_kept=np.ones(count, np.bool_),
    )


def in_order(series: Sequence[Series]) -> list[Series]:
    """Return series by their ids."""
    return sorted(series, key=lambda each: each.series_id)


def labels_of(series: Sequence[Series]) -> SeriesLabels:
    """Return the labels of series in their order."""
    topics = tuple(sorted({each.topic for each in series if each.topic is not None}))
    groups = tuple(sorted({each.group for each in series if each.group is not None}))
    clients = tuple(sorted({each.client_id for each in series if each.client_id is not None}))

    def numbers(values: list[int]) -> np.ndarray:
        return np.array(values, np.int32)

    return SeriesLabels(
        topic=numbers([NONE if s.topic is None else topics.index(s.topic) for s in series]),
        partition=numbers([NONE if s.partition is None else s.partition for s in series]),
        group=numbers([NONE if s.group is None else groups.index(s.group) for s in series]),
        client=numbers(
            [NONE if s.client_id is None else clients.index(s.client_id) for s in series]
        ),
        topics=topics,
        groups=groups,
        clients=clients,
    )


def flat_judge(
    series: Sequence[Series],
    calendar: CivilDay,
    interval_ms: int,
    outcome: Outcome = Outcome.BANDED,
) -> DayJudge:
    """Return the judge of a day by flat bands."""
    ordered = in_order(series)
    bands = flat_bands(ordered, outcome)
    columns = [LearntColumns.of(bands)]
    learnt = LearntSeries.join("default", calendar.zone, columns, labels_of(ordered))
    return DayJudge.join([DayJudge.of(bands, calendar, interval_ms, BaselineSettings())], learnt)
