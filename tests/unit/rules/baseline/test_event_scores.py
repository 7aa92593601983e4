"""Openings against labelled incidents: right, false, repeated, and how late."""

from __future__ import annotations

import pytest

from rules.baseline.event_scores import MINUTE_MS, merge_windows, score_events

HOUR_MS = 60 * MINUTE_MS
PERIOD = (0, 100 * HOUR_MS)
INCIDENT = (10 * HOUR_MS, 11 * HOUR_MS)


@pytest.mark.parametrize(
    ("opened", "found", "false"),
    [
        (INCIDENT[0] - 5 * MINUTE_MS, 1, 0),
        (INCIDENT[0] - 5 * MINUTE_MS - 1, 0, 1),
        (INCIDENT[1] + 10 * MINUTE_MS - 1, 1, 0),
        (INCIDENT[1] + 10 * MINUTE_MS, 0, 1),
    ],
)
def test_an_opening_is_right_from_shortly_before_to_shortly_after(
    opened: int, found: int, false: int
) -> None:
    scores = score_events({1: [opened]}, {1: [INCIDENT]}, PERIOD)
    assert (scores.incidents, scores.found, scores.false) == (1, found, false)


def test_ratios_count_an_incident_once_and_delay_is_from_its_begin() -> None:
    second = (50 * HOUR_MS, 51 * HOUR_MS)
    openings = [INCIDENT[0] + 4 * MINUTE_MS, INCIDENT[0] + 30 * MINUTE_MS, 80 * HOUR_MS]
    scores = score_events({1: openings}, {1: [INCIDENT, second]}, PERIOD)
    assert (scores.found, scores.false, scores.repeated) == (1, 1, 1)
    assert (scores.precision, scores.recall, scores.f1) == (0.5, 0.5, 0.5)
    assert scores.median_delay_ms == 4 * MINUTE_MS


def test_an_opening_between_two_incidents_finds_one_rather_one_under_way() -> None:
    first, second = INCIDENT, (INCIDENT[1] + 12 * MINUTE_MS, INCIDENT[1] + 40 * MINUTE_MS)
    between = INCIDENT[1] + 8 * MINUTE_MS
    scores = score_events({1: [between]}, {1: [first, second]}, PERIOD)
    assert (scores.incidents, scores.found, scores.false) == (2, 1, 0)
    under_way = score_events({1: [second[0] - MINUTE_MS, second[0]]}, {1: [second]}, PERIOD)
    assert (under_way.found, under_way.repeated) == (1, 1)


def test_series_without_labels_say_nothing() -> None:
    scores = score_events({2: [HOUR_MS]}, {1: [INCIDENT]}, PERIOD)
    assert (scores.false, scores.precision, scores.recall, scores.f1) == (0, None, 0, None)


def test_an_incident_that_began_earlier_is_not_missed_and_its_opening_not_false() -> None:
    before = (-HOUR_MS, HOUR_MS)
    scores = score_events({1: [30 * MINUTE_MS]}, {1: [before]}, PERIOD)
    assert (scores.incidents, scores.found, scores.false, scores.repeated) == (0, 0, 0, 1)


def test_windows_that_are_near_each_other_are_one() -> None:
    near, far = 10 * MINUTE_MS, 10 * MINUTE_MS + 1
    assert merge_windows([(near, near + 1), (-1, 0)]) == [(-1, near + 1)]
    assert merge_windows([(far, far + 1), (-1, 0)]) == [(-1, 0), (far, far + 1)]
