"""The series of a group fit together, follow the clock on the wall, and are the same every time."""

from __future__ import annotations

from datetime import date, timedelta

import numpy as np
import pytest
from numpy.typing import NDArray

from rules.baseline.series import Metric
from service.sandbox.simulator.block import seconds_behind, waiting
from service.sandbox.simulator.fleet import Batch, Traffic
from service.sandbox.simulator.grid import clock_changes, day_grid, hours_of_week
from service.sandbox.simulator.occasions import Kind
from service.sandbox.simulator.simulation import Simulation, SimulationRequest
from service.sandbox.simulator.writing import labels_of
from tests.unit.service.sandbox.simulator.simulated import DAY, STEP_MS, ZONE, Days, pipeline

END = date(2026, 3, 30)  # the day after clocks in Berlin are changed
HOUR_MS = 3_600_000


def simulated(seed: int = 3, series: int = 60) -> dict[int, NDArray[np.float32]]:
    """Return all samples of a week by series."""
    simulation = Simulation(SimulationRequest(seed=seed, series=series, weeks=1, end=END))
    parts: dict[int, list[NDArray[np.float32]]] = {}
    for _, blocks in simulation.days():
        for block in blocks:
            for series_id, row in zip(block.series_id.tolist(), block.values, strict=True):
                parts.setdefault(series_id, []).append(row)
    return {series_id: np.concatenate(rows) for series_id, rows in parts.items()}


def test_the_same_seed_makes_the_same_weeks_and_another_one_others() -> None:
    first, again, other = simulated(), simulated(), simulated(seed=4)
    assert {series_id: row.tobytes() for series_id, row in first.items()} == {
        series_id: row.tobytes() for series_id, row in again.items()
    }
    shared = first.keys() & other.keys()
    assert any(first[series_id].tobytes() != other[series_id].tobytes() for series_id in shared)


def test_a_simulation_has_as_many_series_as_wanted() -> None:
    assert len(simulated(series=50)) == 50


def test_more_series_leave_the_first_ones_as_they_are() -> None:
    requests = [SimulationRequest(seed=3, series=many, weeks=1, end=END) for many in (60, 200)]
    few, many = (Simulation(request) for request in requests)
    assert many.series[:60] == few.series
    assert [occasion for occasion in many.occasions if occasion in few.occasions] == few.occasions


def test_offsets_of_a_group_fit_together() -> None:
    days = Days(pipeline(), days=2)
    lag, stable_lag = days.of(Metric.READ_UNCOMMITTED_LAG), days.of(Metric.READ_COMMITTED_LAG)
    np.testing.assert_array_equal(lag, stable_lag + days.of(Metric.OPEN_SPAN))
    more = days.of(Metric.PRODUCE_RATE) - days.of(Metric.CONSUME_RATE)
    np.testing.assert_allclose(np.diff(lag), more[1:] * STEP_MS / 1000, atol=0.1)
    assert (days.values >= 0).all()


def test_seconds_are_those_in_which_the_lag_was_written() -> None:
    days = Days(pipeline(transaction_seconds=None))
    offsets, seconds = (
        days.of(metric) for metric in (Metric.READ_COMMITTED_LAG, Metric.READ_COMMITTED_LAG_SECONDS)
    )
    pace = offsets / np.maximum(seconds, 0.01)
    np.testing.assert_allclose(pace, days.of(Metric.PRODUCE_RATE), rtol=0.1)


def test_a_day_is_like_the_other_and_the_weekend_is_quieter() -> None:
    one_wave = pipeline(noise=0.0, jitter=0.0, waves=((0.8, 14.0), (0.0, 10.0)))
    days = Days(one_wave, days=7, day=date(2026, 3, 16))  # from a Monday on
    rate = days.of(Metric.PRODUCE_RATE).reshape(7, 24, -1).mean(axis=2)
    assert np.corrcoef(rate[1], rate[2])[0, 1] > 0.99
    assert rate[1].argmax() in (13, 14)
    assert rate[1].argmin() in (1, 2)
    assert rate[5].mean() / rate[2].mean() == pytest.approx(0.5, abs=0.1)


def test_the_day_follows_the_clock_over_its_change() -> None:
    quiet = pipeline(noise=0.0, jitter=0.0, weekend=(1.0, 1.0))
    days = Days(quiet, days=3, day=date(2026, 3, 28))
    rate, hours = days.of(Metric.PRODUCE_RATE), hours_of_week(days.times_ms, ZONE) % 24
    saturday, monday = slice(0, 2880), slice(2880 + 2760, None)
    assert [grid.count for grid in days.grids] == [2880, 2760, 2880]
    assert not ((hours >= 2) & (hours < 3))[2880 : 2880 + 2760].any()
    for hour in (8, 14, 20):
        levels = [
            rate[part][(hours[part] >= hour) & (hours[part] < hour + 1)].mean()
            for part in (saturday, monday)
        ]
        assert levels[0] == pytest.approx(levels[1], rel=0.2)
    assert clock_changes(int(days.times_ms[0]), int(days.times_ms[-1]), ZONE) == [
        int(day_grid(date(2026, 3, 29), ZONE, STEP_MS).start_ms) + 2 * HOUR_MS
    ]


def test_a_job_writes_at_its_minute_of_the_day() -> None:
    batch = Batch(minute=150, seconds=1800.0, factor=6.0, zone=ZONE)
    days = Days(pipeline(traffic=Traffic.NIGHTLY_BATCH, batch=batch), days=2)
    plain = Days(pipeline(traffic=Traffic.NIGHTLY_BATCH), days=2)
    ratio = days.of(Metric.PRODUCE_RATE) / plain.of(Metric.PRODUCE_RATE)
    hours = hours_of_week(days.times_ms, ZONE) % 24
    during = (hours > 2.51) & (hours < 2.99)
    assert ratio[during].mean() == pytest.approx(6, rel=0.05)
    assert ratio[(hours < 2.5) | (hours > 3.01)].mean() == pytest.approx(1, rel=0.05)


def test_growth_is_by_the_day() -> None:
    grown = Days(pipeline(drift=0.05), days=3)
    plain = Days(pipeline(), days=3)
    ratio = grown.of(Metric.PRODUCE_RATE) / plain.of(Metric.PRODUCE_RATE)
    assert ratio[-120:].mean() == pytest.approx(np.exp(0.15), rel=0.02)


def test_what_waits_is_what_step_by_step_waits() -> None:
    rng = np.random.default_rng(1)
    arrivals, capacity = rng.uniform(0, 10, (2, 200)), rng.uniform(0, 10.2, (2, 200))
    queue = np.array([3.0, 0.0])
    expected = []
    for step in range(200):
        queue = np.maximum(queue + arrivals[:, step] - capacity[:, step], 0)
        expected.append(queue)
    result = waiting(arrivals, capacity, np.array([3.0, 0.0]))
    np.testing.assert_allclose(result, np.stack(expected, axis=1), atol=1e-9)


def test_seconds_behind_are_by_when_the_next_record_came() -> None:
    ends = np.array([0, 10, 10, 20, 40])
    times = np.arange(5, dtype=np.int64) * 10_000
    committed = np.array([5, 10, 40])  # half of the second step's; the third step's first; all
    seconds = seconds_behind(ends, times, committed)
    np.testing.assert_allclose(seconds, [20 - 5, 30 - 20, 0])


def test_an_outage_hides_all_and_the_rates_of_the_next_sample() -> None:
    simulation = Simulation(SimulationRequest(seed=3, series=40, weeks=2, end=END))
    outage = simulation.outages[0]
    by_day = dict(simulation.days())
    at = next(
        day
        for day, (first, *_) in by_day.items()
        if first.grid.start_ms <= outage.start_ms and outage.end_ms < first.grid.end_ms - HOUR_MS
    )
    values = np.concatenate([block.values for block in by_day[at]])
    times = by_day[at][0].grid.times_ms
    hidden = (times >= outage.start_ms) & (times < outage.end_ms)
    assert np.isnan(values[:, hidden]).all()
    next_one = np.flatnonzero(hidden)[-1] + 1
    metrics = [series.metric for series in simulation.series]
    lag, rate = metrics.index(Metric.READ_COMMITTED_LAG), metrics.index(Metric.PRODUCE_RATE)
    assert np.isnan(values[rate, next_one])
    assert not np.isnan(values[lag, next_one])


def test_the_labels_tell_all_that_happens() -> None:
    simulation = Simulation(SimulationRequest(seed=3, series=200, weeks=4, end=END))
    labels = labels_of(simulation)
    kinds = {occasion["kind"] for occasion in labels["occasions"]}
    seen = [occasion for occasion in simulation.occasions if simulation.is_visible(occasion)]
    assert len(labels["occasions"]) == len(seen) + len(simulation.outages)
    assert {occasion.pipeline for occasion in simulation.occasions if occasion not in seen} <= {
        len(simulation.pipelines) - 1
    }
    assert {Kind.DEPLOY, Kind.REBALANCE, Kind.COLLECTOR_OUTAGE} <= kinds
    assert [occasion["at"] for occasion in labels["clock_changes"]] == [
        "2026-03-29T01:00:00+00:00",
        "2026-03-08T07:00:00+00:00",
    ]
    starts = [occasion["start_ms"] for occasion in labels["occasions"]]
    assert starts == sorted(starts)
    assert labels["first_day"] == (END - timedelta(days=27)).isoformat()


def test_an_incident_has_no_deploy_near_it() -> None:
    simulation = Simulation(SimulationRequest(seed=5, series=300, weeks=8, end=DAY))
    incidents = [incident for incident in simulation.occasions if incident.is_incident]
    assert {incident.kind for incident in incidents} >= {Kind.SURGE, Kind.POISON_PILL}
    for incident in incidents:
        assert not any(
            other.pipeline == incident.pipeline
            and other.kind in (Kind.DEPLOY, Kind.REBALANCE)
            and incident.start_ms - HOUR_MS < other.start_ms < incident.end_ms + 4 * HOUR_MS
            for other in simulation.occasions
        )
