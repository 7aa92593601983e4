"""Judging samples live and over a day: scores, opening rules, closing, and that both agree."""

from __future__ import annotations

import statistics
from dataclasses import replace

import numpy as np
import pytest

from rules.baseline.blocks import (
    OUTCOMES,
    REASONS,
    BaselineBlock,
    Float32s,
    Outcome,
    Reason,
)
from rules.baseline.judging import Judge, Memory
from rules.baseline.policy import Direction, Policy
from rules.baseline.series import Metric
from tests.unit.rules.baseline.days import SETTINGS, after, block, daily, day_of, hours

DAY = day_of(0)
STEP_MS = 60_000
SAMPLES = 1440
MINUTES = np.arange(SAMPLES)
NOVEL = 3 / 1.1  # below it nothing is asked of the hour before


def flat(metric: Metric = Metric.PRODUCE_RATE, outcome: Outcome = Outcome.BANDED) -> BaselineBlock:
    """Return a baseline that expects 100 and calls 90 to 110 usual, at a threshold of 3."""
    _, night = after(1, daily, metric=metric)
    level = np.full((1, 336), np.float32(100))
    return replace(
        night,
        outcome=np.array([OUTCOMES.index(outcome)], np.uint8),
        reason=np.array([REASONS.index(Reason.LEARNT)], np.uint8),
        mid=level,
        upper=level + 10,
        lower=level - 10,
        threshold=np.array([3], np.float32),
        threshold_below=np.array([3], np.float32),
        drift_threshold=np.array([3], np.float32),
    )


def judge(metric: Metric = Metric.PRODUCE_RATE, outcome: Outcome = Outcome.BANDED) -> Judge:
    return Judge.of(flat(metric, outcome), DAY, STEP_MS, SETTINGS)


def told(
    values: Float32s, metric: Metric = Metric.PRODUCE_RATE
) -> list[tuple[int | None, int | None]]:
    """Return (opened, closed) in minutes of the day."""
    made = block(values, metric, STEP_MS)
    _, found, _ = judge(metric).replay(Memory.empty(1, STEP_MS), made)
    return [(one.opened, one.closed) for one in found]


def with_stretch(first: int, end: int, value: float, rest: float = 100) -> Float32s:
    return np.where((first <= MINUTES) & (end > MINUTES), value, rest).astype(np.float32)


def test_a_score_is_the_lesser_of_far_off_and_new() -> None:
    values = (100 + 60 * np.random.default_rng(1).random(SAMPLES)).astype(np.float32)
    values[::9] = np.nan
    _, _, scores = judge().replay(Memory.empty(1, STEP_MS), block(values, step_ms=STEP_MS))
    for place in range(SAMPLES):
        before = [float(one) for one in values[max(0, place - 60) : place] - 100]
        hour = [one for one in before if not np.isnan(one)]
        value, far = float(scores.score[0, place]), (float(values[place]) - 100) / 10
        if np.isnan(far) or (far > NOVEL and len(hour) < 30):
            assert np.isnan(value)
        elif far > NOVEL:
            new = (float(values[place]) - 100 - statistics.median(hour)) / 10
            assert value == pytest.approx(min(far, new), rel=1e-5, abs=1e-5)
        else:
            assert value == pytest.approx(far, abs=1e-4)


@pytest.mark.parametrize(
    ("metric", "values", "expected"),
    [
        pytest.param(
            Metric.READ_COMMITTED_LAG_SECONDS,
            with_stretch(600, 604, 900),
            [],
            id="four minutes of lag are a deploy",
        ),
        pytest.param(
            Metric.READ_COMMITTED_LAG_SECONDS,
            with_stretch(600, 620, 900),
            [(604, 629)],
            id="five minutes of lag open; ten calm ones close",
        ),
        pytest.param(
            Metric.SEQUENCE_ERRORS, with_stretch(600, 601, 900), [(600, 610)], id="one rejection"
        ),
        pytest.param(
            Metric.RECORD_ERROR_RATE, with_stretch(600, 604, 900), [], id="retries for minutes"
        ),
        pytest.param(Metric.READ_COMMITTED_LAG_SECONDS, with_stretch(600, 700, 0), [], id="below"),
        pytest.param(Metric.PRODUCE_RATE, with_stretch(600, 700, 0), [(604, 709)], id="rate to 0"),
        pytest.param(
            Metric.PRODUCE_RATE, with_stretch(600, 700, 129), [], id="below the threshold of 3"
        ),
        pytest.param(
            Metric.PRODUCE_RATE,
            np.where(MINUTES > 700, 118.1, with_stretch(600, 700, 200)).astype(np.float32),
            [(604, None)],
            id="0.6 of the threshold is not calm",
        ),
        pytest.param(
            Metric.READ_COMMITTED_LAG_SECONDS,
            (100 + np.clip(MINUTES - 600, 0, 100) / 2).astype(np.float32),
            [(690, None)],
            id="slow drift of lag: half an hour beyond the threshold",
        ),
        pytest.param(
            Metric.PRODUCE_RATE,
            (100 + np.clip(MINUTES - 600, 0, 100) / 2).astype(np.float32),
            [],
            id="slow drift of a rate",
        ),
        pytest.param(
            Metric.READ_COMMITTED_LAG,
            (100 + 900 * np.clip(1 - (MINUTES - 600) / 20, 0, 1) * (MINUTES >= 600)).astype(
                np.float32
            ),
            [],
            id="a backlog of 20 minutes that is worked off",
        ),
        pytest.param(
            Metric.READ_COMMITTED_LAG_SECONDS,
            with_stretch(600, 650, 200, rest=np.nan),
            [(614, None)],  # half of half an hour is known
            id="no news closes nothing",
        ),
    ],
)
def test_openings(
    metric: Metric, values: Float32s, expected: list[tuple[int | None, int | None]]
) -> None:
    assert told(values, metric) == expected


@pytest.mark.parametrize(
    ("fall_share", "expected"), [(0.1, [(604, 709)]), (0, [])], ids=["seldom", "often"]
)
def test_a_fall_below_a_tenth_is_reported_whatever_the_threshold(
    fall_share: float, expected: list[tuple[int | None, int | None]]
) -> None:
    noisy = replace(
        flat(),
        lower=flat().lower - 20,
        threshold_below=np.array([12], np.float32),
        fall_share=np.array([fall_share], np.float32),
    )
    judged = Judge.of(noisy, DAY, STEP_MS, SETTINGS)
    made = block(with_stretch(600, 700, 9), step_ms=STEP_MS)
    _, found, _ = judged.replay(Memory.empty(1, STEP_MS), made)
    assert [(one.opened, one.closed) for one in found] == expected


def test_what_returns_from_a_new_level_is_not_unusual() -> None:
    values = np.where(MINUTES < 700, 300, 150).astype(np.float32)  # 100 is expected
    _, _, scores = judge().replay(Memory.empty(1, STEP_MS), block(values, step_ms=STEP_MS))
    assert np.nanmax(scores.score[0, 60:]) <= 0


def test_a_band_that_moves_at_midnight_is_no_news() -> None:
    values = np.full(SAMPLES, 160, np.float32)
    memory, _, _ = judge().replay(Memory.empty(1, STEP_MS), block(values, step_ms=STEP_MS))
    level = flat().mid + 200
    moved = replace(flat(), mid=level, upper=level + 10, lower=level - 10)
    judged = Judge.of(moved, day_of(1), STEP_MS, SETTINGS)
    _, found, scores = judged.replay(memory, block(values, step_ms=STEP_MS))
    assert found == []
    assert scores.score.max() == pytest.approx(0, abs=1e-4)


@pytest.mark.parametrize("outcome", [Outcome.YOUNG, Outcome.SPARSE, Outcome.VANISHED])
def test_nothing_opens_without_a_learnt_band(outcome: Outcome) -> None:
    made = block(with_stretch(600, 700, 900), step_ms=STEP_MS)
    assert judge(outcome=outcome).replay(Memory.empty(1, STEP_MS), made)[1] == []


def test_around_a_change_of_the_clocks_an_hour_off_is_usual() -> None:
    berlin = "Europe/Berlin"
    _, night = after(20, daily, zone=berlin, first=63)  # up to and with 28 March 2026
    transition = day_of(83, berlin)
    made = hours(transition)
    late = np.where(transition.quarters.repeat(3) >= 12, made - 1, made)  # follows the old clock
    day = block(daily(transition, late))
    judged = Judge.of(night, transition, day.step_ms, SETTINGS)
    _, found, scores = judged.replay(Memory.empty(1, day.step_ms), day)
    assert found == []
    assert np.nanmax(scores.seasonal) < 3


def test_a_policy_that_waits_longer_than_is_remembered_is_rejected() -> None:
    with pytest.raises(ValueError, match="remembers one hour"):
        Policy(direction=Direction.ABOVE, min_deviation=1, open_seconds=3601)
    with pytest.raises(ValueError, match="would report every value"):
        Policy(direction=Direction.ABOVE, min_deviation=0, open_seconds=60)
