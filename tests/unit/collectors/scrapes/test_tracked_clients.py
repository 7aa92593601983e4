"""Clients that come and go, on a page and on a Prometheus server: what they counted, and when they are gone."""

from __future__ import annotations

from datetime import timedelta

from collectors.scrapes.counting import MISSES_CUT
from rules.facts.scrapes import Counted
from tests.factories import at
from tests.unit.collectors.scrapes.observed_rounds import (
    LATE,
    SERVER,
    ObservedRounds,
    labelled,
    mine_of,
    rise,
)


def test_a_counter_that_is_new_on_a_page_has_counted_since_the_observation_before() -> None:
    seen = ObservedRounds().answer().says(5)
    # Its exporter may have found it a minute late.
    assert seen.errors.rises == (rise(-LATE, 16, 5),)
    assert (seen.errors.increase, seen.errors.since) == (5, at(-LATE))


def test_a_counter_that_is_new_after_a_page_cut_short_may_have_been_there() -> None:
    seen = ObservedRounds().answer((labelled(client_id="other"), 0), is_whole=False)
    (_, mine) = seen.answer((labelled(), 5)).readings.clients
    assert mine.errors == Counted(total=5, increase=None, since=None, rate=None)


def test_a_client_that_vanished_is_gone_after_two_whole_answers() -> None:
    seen = ObservedRounds().says(0, 7)
    assert not seen.answer().client.is_gone
    gone = seen.answer().client
    assert gone.is_gone
    assert gone.errors is not None
    assert gone.errors.rises == (rise(0, 16, 7),), "its last increase is not lost"
    assert gone.seen_at == at(16)


def test_a_client_that_vanished_is_forgotten_with_its_last_rise() -> None:
    seen = ObservedRounds().says(0, 7)
    for _ in range(60):
        seen.answer()
    assert seen.client.is_gone
    assert seen.answer().readings.clients == ()


def test_a_client_that_never_failed_is_forgotten_at_once() -> None:
    assert ObservedRounds().says(0, 0).answer().answer().readings.clients == ()


def test_answers_that_are_cut_short_and_silences_prove_no_absence() -> None:
    seen = ObservedRounds().says(0, 0)
    for _ in range(5):
        seen.answer((labelled(client_id="other"), 0), is_whole=False).silence()
    (_, mine) = seen.readings.clients
    assert (mine.client_id, mine.is_gone) == ("payments", False)


def test_a_client_that_is_back_goes_on_from_where_it_was() -> None:
    """Hidden for a while: what it had counted before must not be told as new."""
    seen = ObservedRounds().says(500, 500).answer().answer().answer().says(503)
    assert [one.count for one in seen.errors.rises] == [3]
    assert seen.client.seen_since == at(75), "it has not been watched without a break"


def test_a_process_that_is_back_with_less_was_started_again() -> None:
    seen = ObservedRounds().says(500, 500).answer().answer().says(3)
    assert [one.count for one in seen.errors.rises] == [3]


def test_only_so_many_series_that_are_gone_are_remembered() -> None:
    seen = ObservedRounds(max_series=2)
    for number in range(20):
        seen.answer((labelled(client_id=f"c{number}"), 5))
        seen.answer((labelled(client_id=f"c{number}"), 6))
        seen.answer().answer()
    assert [one.client_id for one in seen.readings.clients] == ["c16", "c17", "c18", "c19"]


def test_an_endpoint_that_is_never_whole_takes_no_more_memory_than_another() -> None:
    seen = ObservedRounds(max_series=20)
    for number in range(200):
        found = [(labelled(client_id=f"c{number}-{one}"), 5.0) for one in range(10)]
        seen.answer(*found, is_whole=False)
        assert len(seen.readings.clients) <= 2 * 20 + 10
    assert {f"c199-{one}" for one in range(10)} <= {one.client_id for one in seen.readings.clients}


def test_what_twenty_answers_lack_is_gone_though_none_was_whole() -> None:
    seen, other = ObservedRounds().says(500, 502), (labelled(client_id="other"), 0.0)
    for _ in range(MISSES_CUT - 1):
        seen.answer(other, is_whole=False)
    assert not mine_of(seen).is_gone
    seen.answer(other, is_whole=False).silence(2)
    assert mine_of(seen).is_gone
    back = mine_of(seen.says(503)).errors
    assert back is not None
    assert [one.count for one in back.rises] == [2, 1], "it goes on from where it was"


def test_a_process_that_a_server_has_just_found_counted_for_nobody_knows_how_long() -> None:
    seen = ObservedRounds(SERVER).answer((labelled(client_id="x", instance="b"), 0))
    seen.answer((labelled(client_id="x", instance="b"), 0), (labelled(instance="a"), 500))
    mine = next(one for one in seen.readings.clients if one.address == "a")
    assert mine.errors == Counted(total=500, increase=None, since=None, rate=None)


def test_a_client_that_is_new_in_a_process_that_was_there_counts_from_zero() -> None:
    other = (labelled(client_id="other", instance="a"), 0.0)
    seen = ObservedRounds(SERVER).answer(other).answer(other, (labelled(instance="a"), 5))
    mine = next(one for one in seen.readings.clients if one.client_id == "payments")
    assert mine.errors is not None
    assert [one.count for one in mine.errors.rises] == [5]


def test_what_a_server_tells_may_be_a_minute_old() -> None:
    seen = ObservedRounds(SERVER).says(0, 1)
    assert seen.errors.rises == (rise(-60, 16, 1),)
    assert seen.state().lag == timedelta(minutes=1)
    assert seen.client.address == "prometheus:9090", "no label tells the process"
    assert ObservedRounds().says(0).state().lag == timedelta(0)
