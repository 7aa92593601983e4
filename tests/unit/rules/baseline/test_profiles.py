"""What is expected, and by which profile: against plain medians."""

from __future__ import annotations

from datetime import date

import numpy as np
import pytest

from rules.baseline.civil import civil_day
from rules.baseline.profiles import (
    CONSTANT,
    DAILY,
    WEEKLY,
    candidates,
    choose_profiles,
    keep_errors,
)
from rules.baseline.state import LEVEL_DAYS, SCALE_DAYS
from tests.unit.rules.baseline.records import TODAY, empty, place, random


def plain(values: list[float], least: int = 1) -> float:
    known = [value for value in values if not np.isnan(value)]
    return float(np.median(known)) if len(known) >= least else np.nan


def test_candidates_are_medians_of_days_and_of_same_weekdays() -> None:
    records = random(3, "levels", gaps=0.3)
    records["day_median"] = random(3, "day_median")["day_median"]
    found = candidates(records, TODAY)
    for row in range(3):
        levels = [records["levels"][row, place(back, LEVEL_DAYS)] for back in range(LEVEL_DAYS)]
        by_day = [records["day_median"][row, place(back, LEVEL_DAYS)] for back in range(7)]
        constant = plain([float(value) for value in by_day])
        assert found.constant[row] == pytest.approx(constant)
        for slot in range(48):
            daily = plain([float(levels[back][slot]) for back in range(10)])
            daily = constant if np.isnan(daily) else daily
            assert found.daily[row, slot] == pytest.approx(daily)
            for weekday in range(7):
                same = [
                    float(levels[back][slot])
                    for back in range(LEVEL_DAYS)
                    if (TODAY - back - 1) % 7 == weekday
                ]
                weekly = plain(same)
                weekly = daily if np.isnan(weekly) else weekly
                assert found.week[row, weekday, slot] == pytest.approx(weekly)


def test_too_few_days_make_a_candidate_unusable() -> None:
    records = empty(5)
    for row, days in enumerate((0, 1, 2, 3, 35)):
        for back in range(days):
            records["levels"][row, place(back, LEVEL_DAYS)] = 1
            records["day_median"][row, place(back, LEVEL_DAYS)] = 1
    usable = [
        [False, False, False],
        [True, False, False],
        [True, False, False],
        [True, True, False],
        [True, True, True],
    ]
    assert candidates(records, TODAY).usable.tolist() == usable
    records["first_day"] = TODAY - 12  # tomorrow is the fourteenth day
    assert not candidates(records, TODAY).usable[:, 2].any()
    records["first_day"] = TODAY - 13
    assert candidates(records, TODAY).usable[:, 2].tolist() == [False] * 4 + [True]


ALL = [True, True, True]


@pytest.mark.parametrize(
    ("usable", "errors", "profile"),
    [
        pytest.param(ALL, [(3, 2, 1)] * 5, WEEKLY, id="the least mean error wins"),
        pytest.param(ALL, [(3, 1, 2)] * 5, DAILY, id="daily is better than weekly"),
        pytest.param(ALL, [(1, 1, 1)] * 5, CONSTANT, id="of equal ones the simplest"),
        pytest.param(ALL, [(3, 2, 1)] * 2, DAILY, id="two days are too few for a choice"),
        pytest.param(
            ALL,
            [(1, 9, np.nan)] * 5 + [(9, 1, 2)] * 3,
            DAILY,
            id="only days on which all are known are compared",
        ),
        pytest.param([True, True, False], [(3, 2, 1)] * 5, DAILY, id="what is usable takes part"),
        pytest.param([True, False, False], [(3, 2, 1)] * 5, CONSTANT, id="only the constant"),
        pytest.param([False, False, False], [], 0, id="nothing is known"),
    ],
)
def test_the_profile_with_the_least_error_is_chosen(
    usable: list[bool], errors: list[tuple[float, float, float]], profile: int
) -> None:
    records = empty()
    for back, error in enumerate(errors):
        records["errors"][0, place(back, SCALE_DAYS)] = error
    assert choose_profiles(records, np.array([usable])).tolist() == [profile]


def test_errors_are_mean_distances_of_levels() -> None:
    records = random(2, "levels", gaps=0.0)
    records["day_median"] = random(2, "day_median", gaps=0.0)["day_median"]
    records["levels"][1, [place(back, LEVEL_DAYS) for back in range(6, LEVEL_DAYS)]] = np.nan
    before = candidates(records, TODAY)
    day = civil_day(date.fromordinal(TODAY + 1), "UTC")
    seen = random(2, "levels", gaps=0.0)["levels"][:, 0] * 2
    seen[:, 5:9] = np.nan
    keep_errors(records, before, seen, day)
    found = records["errors"][:, day.number % SCALE_DAYS]
    for row in range(2):
        faces = (
            np.full(48, before.constant[row]),
            before.daily[row],
            before.week[row, day.weekday],
        )
        off = [np.nanmean(np.abs(seen[row] - face)) for face in faces]
        assert found[row, :2] == pytest.approx(off[:2], rel=1e-5)
        assert np.isnan(found[row, 2]) if row else found[row, 2] == pytest.approx(off[2], rel=1e-5)
    keep_errors(records, before, np.where(np.arange(48) < 3, seen, np.float32(np.nan)), day)
    assert np.isnan(records["errors"][:, day.number % SCALE_DAYS]).all()  # too little of a day
