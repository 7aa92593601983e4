"""What a replay of days reports: from when to when, the worst of it, and only by what was known before."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
import pytest

from rules.baseline.blocks import Float32s
from rules.baseline.daily_step import advance
from rules.baseline.replaying import BacktestOpening, Replay
from rules.baseline.series import Metric
from rules.baseline.state import StateBlock
from tests.unit.rules.baseline.days import FIRST, SETTINGS, STEP_MS, block, daily, day_of, hours

DAYS = 20
HOUR = 3_600_000 // STEP_MS  # samples
Change = tuple[int, int, float]  # first sample and end, of a day, and the value there


def replay(changes: Mapping[int, Change], *, from_day: int = 15) -> Replay:
    """Return the replay of a series with a daily cycle, some of whose days are changed."""
    replayed = Replay(SETTINGS, day_of(from_day).start_ms)
    states = StateBlock.new(1)
    for number in range(DAYS):
        calendar = day_of(number)
        day = block(_values(number, changes), Metric.PRODUCE_RATE)
        replayed.judge(day, calendar)
        states, baselines = advance(states, day, calendar, SETTINGS)
        replayed.learn([baselines])
    return replayed


def _values(number: int, changes: Mapping[int, Change]) -> Float32s:
    calendar = day_of(number)
    values = daily(calendar, hours(calendar))
    if number in changes:
        first, end, value = changes[number]
        values[0, first:end] = value
    return values


def span(opening: BacktestOpening) -> tuple[float, float | None]:
    """Return when it opened and closed, in samples since the first day."""
    start = day_of(0).start_ms
    closed = None if opening.closed_ms is None else (opening.closed_ms - start) / STEP_MS
    return (opening.opened_ms - start) / STEP_MS, closed


def test_an_incident_opens_and_closes_and_has_its_worst_sample() -> None:
    [opening] = replay({17: (10 * HOUR, 12 * HOUR, 0)}).openings
    first = 17 * 24 * HOUR + 10 * HOUR
    opened, closed = span(opening)
    assert first <= opened <= first + 2, "after the five minutes of its policy"
    assert closed is not None
    assert first + 2 * HOUR < closed <= first + 3 * HOUR
    assert opening.value == 0
    assert opening.least < opening.expected < opening.most
    hour = (opening.worst_ms - day_of(17).start_ms) / 3_600_000
    assert opening.expected == pytest.approx(100 + 60 * math.sin(hour * math.pi / 12), abs=5)
    assert opening.score > SETTINGS.k_min
    assert opening.days == 17


def test_an_opening_lasts_over_midnight_and_is_one() -> None:
    [opening] = replay({17: (22 * HOUR, 24 * HOUR, 20), 18: (0, 2 * HOUR, 0)}).openings
    opened, closed = span(opening)
    assert opened < 18 * 24 * HOUR < (closed or 0)
    assert opening.worst_ms >= day_of(18).start_ms, "it is worse on the second day"
    assert opening.value == 0


def test_what_is_open_at_the_end_has_no_end() -> None:
    [opening] = replay({19: (20 * HOUR, 24 * HOUR, 0)}).openings
    assert opening.closed_ms is None


def test_what_opened_before_the_period_is_none_of_it() -> None:
    changes = {14: (22 * HOUR, 24 * HOUR, 0), 15: (0, 2 * HOUR, 0)}
    assert replay(changes).openings == []
    assert len(replay(changes, from_day=14).openings) == 1


def test_later_days_change_nothing_of_earlier_ones() -> None:
    early: dict[int, Change] = {16: (10 * HOUR, 12 * HOUR, 0)}
    alone = replay(early).openings
    both = replay({**early, 18: (0, 24 * HOUR, 900)}).openings
    assert both[: len(alone)] == alone
    assert len(both) > len(alone)


def test_days_are_counted_on_which_a_series_was_measured_and_had_a_band() -> None:
    replayed = replay({17: (0, 24 * HOUR, float("nan"))})
    totals = replayed.totals[Metric.PRODUCE_RATE.value]
    assert (totals.series, totals.series_days) == ({0}, DAYS - 15 - 1)
    assert replayed.openings == [], "what was not measured opens nothing"


def test_without_a_baseline_nothing_is_judged() -> None:
    replayed = Replay(SETTINGS, 0)
    calendar = day_of(0)
    assert calendar.day == FIRST
    replayed.judge(block(np.full(calendar.samples(STEP_MS), 1e6, np.float32)), calendar)
    assert (replayed.openings, replayed.totals) == ([], {})
