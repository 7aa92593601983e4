"""How many records per second are meant to be written, in columns of five minutes.

One row per pipeline. The rate is a shape over the civil week, times growth, times noise that lasts:
some for about half an hour, some for about a day.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from service.sandbox.simulator.fleet import Pipeline
from service.sandbox.simulator.grid import COARSE_MS, DAY_MS, WEEK_HOURS, DayGrid, hours_of_week

NOISE_MS: Final = 2_400_000  # how long the two kinds of noise last
SLOW_NOISE_MS: Final = DAY_MS
SLOW_NOISE: Final = 0.04  # standard deviation, as a share
WEEK: Final = np.arange(0, WEEK_HOURS, 0.25)

Floats = NDArray[np.float64]


class TrafficModel:
    """The rates of some pipelines, day by day; remembers the noise of the day before."""

    def __init__(self, pipelines: Sequence[Pipeline], start_ms: int) -> None:
        self._pipelines = pipelines
        self._start_ms = start_ms
        self._noise: Floats | None = None  # of both kinds, at the end of the day before
        self._means = np.array([_shape(pipeline, WEEK).mean() for pipeline in pipelines])
        tops = np.array([_shape(pipeline, WEEK).max() for pipeline in pipelines])
        self._rates = np.array([pipeline.rate for pipeline in pipelines])
        self.busiest: Floats = self._rates * tops / self._means  # records per second and partition

    def growth(self, times_ms: NDArray[np.int64]) -> Floats:
        """Return how many times as much as at first is written."""
        days = (times_ms - self._start_ms) / DAY_MS
        drifts = np.array([pipeline.drift for pipeline in self._pipelines])
        grown: Floats = np.exp(np.outer(drifts, days))
        return grown

    def rates(self, grid: DayGrid, rng: np.random.Generator) -> Floats:
        """Return records per second and partition, at the coarse points of a day."""
        times = grid.coarse_ms
        hours = {zone: hours_of_week(times, zone) for zone in {p.zone for p in self._pipelines}}
        shapes = np.stack([_shape(pipeline, hours[pipeline.zone]) for pipeline in self._pipelines])
        level = (self._rates / self._means)[:, None] * self.growth(times)
        rates: Floats = shapes * level * self._noises(len(times), rng)
        return rates

    def _noises(self, count: int, rng: np.random.Generator) -> Floats:
        """Return the factors of the noise; the first point is the day before's last one."""
        size = len(self._pipelines)
        steps = rng.standard_normal((2, size, count))
        keeps = np.exp(-COARSE_MS / np.array([NOISE_MS, SLOW_NOISE_MS]))[:, None]
        steps[:, :, 1:] *= np.sqrt(1 - keeps**2)[:, :, None]
        if self._noise is not None:
            steps[:, :, 0] = self._noise
        # A process that forgets, as a sum: x[k] = keep^k * sum(steps[j] / keep^j).
        fading = keeps ** np.arange(count)
        noise = np.cumsum(steps / fading[:, None, :], axis=2) * fading[:, None, :]
        self._noise = noise[:, :, -1]
        short = np.array([pipeline.noise for pipeline in self._pipelines])[:, None]
        factors: Floats = np.exp(
            noise[0] * short - short**2 / 2 + noise[1] * SLOW_NOISE - SLOW_NOISE**2 / 2
        )
        return factors


def _shape(pipeline: Pipeline, hours: Floats) -> Floats:
    """Return how busy a pipeline is at hours of the week, to no scale."""
    waves = [
        strength * np.cos((hours - at) * (2 * np.pi * times / 24))
        for times, (strength, at) in enumerate(pipeline.waves, 1)
    ]
    days = np.array([1, 1, 1, 1, 1, *pipeline.weekend])
    # The factor of a day holds from 6 to 22 o'clock, and is interpolated to the next day's in between.
    knots = np.add.outer(np.arange(7) * 24, [6, 22]).ravel()
    weekly = np.interp(hours, knots, np.repeat(days, 2), period=WEEK_HOURS)
    shape: Floats = np.exp(waves[0] + waves[1]) * weekly
    return shape


def at_samples(coarse: Floats, grid: DayGrid) -> Floats:
    """Return coarse columns at the samples of a day."""
    per_point = COARSE_MS // grid.step_ms
    part = (np.arange(per_point) / per_point)[None, None, :]
    left, right = coarse[:, :-1, None], coarse[:, 1:, None]
    fine: Floats = (left + (right - left) * part).reshape(len(coarse), -1)
    return fine
