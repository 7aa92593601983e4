"""Counts of log lines add up over rounds, source by source."""

from __future__ import annotations

from datetime import timedelta

from rules.facts.broker_log import LogSource
from service.metrics.log_figures import KEPT, UNREADABLE_KEPT, LogFigures, after_round
from tests.factories import NOON, at


def test_counts_add_up_and_the_latest_line_stays() -> None:
    first = LogSource(name="a", lines=5, unparsed=1, lost_bytes=7, last_line_at=at(9))
    second = LogSource(name="a", lines=2, lost_bytes=None, last_line_at=NOON, trouble="away")
    figures = after_round(after_round({}, [first], NOON), [second], at(15))
    assert figures == {
        "a": LogFigures(
            lines=7,
            unparsed=1,
            lost_bytes=7,
            last_line_at=at(9),
            told_at=at(15),
            trouble="away",
        )
    }


def test_a_trouble_ends_with_the_round_in_which_it_is_over() -> None:
    figures = after_round({"a": LogFigures(trouble="away")}, [LogSource(name="a")], NOON)
    assert figures["a"].trouble is None


def test_what_comes_under_one_name_in_two_ways_is_added_up_and_either_trouble_is_told() -> None:
    by_file = LogSource(name="broker-1", lines=10, trouble="/a.log: permission denied")
    by_http = LogSource(name="broker-1", lines=1, last_line_at=NOON)
    figures = after_round({"broker-1": LogFigures(lines=5)}, [by_file, by_http], NOON)
    assert figures == {
        "broker-1": LogFigures(
            lines=16, last_line_at=NOON, told_at=NOON, trouble="/a.log: permission denied"
        )
    }
    both = [by_file, LogSource(name="broker-1", trouble="the database is away")]
    told = after_round(figures, both, NOON)["broker-1"].trouble
    assert told == "/a.log: permission denied; the database is away"


def test_a_source_that_a_round_did_not_read_stays_as_it_was() -> None:
    before = {"a": LogFigures(lines=1, told_at=NOON), "b": LogFigures(lines=2, told_at=NOON)}
    assert after_round(before, [LogSource(name="b", lines=1)], at(15)) == {
        "a": LogFigures(lines=1, told_at=NOON),
        "b": LogFigures(lines=3, told_at=at(15)),
    }


def test_a_source_that_nobody_told_of_for_a_day_is_forgotten() -> None:
    figures = after_round({}, [LogSource(name="pod-1", lines=1), LogSource(name="b")], NOON)
    figures = after_round(figures, [LogSource(name="b")], NOON + KEPT)
    assert figures["pod-1"].lines == 1
    figures = after_round(figures, [], NOON + KEPT + timedelta(seconds=1))
    assert set(figures) == {"b"}


def test_only_the_latest_lines_that_could_not_be_read_are_kept() -> None:
    lines = tuple(map(str, range(UNREADABLE_KEPT + 2)))
    figures = after_round({}, [LogSource(name="a", unreadable=lines[:3])], NOON)
    figures = after_round(figures, [LogSource(name="a", unreadable=lines[3:])], NOON)
    assert figures["a"].unreadable == lines[2:]
