"""Medians and quantiles, against plain ones of Python."""

from __future__ import annotations

import itertools
import statistics

import numpy as np
import pytest

from rules.baseline.blocks import Float32s
from rules.baseline.order import (
    _network,
    count_known,
    day_quantiles,
    medians,
    medians_of_days,
    quantiles,
)


def rows(count: int, width: int, gaps: float) -> Float32s:
    """Return rows of small whole numbers, halves and gaps: the first is whole, the second empty."""
    draw = np.random.default_rng(width)
    made = draw.integers(-9, 10, (count, width)) / 2
    made[draw.random(made.shape) < gaps] = np.nan
    made[0] = draw.integers(-9, 10, width)
    made[1] = np.nan
    return made.astype(np.float32)


def known(row: Float32s) -> list[float]:
    return sorted(value for value in row.tolist() if value == value)  # noqa: PLR0124 - not NaN


def plain_median(row: Float32s, least: int = 1) -> float:
    values = known(row)
    return statistics.median(values) if len(values) >= least else np.nan


def plain_quantile(row: Float32s, share: float) -> float:
    values = known(row)
    return values[int(share * (len(values) - 1) + 0.5)] if values else np.nan


@pytest.mark.parametrize("width", [1, 2, 7, 120, 511, 512, 513])
@pytest.mark.parametrize("gaps", [0.0, 0.4])
def test_medians_leave_gaps_out(width: int, gaps: float) -> None:
    made = rows(12, width, gaps)
    for least in (1, width // 2 + 1):
        expected = [plain_median(row, least) for row in made]
        np.testing.assert_array_equal(medians(made, least), np.array(expected, np.float32))
    assert count_known(made).tolist() == [len(known(row)) for row in made]


@pytest.mark.parametrize("days", [1, 2, 5, 10, 14])
@pytest.mark.parametrize("gaps", [0.0, 0.4])
def test_medians_over_days_leave_gaps_out(days: int, gaps: float) -> None:
    made = rows(30, days, gaps).reshape(10, 3, days).transpose(0, 2, 1)
    for least in (1, 2):
        expected = [[plain_median(made[n, :, s], least) for s in range(3)] for n in range(10)]
        found = medians_of_days(made, least)
        np.testing.assert_array_equal(found, np.array(expected, np.float32))


@pytest.mark.parametrize("width", [1, 20, 61])
def test_quantiles_are_of_the_nearest_rank(width: int) -> None:
    made = rows(12, width, 0.3)
    for share in (0.05, 0.95):
        expected = np.array([plain_quantile(row, share) for row in made], np.float32)
        np.testing.assert_array_equal(day_quantiles(made, share), expected)
        ordered = np.sort(made, axis=-1)
        np.testing.assert_array_equal(quantiles(ordered, count_known(made), share), expected)


@pytest.mark.parametrize("lanes", [1, 2, 3, 5, 7, 10])
def test_the_network_sorts(lanes: int) -> None:
    for bits in itertools.product((0, 1), repeat=lanes):  # what sorts all of these sorts anything
        line = list(bits)
        for low, high in _network(lanes):
            line[low], line[high] = sorted((line[low], line[high]))
        assert line == sorted(bits)
