"""What learning costs per series and night, part by part; stats are printed.

One core, polls every 30 s, 35 days behind it: all rings are full. Some series have gaps, some have incidents or masks.
Only processor time counts, so that other work on the machine matters little.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import date, timedelta
from typing import Any, Final

import numpy as np
import pytest

from rules.baseline import changes, daily_step, masking, profiles, publishing, scales, scores
from rules.baseline.blocks import METRICS, DayBlock, Profile
from rules.baseline.civil import CivilDay, civil_day
from rules.baseline.policy import BaselineSettings
from rules.baseline.state import STATE_BYTES, StateBlock

SERIES: Final = 512
DAYS: Final = 40
MEASURED: Final = 4  # nights
STEP_MS: Final = 30_000
ZONE: Final = "Europe/Berlin"

PARTS: Final = (  # of the formulas that are on
    "slot levels over 60 minutes, daily median",
    "constant, daily and weekly profiles, chosen by their errors of 14 days",
    "level correction against the chosen profile",
    "asymmetric scales per slot, global scale of 28 days, least by policy",
    "seasonal and novelty scores of every sample, hourly maxima",
    "threshold capped by 28 days of hourly maxima",
    "Theil-Sen trend of 28 daily medians, new levels, ring that follows them",
    "masks, sparse, young and vanished series, slots in a civil zone",
)
TIMED: Final[tuple[tuple[object, str], ...]] = (
    (profiles, "candidates"),
    (scales, "scales"),
    (daily_step, "expected_faces"),
    (scores.Expected, "on"),
    (daily_step, "score_residuals"),
    (daily_step, "hourly_maxima"),
    (scales, "keep_residuals"),
    (daily_step, "gather_slots"),
    (profiles, "keep_errors"),
    (changes, "follow"),
    (masking, "select_for_delta"),
    (daily_step, "build_baselines"),
    (publishing, "scales"),
    (publishing, "thresholds"),
    (publishing, "slopes"),
)


def made(day: CivilDay, draw: np.random.Generator) -> DayBlock:
    """Return a day of cyclic series with heavy tails; on odd days a third of them has a gap."""
    samples = day.samples(STEP_MS)
    hour = np.repeat(day.quarters / 4, samples // len(day.quarters))
    size = np.random.default_rng(1).gamma(2, 50, (SERIES, 1))
    weekend = 0.5 if day.weekday >= 5 else 1
    cycle = size * weekend * (1.2 + np.sin(hour * np.pi / 12))
    values = np.maximum(0, cycle + size * 0.1 * draw.standard_t(4, (SERIES, samples)))
    if day.number % 2:
        values[draw.random(SERIES) < 0.3, 100:160] = np.nan
    values[draw.random(SERIES) < 0.02, 1000:1100] *= 5
    masked = np.zeros(values.shape, np.bool_)
    masked[draw.random(SERIES) < 0.02, 1000:1100] = True
    return DayBlock(
        series_id=np.arange(SERIES),
        metric=(np.arange(SERIES) % len(METRICS)).astype(np.uint8),
        step_ms=STEP_MS,
        values=values.astype(np.float32),
        masked=masked,
    )


class Stopwatch:
    """Adds up what parts take."""

    def __init__(self) -> None:
        self.taken: dict[str, float] = {}

    def timed(self, name: str, action: Callable[..., Any]) -> Callable[..., Any]:
        def run(*args: Any, **named: Any) -> Any:
            begin = time.process_time()
            try:
                return action(*args, **named)
            finally:
                spent = time.process_time() - begin
                self.taken[name] = self.taken.get(name, 0) + spent

        return run


def test_cost_of_a_night(monkeypatch: pytest.MonkeyPatch) -> None:
    draw, settings = np.random.default_rng(7), BaselineSettings()
    states, watch = StateBlock.new(SERIES), Stopwatch()
    whole: list[float] = []
    days = [civil_day(date(2026, 4, 6) + timedelta(days=number), ZONE) for number in range(DAYS)]
    for day in days[:-MEASURED]:
        states, _ = daily_step.advance(states, made(day, draw), day, settings)
    for owner, name in TIMED:
        title = f"{getattr(owner, '__name__', owner)}.{name}".removeprefix("rules.baseline.")
        monkeypatch.setattr(owner, name, watch.timed(title, getattr(owner, name)))
    chosen = np.zeros(len(Profile), np.int64)
    for day in days[-MEASURED:]:
        block = made(day, draw)
        begin = time.process_time()
        states, baselines = daily_step.advance(states, block, day, settings)
        whole.append(time.process_time() - begin)
        chosen = np.bincount(baselines.profile, minlength=len(Profile))
    per = 1e6 / SERIES
    last = sorted(whole[-MEASURED:])
    samples = days[-1].samples(STEP_MS)
    print(f"\n{SERIES} series, {samples} samples a day, {STATE_BYTES} bytes of state")
    print(f"one night after {DAYS - 1}: {per * last[0]:.0f} to {per * last[-1]:.0f} us per series")
    print("parts that are on:", *PARTS, sep="\n  ")
    print("of these, us per series (parts contain parts that they call):")
    for name, spent in sorted(watch.taken.items(), key=lambda one: -one[1]):
        print(f"  {name:32}{per * spent / MEASURED:7.1f}")
    print("profiles:", dict(zip([one.value for one in Profile], chosen.tolist(), strict=True)))
    assert chosen.sum() == SERIES
