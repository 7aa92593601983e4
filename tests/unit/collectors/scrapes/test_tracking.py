"""Counters over many observations: rises, resets, clients that come and go, and what is not known."""

from __future__ import annotations

from datetime import timedelta

import pytest

from collectors.scrapes.answer import NOTHING, Samples
from collectors.scrapes.counting import MAX_RISES
from rules.facts.scrapes import Counted
from rules.facts.times import SECOND_US
from tests.factories import at
from tests.unit.collectors.scrapes.observed_rounds import (
    AHEAD_US,
    CUT,
    EVERY,
    RATE,
    RETRIES,
    SILENT,
    ObservedRounds,
    labelled,
    rise,
)


def test_the_first_observation_knows_no_increase() -> None:
    assert ObservedRounds().says(500).errors == Counted(
        total=500, increase=None, since=None, rate=None
    )


def test_an_increase_is_told_with_the_observations_between_which_it_was() -> None:
    seen = ObservedRounds().says(500, 503)
    assert seen.errors.increase == 3
    assert seen.errors.since == at(0)
    assert seen.errors.rate == pytest.approx(3 / 16)
    assert seen.errors.rises == (rise(0, 16, 3),)
    assert (seen.client.seen_since, seen.client.seen_at) == (at(0), at(16))


def test_a_counter_that_unchanged_has_risen_by_nothing() -> None:
    seen = ObservedRounds().says(500, 503, 503)
    assert (seen.errors.increase, seen.errors.rate) == (0, 0.0)
    assert seen.errors.rises == (rise(0, 16, 3),), "what was is still known"


def test_a_counter_that_went_back_began_anew_and_counts_from_zero() -> None:
    seen = ObservedRounds().says(500, 4, 6)
    assert seen.errors.rises == (rise(0, 16, 4), rise(15, 31, 2))
    assert (seen.errors.total, seen.errors.increase) == (6, 2)


def test_a_counter_that_began_anew_at_zero_has_not_risen() -> None:
    assert ObservedRounds().says(500, 0).errors.rises == ()


def test_an_increase_over_a_silence_is_told_over_the_whole_of_it() -> None:
    seen = ObservedRounds().says(500).silence(4).says(507)
    assert seen.errors.rises == (rise(0, 76, 7),)


def test_rises_are_kept_for_a_quarter_of_an_hour() -> None:
    seen = ObservedRounds().says(0, 1)
    assert len(seen.says(*[1] * 60).errors.rises) == 1
    assert seen.says(1).errors.rises == ()


def test_where_rises_are_many_the_oldest_are_told_together() -> None:
    seen = ObservedRounds().says(0)
    for number in range(1, MAX_RISES + 11):
        seen.answer((labelled(), number), after=1.0)
    assert len(seen.errors.rises) == MAX_RISES
    assert seen.errors.rises[0] == rise(0, 12, 11)
    assert sum(one.count or 0 for one in seen.errors.rises) == MAX_RISES + 10


def test_fractions_do_not_add_up_to_records() -> None:
    seen = ObservedRounds().says(0.0, 0.4, 0.8, 1.2)
    assert sum(one.count or 0 for one in seen.errors.rises) == 1


def test_a_rate_alone_tells_that_and_not_how_much() -> None:
    seen = ObservedRounds().answer((labelled(RATE), 0)).answer((labelled(RATE), 0.162))
    assert seen.errors == Counted(
        total=None,
        increase=None,
        since=None,
        rate=0.162,
        rises=(rise(15 - 60, 16, None),),  # a client's rates search back over a minute
    )


def test_beside_a_total_a_rate_only_helps_the_first_observation() -> None:
    both = ((labelled(), 500.0), (labelled(RATE), 0.5))
    seen = ObservedRounds().answer(*both)
    assert (seen.errors.total, seen.errors.rate, seen.errors.rises) == (500, 0.5, ())
    seen.answer(*both)
    assert (seen.errors.rate, seen.errors.rises) == (0.0, ())


def test_two_spellings_of_one_counter_are_not_added_up() -> None:
    other = labelled("kafka_producer_producer_topic_metrics_record_error")
    seen = ObservedRounds().answer((labelled(), 5), (other, 5)).answer((labelled(), 8), (other, 8))
    assert (seen.errors.total, seen.errors.increase) == (8, 3)
    assert seen.errors.rises == (rise(0, 16, 3),)


def test_a_label_that_changed_with_a_restart_hides_no_rise() -> None:
    old, new = labelled(kafka_version="4.0"), labelled(kafka_version="4.1")
    seen = ObservedRounds().answer((old, 500)).answer((old, 502)).answer((new, 1))
    assert [one.count for one in seen.errors.rises] == [2, 1], "in the order of their ends"
    assert (seen.errors.total, seen.errors.increase) == (1, 1)
    assert not seen.client.is_gone


def test_errors_and_retries_of_a_client_are_one_reading() -> None:
    seen = ObservedRounds().answer((labelled(), 0), (labelled(RETRIES), 4))
    seen.answer((labelled(), 0), (labelled(RETRIES), 9))
    assert seen.client.retries is not None
    assert (seen.errors.increase, seen.client.retries.increase) == (0, 5)
    alone = ObservedRounds().answer((labelled(RETRIES), 4)).client
    assert alone.errors is None


def test_a_client_tells_of_each_topic_and_of_all_together() -> None:
    whole = "kafka_producer_record_error_total", {"client_id": "payments"}
    seen = ObservedRounds().answer((labelled(), 1), (labelled(topic="other"), 0), (whole, 1))
    assert [one.topic for one in seen.readings.clients] == [None, "orders", "other"]


def test_brokers_tell_their_rejections_and_controllers_their_elections() -> None:
    rejections = (
        "kafka_network_requestmetrics_errors_total",
        {"request": "Produce", "error": "OUT_OF_ORDER_SEQUENCE_NUMBER"},
    )
    elections = "kafka_controller_controllerstats_uncleanleaderelections_total", {"a": "b"}
    seen = ObservedRounds().answer((elections, 1)).answer((rejections, 4), (elections, 2))
    (rejected,), (elected,) = seen.readings.request_errors, seen.readings.unclean_elections
    assert (rejected.request, rejected.error) == ("Produce", "OUT_OF_ORDER_SEQUENCE_NUMBER")
    # The error's series appears with its first occurrence.
    assert (rejected.counted.total, rejected.counted.increase) == (4, 4)
    assert (elected.counted.increase, elected.address) == (1, "app-1:8081")


def test_facts_that_are_moved_are_those_of_a_clock_that_was_set() -> None:
    rejections = (
        "kafka_network_requestmetrics_errors_total",
        {"request": "Produce", "error": "OUT_OF_ORDER_SEQUENCE_NUMBER"},
    )
    elections = "kafka_controller_controllerstats_uncleanleaderelections_total", {"a": "b"}
    seen = ObservedRounds()
    for value in (1, 3, 4):
        found = [
            labelled(),
            labelled(RETRIES),
            labelled(RATE, client_id="x"),
            rejections,
            elections,
        ]
        seen.answer(*((one, value) for one in found))
    hour, now_us = timedelta(hours=1), round((seen.now + 1) * SECOND_US)
    ahead_us = AHEAD_US + round(hour.total_seconds() * SECOND_US)
    assert seen.readings.moved(hour) == seen.tracker.readings(ahead_us, now_us)


def test_an_endpoint_that_was_never_asked_has_no_answer() -> None:
    state = ObservedRounds().state()
    assert (state.answered_at, state.answered_since, state.is_fresh) == (None, None, False)
    assert (state.took_seconds, state.samples, state.failures) == (None, 0, ())


def test_an_answer_is_fresh_for_a_while() -> None:
    seen = ObservedRounds().says(0)
    assert seen.state(after=1 + 50).is_fresh
    assert not seen.state(after=1 + 50.1).is_fresh
    assert (seen.state().took_seconds, seen.state().samples) == (1.0, 1)


def test_a_failure_is_told_and_the_last_answer_is_still_used() -> None:
    seen = ObservedRounds().says(0)
    state = seen.silence().state()
    assert (state.is_fresh, state.failures, state.answered_at) == (True, (SILENT,), at(0))
    assert seen.tracker.failed
    assert seen.says(0).state().failures == ()
    assert not seen.tracker.failed


def test_failures_in_a_row_are_counted_and_the_last_answer_is_remembered() -> None:
    seen = ObservedRounds().says(0).silence(3)
    assert seen.tracker.failed_attempts == 3
    at_us = round(46 * SECOND_US)  # the answer came to its end a second after noon
    assert seen.tracker.answered_within(45, at_us)
    assert not seen.tracker.answered_within(44, at_us)
    assert seen.says(0).tracker.failed_attempts == 0
    assert not ObservedRounds().silence().tracker.answered_within(1000, at_us)


def test_an_answer_that_could_not_be_read_is_none() -> None:
    seen = ObservedRounds().says(0).answer(is_whole=False)
    assert seen.tracker.failed
    assert seen.state().answered_at == at(0)
    assert seen.state().failures == (CUT,)


def test_an_answer_that_holds_nothing_of_interest_is_one() -> None:
    seen = ObservedRounds()
    seen.tracker.note(Samples(failures=(NOTHING,)), seen.timestamp(EVERY))
    assert not seen.tracker.failed
    assert seen.state().answered_at == at(0)
    assert seen.state().failures == (NOTHING,)


def test_a_silence_that_outlasts_an_answer_breaks_the_watch() -> None:
    seen = ObservedRounds().says(0, 0).silence(2).says(0)
    assert seen.state().answered_since == at(0)
    assert seen.silence(3).says(0).state().answered_since == at(120)
