"""What a round of live evaluation costs at 100,000 series polled every 30 s; stats are printed.

Only processor time counts, so that other work on the machine matters little. State is all that is held
between rounds: the hour of samples, what is expected that day, thresholds and policies.
"""

from __future__ import annotations

import time
from dataclasses import fields, replace
from datetime import date
from typing import Final

import numpy as np

from rules.baseline.blocks import (
    METRICS,
    OUTCOMES,
    PROFILES,
    REASONS,
    BaselineBlock,
    Float32s,
    Outcome,
    Profile,
    Reason,
)
from rules.baseline.civil import CivilDay, civil_day
from rules.baseline.judging import KNOWN, SCORED, Judge, Memory
from rules.baseline.live import LiveEvaluation
from rules.baseline.policy import BaselineSettings
from tests.bench.memory import forget_peak, weights

SERIES: Final = 100_000
AT_ONCE: Final = 5_000
STEP_MS: Final = 30_000
ROUNDS: Final = 15
EXPECTED: Final = 5_000.0
UNUSUAL_SHARE: Final = 0.002


def baselines(first: int) -> BaselineBlock:
    """Return weekly bands of some series: the next ones after `first`."""
    draw = np.random.default_rng(first)
    cycle = 1 + 0.5 * np.sin(np.arange(336) * (2 * np.pi / 48))
    size = draw.uniform(0.8, 1.2, (AT_ONCE, 1)) * EXPECTED
    mid = (size * cycle).astype(np.float32)
    columns: dict[str, object] = {
        place.name: np.zeros(AT_ONCE, np.float32) for place in fields(BaselineBlock)
    }
    columns |= {
        "series_id": np.arange(first, first + AT_ONCE),
        "metric": (np.arange(AT_ONCE) % len(METRICS)).astype(np.uint8),
        "outcome": np.full(AT_ONCE, OUTCOMES.index(Outcome.BANDED), np.uint8),
        "reason": np.full(AT_ONCE, REASONS.index(Reason.LEARNT), np.uint8),
        "profile": np.full(AT_ONCE, PROFILES.index(Profile.WEEKLY), np.uint8),
        "slots": np.full(AT_ONCE, 336, np.int32),
        "mid": mid,
        "upper": mid * np.float32(1.3),
        "lower": mid * np.float32(0.7),
        "threshold": np.full(AT_ONCE, 3, np.float32),
        "threshold_below": np.full(AT_ONCE, 3, np.float32),
        "drift_threshold": np.full(AT_ONCE, 3, np.float32),
    }
    return BaselineBlock(**columns)  # type: ignore[arg-type]


def load(day: CivilDay) -> Judge:
    settings = BaselineSettings()
    parts = [
        Judge.of(baselines(first), day, STEP_MS, settings) for first in range(0, SERIES, AT_ONCE)
    ]
    return Judge.join(parts)


def an_hour() -> Memory:
    """Return an hour of samples near to what is expected."""
    memory = Memory.empty(SERIES, STEP_MS)
    draw = np.random.default_rng(1)
    residual = draw.standard_normal(memory.residual.shape, np.float32) * np.float32(100)
    return replace(memory, residual=residual, marks=np.full_like(memory.marks, SCORED | KNOWN))


def samples(judge: Judge, number: int, unusual_share: float) -> Float32s:
    """Return a sample of all series near to what is expected; of a share of them far above and new."""
    draw = np.random.default_rng(number)
    mid = judge.expected_at(number).mid[:, 0]
    values = mid * draw.uniform(0.9, 1.1, SERIES).astype(np.float32)
    values[draw.random(SERIES) < unusual_share] *= 20 * (1 + number)
    return values


def test_a_round_of_100_000_series() -> None:
    day = civil_day(date(2026, 6, 3), "Europe/Berlin")
    begin = time.process_time()
    judge = load(day)
    loaded = time.process_time() - begin
    live = LiveEvaluation(judge, an_hour())
    print(f"\n{SERIES} series: {loaded:.2f} s to load a day; state {live.nbytes / 2**20:.0f} MiB")
    sample = opened = 0
    for title, share in (("usual", 0.0), ("0.2 % unusual", UNUSUAL_SHARE), ("all unusual", 1.0)):
        taken, opened = [], 0
        for _ in range(ROUNDS):
            values = samples(judge, sample, share)
            forget_peak()
            begin = time.process_time()
            verdict = live.judge(sample, values)
            taken.append((time.process_time() - begin) * 1000)
            opened += int(verdict.opened.sum())
            sample += 1
        held, most = weights()
        taken.sort()
        print(
            f"  {title:<14} a round takes {taken[ROUNDS // 2]:6.1f} ms (most {taken[-1]:6.1f}); "
            f"{opened} opened; {most - held:.0f} MiB more within a round"
        )
    begin = time.process_time()
    live.memory  # noqa: B018 - it is a copy, and that is what is measured
    print(f"  a checkpoint's copy takes {(time.process_time() - begin) * 1000:.0f} ms")
    assert opened > 0
