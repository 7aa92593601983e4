"""Which days are made, and from which run on."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, timedelta

import pytest

from service.jobs.baseline_run.plan import MAX_RUNS, Past, again, missing

TODAY = date(2026, 6, 10)


def back(*days: int) -> tuple[date, ...]:
    return tuple(TODAY - timedelta(days=one) for one in days)


def past(first: int | None, runs: Sequence[int]) -> Past:
    first_day = None if first is None else back(first)[0]
    return Past(first_day=first_day, runs=back(*runs), yesterday=back(1)[0])


@pytest.mark.parametrize(
    ("first", "runs", "days", "begins_anew"),
    [
        pytest.param(None, (), (), False, id="no history: nothing to learn from"),
        pytest.param(0, (), (), False, id="the first day is not over"),
        pytest.param(3, (), (3, 2, 1), True, id="no run: from the first day on"),
        pytest.param(9, (3, 2), (1,), False, id="only yesterday"),
        pytest.param(9, (5, 4), (3, 2, 1), False, id="missed days in order"),
        pytest.param(9, (2, 1), (), False, id="nothing is missing"),
        pytest.param(9, (2, 0), (1,), False, id="a run of today, by a clock that was ahead"),
    ],
)
def test_the_missing_baseline_runs_are_made_in_order(
    first: int | None, runs: Sequence[int], days: Sequence[int], begins_anew: object
) -> None:
    plan = missing(past(first, runs))
    assert plan.days == back(*days)
    assert plan.begins_anew == begins_anew
    assert plan.skipped == 0


def test_no_more_days_are_made_up_for_than_a_profile_covers() -> None:
    plan = missing(past(80, ()))
    assert plan.days == back(*range(MAX_RUNS, 0, -1))
    assert plan.skipped == 80 - MAX_RUNS


@pytest.mark.parametrize(
    ("runs", "day", "days", "goes_on_from"),
    [
        pytest.param((3, 2, 1), 1, (1,), 2, id="the last one alone"),
        pytest.param((3, 2, 1), 2, (2, 1), 3, id="and those that went on from it"),
        pytest.param((5,), 3, (4, 3), 5, id="with those before it that are missing"),
        pytest.param((), 2, (4, 3, 2), None, id="from the beginning, where no run is before it"),
    ],
)
def test_a_baseline_run_is_made_again_with_those_after_it(
    runs: Sequence[int], day: int, days: Sequence[int], goes_on_from: int | None
) -> None:
    plan = again(past(4, runs) if not runs else past(9, runs), back(day)[0])
    assert plan.days == back(*days)
    assert plan.goes_on_from == (None if goes_on_from is None else back(goes_on_from)[0])


@pytest.mark.parametrize(
    ("first", "day", "told"),
    [(4, 0, "is not over"), (4, 5, "before all history"), (None, 1, "there is none")],
)
def test_a_day_that_cannot_be_made_is_rejected(first: int | None, day: int, told: str) -> None:
    with pytest.raises(ValueError, match=told):
        again(past(first, ()), back(day)[0])
