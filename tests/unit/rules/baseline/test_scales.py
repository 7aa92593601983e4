"""How far is usual, from how often one is told, and the trend: against the formulas in plain Python."""

from __future__ import annotations

import math
import statistics
from itertools import combinations

import numpy as np
import pytest

from rules.baseline.blocks import METRIC_CODES, THRESHOLDS_BY, ThresholdBy
from rules.baseline.policy import BaselineSettings
from rules.baseline.publishing import slopes, thresholds
from rules.baseline.scales import Policies, Residuals, edges_of, keep_residuals, scales
from rules.baseline.series import Metric
from rules.baseline.state import LEVEL_DAYS, MONTH_DAYS, SCALE_DAYS
from tests.unit.rules.baseline.days import day_of
from tests.unit.rules.baseline.records import TODAY, empty, place, random

SETTINGS = BaselineSettings()


def policies(metric: Metric, series: int = 1) -> Policies:
    return Policies.of(np.full(series, METRIC_CODES[metric], np.uint8), SETTINGS)


def known(values: list[float]) -> list[float]:
    return [value for value in values if not math.isnan(value)]


def quantile(values: list[float], share: float) -> float:
    ordered = sorted(known(values))
    if share == 0.5:
        return statistics.median(ordered)
    return ordered[int(share * (len(ordered) - 1) + 0.5)]


@pytest.mark.parametrize(
    ("metric", "share"), [(Metric.OPEN_SPAN, 0.5), (Metric.READ_COMMITTED_LAG, 0.85)]
)
def test_a_scale_is_never_narrower_than_over_all_slots_and_the_policy(
    metric: Metric, share: float
) -> None:
    records = random(4, "above", gaps=0.3)
    records["above"] *= 1000
    records["below"] = random(4, "below")["below"] * 100
    records["scale"] = random(4, "scale")["scale"] * 500
    records["scale"][3] = np.nan
    found = scales(records, policies(metric, 4))
    for row in range(4):
        overall = known(records["scale"][row].tolist())
        wide = statistics.median(overall) if overall else -math.inf
        for name, side in (("above", found.above), ("below", found.below)):
            by_slot = [quantile(records[name][row, :, slot].tolist(), share) for slot in range(48)]
            half = statistics.median(by_slot) / 2
            expected = [max(one, half, wide, 1000 / 3) for one in by_slot]
            np.testing.assert_allclose(side[row], expected, rtol=1e-6)
    np.testing.assert_allclose(found.relative, 0.2 / 3, rtol=1e-6)


def test_a_rate_scatters_in_proportion_to_its_level() -> None:
    records = random(2, "above", gaps=0.3)
    records["below"], records["scale"] = records["above"], 0.5
    records["scale"][1] = 0.01
    found = scales(records, policies(Metric.PRODUCE_RATE, 2))
    np.testing.assert_allclose(found.new_level, [0.5, 0.2 / 3], rtol=1e-6)
    np.testing.assert_allclose(
        found.relative, [0.5, 1.2 / 3], rtol=1e-6
    )  # 2.2 times as much scores 3
    np.testing.assert_allclose(found.relative_below, [0.3, 0.5 / 3], rtol=1e-6)  # 0 scores 3.33
    for row in range(2):
        by_slot = [
            statistics.median(known(records["above"][row, :, slot].tolist())) for slot in range(48)
        ]
        np.testing.assert_allclose(
            found.above[row], [max(one, 1 / 3) for one in by_slot], rtol=1e-6
        )


def test_a_scale_is_no_less_than_a_share_of_what_is_expected() -> None:
    mid = np.array([[-300.0, 0.0, 30.0]], np.float32)
    relative = policies(Metric.OPEN_SPAN).relative  # 20 % at the least threshold of 3
    found = edges_of(mid, np.full_like(mid, 5), relative)
    np.testing.assert_allclose(found, [[20, 5, 5]], rtol=1e-6)


def test_residual_quantiles_need_half_of_a_slot() -> None:
    records, day = empty(), day_of(0)
    values = np.tile(np.arange(-1, -7, -1, dtype=np.float32), (1, 48))  # six samples in a slot
    values[0, 6:9] = np.nan
    values[0, 12:16] = np.nan
    residuals = Residuals(values, np.ones_like(values), np.ones(1, np.float32))
    keep_residuals(records, residuals, policies(Metric.OPEN_SPAN), day, least=24)
    row = day.number % SCALE_DAYS
    assert records["above"][0, row, :2].tolist() == [-1, -4]
    assert records["below"][0, row, :2].tolist() == [6, 6]
    assert np.isnan(records["above"][0, row]).tolist() == [False, False, True] + [False] * 45
    assert records["scale"][0, day.number % MONTH_DAYS] == 6
    keep_residuals(records, residuals, policies(Metric.OPEN_SPAN), day, least=289)
    assert np.isnan(records["scale"]).all()


def test_the_scale_of_a_rate_is_relative_to_no_less_than_half_of_its_level() -> None:
    records, day = empty(), day_of(0)
    mid = np.repeat(np.array([100, 10], np.float32), 144)[None]
    residuals = Residuals(mid * np.float32(0.2), mid, np.array([100], np.float32))
    keep_residuals(records, residuals, policies(Metric.PRODUCE_RATE), day, least=24)
    ratios = sorted([20 / 100] * 144 + [2 / 50] * 144)
    assert records["scale"][0, day.number % MONTH_DAYS] == pytest.approx(quantile(ratios, 0.95))


def maxima(values: list[float]) -> tuple[float, str]:
    """Return the threshold, and which term made it, of a series with such hourly maxima."""
    records = empty()
    ring = np.full(28 * 24, np.nan, np.float32)
    ring[: len(values)] = values
    records["maxima"] = np.random.default_rng(1).permutation(ring).reshape(1, 28, 24)
    found = thresholds(records, policies(Metric.OPEN_SPAN, 1), SETTINGS)
    return float(found.above[0]), THRESHOLDS_BY[found.by[0]]


@pytest.mark.parametrize(
    ("values", "threshold", "by"),
    [
        pytest.param([], 3, ThresholdBy.LEAST, id="nothing known"),
        pytest.param([1.0] * 672, 3, ThresholdBy.LEAST, id="a quiet series"),
        pytest.param([9.0] * 32 + [1.0] * 640, 3, ThresholdBy.LEAST, id="32 hours may be far out"),
        pytest.param([9.0] * 33 + [1.0] * 639, 9.9, ThresholdBy.OWN_HISTORY, id="33 may not"),
        pytest.param(
            [99.0] * 33 + [1.0] * 639, 12, ThresholdBy.LIMIT, id="no more than four times"
        ),
        pytest.param([9.0] + [1.0] * 23, 3, ThresholdBy.LEAST, id="one hour of the first day"),
        pytest.param([9.0, 8.0] + [1.0] * 22, 8.8, ThresholdBy.OWN_HISTORY, id="two of its hours"),
    ],
)
def test_the_threshold_is_capped_by_the_own_history(
    values: list[float], threshold: float, by: ThresholdBy
) -> None:
    found, found_by = maxima(values)
    assert found == pytest.approx(threshold)
    assert found_by == by


def test_each_side_has_a_threshold_of_its_own() -> None:
    records = empty()
    records["maxima"], records["maxima_below"], records["drifts"] = 1, 1, 1
    records["maxima"][0, :17, 0] = 6  # bursts do not raise the threshold of a fall
    records["drifts"][0, :5, 0] = 4
    found = thresholds(records, policies(Metric.PRODUCE_RATE, 1), SETTINGS)
    np.testing.assert_allclose([found.above[0], found.below[0], found.drift[0]], [6.6, 3, 4.4])


def test_a_fall_is_always_reported_of_series_that_seldom_fall() -> None:
    records = empty(3)
    records["maxima"] = 1
    records["falls"][1, :8], records["falls"][2, :9] = 2, 2  # 16 and 18 hours in four weeks
    shares = thresholds(records, policies(Metric.PRODUCE_RATE, 3), SETTINGS).fall_share
    np.testing.assert_allclose(shares, [0.1, 0.1, 0], rtol=1e-6)


def test_a_slow_change_of_a_young_series_needs_what_a_quick_one_needs() -> None:
    records = empty()
    records["maxima"] = 7
    records["drifts"][0, :6] = 1
    found = thresholds(records, policies(Metric.OPEN_SPAN, 1), SETTINGS)
    assert found.drift[0] == found.above[0] == pytest.approx(7.7)


def test_the_trend_is_the_median_of_all_slopes() -> None:
    records = random(3, "day_median")
    records["day_median"][2] = np.nan
    for back in range(6):  # less than a week
        records["day_median"][2, place(back, LEVEL_DAYS)] = back
    found = slopes(records, TODAY)
    for row in range(2):
        days = [
            (-back, float(records["day_median"][row, place(back, LEVEL_DAYS)]))
            for back in range(MONTH_DAYS)
        ]
        pairs = combinations([day for day in days if not math.isnan(day[1])], 2)
        expected = statistics.median((a[1] - b[1]) / (a[0] - b[0]) for a, b in pairs)
        assert found[row] == pytest.approx(expected, rel=1e-4, abs=1e-5)
    assert np.isnan(found[2])
