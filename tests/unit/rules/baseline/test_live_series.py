"""Rounds that are scored live: on the grid of history, over midnight, runs, restarts, gaps and silence."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cache
from typing import Final

import numpy as np
import pytest

from rules.baseline.blocks import OUTCOMES, BaselineBlock, DayBlock, Float32s, Outcome
from rules.baseline.grid import put_row, whole_step
from rules.baseline.judging import Judge, Memory, Opening
from rules.baseline.live_series import UNKNOWN_REASONS, DayJudge, LiveSeries, StepVerdict
from tests.unit.rules.baseline.days import SETTINGS, after, day_of, noise

MINUTE: Final = 60_000
SERIES: Final = 6
FLAT: Final = 100.0
IDS: Final = np.arange(SERIES)


@cache
def learnt() -> BaselineBlock:
    """Return bands around 100 of series numbered from 0, by fifteen days."""
    _, made = after(15, lambda day, hour: FLAT + noise(day, (SERIES, len(hour))))
    return made


def judges(
    baselines: BaselineBlock, days: Iterable[int], zone: str, interval_ms: int = MINUTE
) -> list[DayJudge]:
    return [DayJudge.of(baselines, day_of(number, zone), interval_ms, SETTINGS) for number in days]


def evaluation(days: Sequence[DayJudge], interval_ms: int = MINUTE) -> LiveSeries:
    return LiveSeries(lambda at_ms: judge_at(days, at_ms), interval_ms=interval_ms)


def judge_at(days: Sequence[DayJudge], at_ms: int) -> DayJudge | None:
    for day in days:
        if day.judge.calendar.start_ms <= at_ms < day.judge.calendar.end_ms:
            return day
    return None


def feed(live: LiveSeries, begin_ms: int, rounds: Iterable[Float32s | float]) -> list[StepVerdict]:
    """Put a round a minute."""
    verdicts = []
    for number, values in enumerate(rounds):
        columns = np.broadcast_to(np.float64(values), (SERIES,))
        verdicts += live.put(begin_ms + number * MINUTE, IDS, columns)
    return verdicts


def reasons(verdict: StepVerdict) -> list[str]:
    return [UNKNOWN_REASONS[code].value for code in verdict.unknown]


def openings(verdicts: Iterable[StepVerdict], day: DayJudge) -> set[Opening]:
    """Return what opened and closed on a day, as a replay does."""
    since: dict[int, int | None] = {}
    ended = set()
    for each in verdicts:
        sample = (each.start_ms - day.judge.calendar.start_ms) // day.judge.step_ms
        mine = each.day is day
        for row in np.flatnonzero(each.verdict.opened).tolist():
            since[row] = sample if mine else None
        for row in np.flatnonzero(each.verdict.closed).tolist():
            opened = since.pop(row)
            ended |= {Opening(row, opened, sample)} if mine else set()
    return ended | {Opening(row, opened, None) for row, opened in since.items()}


@pytest.mark.parametrize(
    ("zone", "first", "interval_ms"),
    [
        ("UTC", 20, 60_000),
        ("Europe/Berlin", 83, 60_000),  # 23 hours
        ("America/New_York", 300, 55_000),  # 25 hours; the step of the grid is a minute
    ],
)
def test_rounds_open_what_the_replay_of_their_history_opens(
    zone: str, first: int, interval_ms: int
) -> None:
    days = judges(learnt(), (first, first + 1), zone, interval_ms)
    calendars = [day.judge.calendar for day in days]
    draw = np.random.default_rng(first)
    begin, end = calendars[0].start_ms, calendars[1].end_ms
    times = np.arange(begin, end, interval_ms) + draw.integers(0, interval_ms - 1, 1)
    times = times + draw.integers(-20_000, 20_000, len(times))  # two in a step, and none in another
    times = times[(times >= begin + interval_ms) & (draw.random(len(times)) > 0.05)]
    times.sort()
    level = np.repeat(draw.choice([100, 100, 100, 900, 0], (len(times) // 40 + 1, SERIES)), 40, 0)
    values = level[: len(times)] + draw.normal(0, 1, (len(times), SERIES))
    values[draw.random(values.shape) < 0.1] = np.nan

    live = evaluation(days, interval_ms)
    verdicts = []
    for at_ms, of_round in zip(times.tolist(), values, strict=True):
        verdicts += live.put(at_ms, IDS, of_round)
    verdicts += live.put(end + MINUTE, IDS, np.full(SERIES, np.nan))

    memory = Memory.empty(SERIES, whole_step(interval_ms))
    for day, calendar in zip(days, calendars, strict=True):
        history = of_history(times, values, interval_ms, calendar.start_ms, day.judge)
        memory, replayed, scores = day.judge.replay(memory, history)
        mine = [each for each in verdicts if each.day is day]
        for each in mine:
            sample = (each.start_ms - calendar.start_ms) // day.judge.step_ms
            np.testing.assert_array_equal(each.verdict.scores.score[:, 0], scores.score[:, sample])
        until = [each for each in verdicts if each.start_ms < calendar.end_ms]
        assert openings(until, day) == set(replayed)
        assert len(mine) >= history.values.shape[1] - 2
        assert len(replayed) > SERIES


def of_history(
    times: np.ndarray, values: np.ndarray, interval_ms: int, midnight_ms: int, judge: Judge
) -> DayBlock:
    """Return a day as history packs rounds and the baseline run grids them."""
    slots = times // interval_ms
    packed = np.full((SERIES, int(slots[-1] - slots[0]) + 1), np.nan, np.float32)
    for slot, of_round in zip((slots - slots[0]).tolist(), values.astype(np.float32), strict=True):
        packed[:, slot] = np.where(np.isnan(of_round), packed[:, slot], of_round)
    grid = np.full((SERIES, judge.calendar.samples(judge.step_ms)), np.nan, np.float32)
    since = int(slots[0]) * interval_ms - midnight_ms
    for row, taken in zip(grid, packed, strict=True):
        put_row(row, taken, since, interval_ms, judge.step_ms)
    metric = np.zeros(SERIES, np.uint8)
    return DayBlock(series_id=IDS, metric=metric, step_ms=judge.step_ms, values=grid)


def opened_series(days: Sequence[DayJudge]) -> tuple[LiveSeries, int]:
    """Return an evaluation in which all series are open, and when its next round comes."""
    begin = days[0].judge.calendar.start_ms + 12 * 60 * MINUTE
    live = evaluation(days)
    verdicts = feed(live, begin, [FLAT] * 60 + [900.0] * 10)
    assert verdicts[-1].is_open.all()
    return live, begin + 70 * MINUTE


def test_silence_is_unknown_and_keeps_open_what_is_open() -> None:
    live, begin = opened_series(judges(learnt(), (20,), "UTC"))
    verdicts = feed(live, begin, [np.nan] * 90 + [900.0, 900.0])
    assert reasons(verdicts[5]) == ["not_measured"] * SERIES
    assert not any(each.verdict.closed.any() or each.verdict.opened.any() for each in verdicts)
    assert verdicts[-1].is_open.all()
    assert reasons(verdicts[-1]) == ["short_history"] * SERIES


@pytest.mark.parametrize("minutes", [30, 200])
def test_a_gap_without_rounds_closes_nothing(minutes: int) -> None:
    live, begin = opened_series(judges(learnt(), (20,), "UTC"))
    verdicts = feed(live, begin + minutes * MINUTE, [FLAT] * 12)
    assert len(verdicts) == min(minutes, 60) + 12
    assert np.flatnonzero([each.verdict.closed.any() for each in verdicts]).size == 1
    assert not verdicts[-1].is_open.any()


def test_a_restart_neither_closes_nor_opens_again() -> None:
    days = judges(learnt(), (20,), "UTC")
    live, begin = opened_series(days)
    again = LiveSeries(lambda at_ms: judge_at(days, at_ms), interval_ms=MINUTE, memory=live.memory)
    verdicts = feed(again, begin + 5 * MINUTE, [900.0] * 10)
    assert not any(each.verdict.opened.any() or each.verdict.closed.any() for each in verdicts)
    assert verdicts[-1].is_open.all()
    assert verdicts[0].start_ms == begin - MINUTE  # what was not judged is made up for


def test_another_interval_after_a_restart_forgets_the_hour_alone() -> None:
    live, begin = opened_series(judges(learnt(), (20,), "UTC"))
    days = judges(learnt(), (20,), "UTC", 30_000)
    again = LiveSeries(lambda at_ms: judge_at(days, at_ms), interval_ms=30_000, memory=live.memory)
    verdicts = feed(again, begin, [900.0] * 3)
    assert verdicts[-1].is_open.all()
    assert not any(each.verdict.opened.any() for each in verdicts)


def test_another_run_keeps_the_hour_of_each_series_and_what_it_does_not_have_is_unknown() -> None:
    days = judges(learnt(), (20,), "UTC")
    live, begin = opened_series(days)
    kept = np.array([4, 2, 3])
    days[0] = DayJudge.of(learnt().take(kept), day_of(20), MINUTE, SETTINGS)
    verdicts = feed(live, begin, [900.0] * 3)
    assert verdicts[-1].day.series_id.tolist() == [2, 3, 4]
    assert verdicts[-1].is_open.all()
    assert verdicts[-1].without_baseline.tolist() == [0, 1, 5]
    assert not any(each.verdict.opened.any() for each in verdicts)
    days[0] = judges(learnt(), (20,), "UTC")[0]
    back = feed(live, begin + 3 * MINUTE, [900.0] * 3)
    assert back[-1].is_open.all()
    assert not back[-1].without_baseline.size


def test_without_baselines_nothing_is_judged_and_what_is_open_stays_open() -> None:
    days = judges(learnt(), (20,), "UTC")
    live, begin = opened_series(days)
    (today,) = days
    days.clear()
    assert not feed(live, begin, [FLAT] * 30)
    days.append(today)
    verdicts = feed(live, begin + 30 * MINUTE, [900.0] * 3)
    assert verdicts[-1].is_open.all()


def test_series_without_a_band_are_unknown_and_open_nothing() -> None:
    sparse = np.full(SERIES, OUTCOMES.index(Outcome.SPARSE), np.uint8)
    days = judges(replace(learnt(), outcome=sparse), (20,), "UTC")
    verdicts = feed(evaluation(days), days[0].judge.calendar.start_ms, [FLAT] * 60 + [900.0] * 10)
    assert reasons(verdicts[-1]) == ["no_band"] * SERIES
    assert not verdicts[-1].is_open.any()


def test_a_clock_that_was_far_ahead_ends_no_scoring_and_nothing_that_is_open() -> None:
    days = judges(learnt(), (20,), "UTC")
    live, begin = opened_series(days)
    before = live.memory
    assert before is not None
    live.put(begin + 366 * 24 * 60 * MINUTE, IDS, np.full(SERIES, FLAT))
    verdicts = feed(live, begin, [900.0] * 3)
    assert [each.start_ms for each in verdicts] == [begin, begin + MINUTE]
    assert verdicts[-1].is_open.tolist() == before.memory.is_open.tolist()
    assert before.memory.is_open.any()


def test_a_judge_of_another_step_is_rejected() -> None:
    days = judges(learnt(), (20,), "UTC")
    live, begin = evaluation(days, interval_ms=5 * MINUTE), days[0].judge.calendar.start_ms
    live.put(begin, IDS, np.full(SERIES, FLAT))
    with pytest.raises(ValueError, match="another step"):
        live.put(begin + 10 * MINUTE, IDS, np.full(SERIES, FLAT))


def test_rounds_of_a_step_that_is_over_are_left_out() -> None:
    days = judges(learnt(), (20,), "UTC")
    live, begin = opened_series(days)
    assert not live.put(begin - 30 * MINUTE, IDS, np.full(SERIES, FLAT))
    assert [each.start_ms for each in feed(live, begin, [900.0])] == [begin - MINUTE]
