"""Live evaluation gives a replayed day's result bit for bit: over days, changes of the clocks, and gaps."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from rules.baseline.blocks import (
    METRICS,
    OUTCOMES,
    REASONS,
    BaselineBlock,
    DayBlock,
    Outcome,
    Reason,
)
from rules.baseline.civil import CivilDay
from rules.baseline.daily_step import advance
from rules.baseline.judging import Judge, Memory, Opening
from rules.baseline.live import LiveEvaluation, Verdict
from rules.baseline.state import StateBlock
from tests.unit.rules.baseline.days import SETTINGS, day_of

STEP_MS: Final = 300_000
SERIES: Final = 3 * len(METRICS)
ZONE: Final = "Europe/Berlin"
TRANSITIONS: Final = (83, 293)  # days of 23 and of 25 hours


def baselines(seed: int, number: int) -> BaselineBlock:
    """Return bands of all metrics for a day, by the day and by the week, some of them without one."""
    draw = np.random.default_rng([seed, number])
    day = day_of(0, ZONE)
    metric = (np.arange(SERIES) % len(METRICS)).astype(np.uint8)
    made = DayBlock(
        series_id=np.arange(SERIES),
        metric=metric,
        step_ms=STEP_MS,
        values=draw.normal(100, 10, (SERIES, day.samples(STEP_MS))).astype(np.float32),
    )
    _, learnt = advance(StateBlock.new(SERIES), made, day, SETTINGS)
    mid = draw.normal(100, 5, (SERIES, 336)).astype(np.float32)
    outcomes = [OUTCOMES.index(Outcome.BANDED)] * 4 + [OUTCOMES.index(Outcome.SPARSE)]
    reasons = [REASONS.index(reason) for reason in (Reason.LEARNT, Reason.FIRST_WEEKS)]
    return replace(
        learnt,
        outcome=draw.choice(outcomes, SERIES).astype(np.uint8),
        reason=draw.choice(reasons, SERIES).astype(np.uint8),
        slots=draw.choice([48, 336], SERIES).astype(np.int32),
        mid=mid,
        upper=mid + 8,
        lower=mid - 8,
        threshold=np.full(SERIES, 3, np.float32),
        threshold_below=np.full(SERIES, 2.5, np.float32),
        drift_threshold=np.full(SERIES, 2, np.float32),
        fall_share=draw.choice([0, 0.1], SERIES).astype(np.float32),
    )


def samples(day: CivilDay, seed: int) -> DayBlock:
    """Return a day of levels near and far from what is usual, with gaps of all lengths."""
    draw = np.random.default_rng([seed, day.number])
    shape = (SERIES, day.samples(STEP_MS))
    level = draw.choice([100, 100, 100, 100, 0, 40, 135, 900], (SERIES, -(-shape[1] // 9)))
    values = np.repeat(level, 9, axis=1)[:, : shape[1]] + draw.normal(0, 8, shape)
    values[draw.random(shape) < 0.05] = np.nan
    gap = int(draw.integers(shape[1] - 15))
    values[:, gap : gap + 15] = np.nan
    return DayBlock(
        series_id=np.arange(SERIES),
        metric=(np.arange(SERIES) % len(METRICS)).astype(np.uint8),
        step_ms=STEP_MS,
        values=values.astype(np.float32),
    )


class Episodes:
    """What opened and closed live on one day."""

    def __init__(self, memory: Memory) -> None:
        self.open: dict[int, int | None] = dict.fromkeys(np.flatnonzero(memory.is_open).tolist())
        self.ended: set[Opening] = set()

    def add(self, sample: int, verdict: Verdict) -> None:
        for row in np.flatnonzero(verdict.opened).tolist():
            self.open[row] = sample
        for row in np.flatnonzero(verdict.closed).tolist():
            self.ended.add(Opening(row, self.open.pop(row), sample))

    def openings(self) -> set[Opening]:
        return self.ended | {Opening(row, opened, None) for row, opened in self.open.items()}


@settings(max_examples=3)
@given(seed=st.integers(0, 2**32 - 1), transition=st.sampled_from(TRANSITIONS))
def test_live_is_the_replay_to_the_sample(seed: int, transition: int) -> None:
    memory = Memory.empty(SERIES, STEP_MS)
    live: LiveEvaluation | None = None
    openings = 0
    for number in (transition - 1, transition, transition + 1):
        calendar = day_of(number, ZONE)
        day = samples(calendar, seed)
        judge = Judge.of(baselines(seed, number), calendar, STEP_MS, SETTINGS)
        after, replayed, scores = judge.replay(memory, day)
        live = live or LiveEvaluation(judge, memory)
        live.follow(judge)
        episodes = Episodes(memory)
        for sample in range(day.values.shape[1]):
            verdict = live.judge(sample, day.values[:, sample])
            for name in ("residual", "seasonal", "score"):
                now, that_day = getattr(verdict.scores, name), getattr(scores, name)
                assert now.tobytes() == that_day[:, sample].tobytes(), (number, sample, name)
            episodes.add(sample, verdict)
        assert episodes.openings() == set(replayed)
        openings += len(replayed)
        memory = live.memory
        for name in ("residual", "marks", "is_open", "expected"):
            np.testing.assert_array_equal(getattr(memory, name), getattr(after, name))
        live = LiveEvaluation(judge, memory) if number % 2 else live  # a restart changes nothing
    assert openings > SERIES
