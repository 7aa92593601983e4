"""Counts of log lines add up over rounds, source by source."""

from __future__ import annotations

from datetime import timedelta

from rules.facts.broker_log import LogSource
from service.metrics.log_stats import KEPT, UNREADABLE_KEPT, LogStats, after_round
from tests.factories import NOON, at


def test_counts_add_up_and_the_latest_line_stays() -> None:
    first = LogSource(name="a", lines=5, unparsed=1, lost_bytes=7, last_line_at=at(9))
    second = LogSource(name="a", lines=2, lost_bytes=None, last_line_at=NOON, error="away")
    stats = after_round(after_round({}, [first], NOON), [second], at(15))
    assert stats == {
        "a": LogStats(
            lines=7,
            unparsed=1,
            lost_bytes=7,
            last_line_at=at(9),
            reported_at=at(15),
            error="away",
        )
    }


def test_a_error_ends_with_the_round_in_which_it_is_over() -> None:
    stats = after_round({"a": LogStats(error="away")}, [LogSource(name="a")], NOON)
    assert stats["a"].error is None


def test_what_comes_under_one_name_in_two_ways_is_added_up_and_either_error_is_told() -> None:
    by_file = LogSource(name="broker-1", lines=10, error="/a.log: permission denied")
    by_http = LogSource(name="broker-1", lines=1, last_line_at=NOON)
    stats = after_round({"broker-1": LogStats(lines=5)}, [by_file, by_http], NOON)
    assert stats == {
        "broker-1": LogStats(
            lines=16, last_line_at=NOON, reported_at=NOON, error="/a.log: permission denied"
        )
    }
    both = [by_file, LogSource(name="broker-1", error="the database is away")]
    told = after_round(stats, both, NOON)["broker-1"].error
    assert told == "/a.log: permission denied; the database is away"


def test_a_source_that_a_round_did_not_read_stays_as_it_was() -> None:
    before = {"a": LogStats(lines=1, reported_at=NOON), "b": LogStats(lines=2, reported_at=NOON)}
    assert after_round(before, [LogSource(name="b", lines=1)], at(15)) == {
        "a": LogStats(lines=1, reported_at=NOON),
        "b": LogStats(lines=3, reported_at=at(15)),
    }


def test_a_source_that_nobody_told_of_for_a_day_is_forgotten() -> None:
    stats = after_round({}, [LogSource(name="pod-1", lines=1), LogSource(name="b")], NOON)
    stats = after_round(stats, [LogSource(name="b")], NOON + KEPT)
    assert stats["pod-1"].lines == 1
    stats = after_round(stats, [], NOON + KEPT + timedelta(seconds=1))
    assert set(stats) == {"b"}


def test_only_the_latest_lines_that_could_not_be_read_are_kept() -> None:
    lines = tuple(map(str, range(UNREADABLE_KEPT + 2)))
    stats = after_round({}, [LogSource(name="a", unreadable=lines[:3])], NOON)
    stats = after_round(stats, [LogSource(name="a", unreadable=lines[3:])], NOON)
    assert stats["a"].unreadable == lines[2:]
