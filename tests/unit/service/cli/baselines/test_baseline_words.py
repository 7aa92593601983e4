"""What a person reads of baselines: numbers, times of the week, and why there is no band."""

from __future__ import annotations

from typing import Any

import pytest

from rules.baseline.blocks import Reason, ThresholdBy
from rules.baseline.live_series import UnknownReason
from rules.baseline.series import Metric
from rules.baseline.wording import TIMES, TO, UNITS
from service.cli.baselines import words

LAG = "read_committed_lag_seconds"


def usual(**overrides: Any) -> dict[str, Any]:
    given: dict[str, Any] = {
        "weekday": "Monday",
        "begins": "14:00",
        "ends": "14:30",
        "expected": 6.0,
        "least": 3.0,
        "most": 11.04,
        "unusual_below": None,
        "unusual_above": 21.0,
    }
    return given | overrides


def series(**overrides: Any) -> dict[str, Any]:
    return {"metric": LAG, "reason": "learnt", "days": 35, "usual": usual()} | overrides


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        (series(), f"usual for Monday 14:00{TO}14:30 is 3{TO}11 s (5 weeks)"),
        (
            series(usual=usual(weekday=None), days=9),
            f"usual for 14:00{TO}14:30 is 3{TO}11 s (9 days)",
        ),
        (
            series(metric="abort_ratio", usual=usual(least=0.0, most=0.0213)),
            f"usual for Monday 14:00{TO}14:30 is 0{TO}0.0213 (5 weeks)",
        ),
        (series(usual=usual(most=None)), f"usual for Monday 14:00{TO}14:30 is 3{TO}- (5 weeks)"),
        (
            series(usual=None, reason="mostly_zero"),
            "no band: it is mostly zero: rules that count are more useful",
        ),
        (series(usual=None, reason="of_later"), "no band: of_later"),
    ],
)
def test_what_is_usual_is_one_sentence(told: dict[str, Any], expected: str) -> None:
    assert words.sentence(told) == expected


@pytest.mark.parametrize(
    ("value", "told"),
    [(0, "0"), (0.012345, "0.0123"), (7.25, "7.25"), (99.96, "100"), (1234567.8, "1,234,568")],
)
def test_three_digits_count(value: float, told: str) -> None:
    assert words.number(value) == told


def test_what_is_unusual_is_told_for_the_sides_that_matter() -> None:
    assert words.beyond(usual(), LAG) == "above 21 s"
    assert words.beyond(usual(unusual_below=1.5), LAG) == "below 1.5 s or above 21 s"
    assert words.beyond(usual(unusual_below=0.0), LAG) == "above 21 s"  # nothing is below zero
    assert words.beyond(usual(unusual_above=None), LAG) is None


def test_what_was_scored_last_is_one_line() -> None:
    row = {
        "at": "2026-03-02T13:10:00Z",
        "value": 84.0,
        "usual_deviations": 7.6,
        "unknown_reason": None,
        "unusual_since": "2026-03-02T13:05:00Z",
    }
    assert words.scored(row, LAG) == (
        f"84 s; 7.6 {TIMES} the usual deviation; unusual since 2026-03-02 13:05:00 UTC "
        "(at 2026-03-02 13:10:00 UTC)"
    )
    missing = dict.fromkeys(row) | {"at": row["at"], "unknown_reason": "not_measured"}
    assert words.scored(missing, LAG) == "not measured (at 2026-03-02 13:10:00 UTC)"
    assert words.scored(None, LAG) is None
    assert words.UNKNOWN.keys() == {reason.value for reason in UnknownReason} - {"none"}


def test_every_word_of_the_night_is_told() -> None:
    told = {"learnt"} | words.NO_BAND.keys() | words.BESIDE.keys()
    assert {one.value for one in Reason} == told
    assert {one.value for one in ThresholdBy} == words.THRESHOLD_BY.keys()
    assert UNITS.keys() == {one.value for one in Metric} - {"abort_ratio"}


def test_thresholds_are_shown_by_side_where_they_differ() -> None:
    told = {"threshold": 3.0, "threshold_by": "least"}
    assert words.threshold(series(**told)) == "3 usual deviations (the minimum)"
    assert words.threshold(series(**told, threshold_below=3.0)) == words.threshold(series(**told))
    both = words.threshold(series(**told, threshold_below=7.25))
    assert both == "3 above and 7.25 below, in usual deviations (the minimum)"


def test_slow_changes_and_falls_are_shown_of_metrics_that_have_them() -> None:
    lag, rate = series(drift_threshold=4.0, fall_share=0.0), "produce_rate"
    assert words.slow_change(lag) == "half an hour beyond 4 usual deviations"
    assert words.slow_change(series(drift_threshold=4.0, metric=rate)) is None
    assert words.fall(lag) is None
    assert words.fall(series(metric=rate)) is None  # of a run that was made before
    assert words.fall(series(metric=rate, fall_share=0.1)) == "below 10% of what is expected"
    assert words.fall(series(metric=rate, fall_share=0.0)) == "often that low: not reported"
