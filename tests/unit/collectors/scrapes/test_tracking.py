"""Counters over many observations: rises, resets, clients that come and go, and what is not known."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Final

import pytest

from collectors.scrapes.answer import NOTHING, Samples
from collectors.scrapes.counting import MAX_RISES, MISSES_CUT, ScrapeTime
from collectors.scrapes.endpoints import Endpoint, page_at, server_at
from collectors.scrapes.readings import Readings
from collectors.scrapes.selection import series_of
from collectors.scrapes.tracking import Tracker
from rules.facts.gap import GapCause
from rules.facts.scrapes import ClientReading, Counted, EndpointState, Rise, ScrapeFailure
from rules.facts.times import SECOND_US
from tests.factories import NOON, at

PAGE: Final = page_at("http://app-1:8081/metrics")
SERVER: Final = server_at("http://prometheus:9090")
AHEAD_US: Final = round(NOON.timestamp() * SECOND_US)  # the monotonic clock shows 0 at noon
EVERY: Final = 15.0  # seconds from observation to observation
LATE: Final = 60.0
SILENT: Final = ScrapeFailure(cause=GapCause.TIMEOUT, why="no whole answer within 5 s")
CUT: Final = ScrapeFailure(cause=GapCause.LIMIT, why="more than are kept")

ERRORS: Final = "kafka_producer_topic_record_error_total"
RETRIES: Final = "kafka_producer_topic_record_retry_total"
RATE: Final = "kafka_producer_topic_record_error_rate"
Labelled = tuple[str, Mapping[str, str]]


def labelled(name: str = ERRORS, **labels: str) -> Labelled:
    return name, {"client_id": "payments", "topic": "orders", **labels}


class ObservedRounds:
    """A tracker that is given answers every 15 s; each takes a second."""

    def __init__(self, endpoint: Endpoint = PAGE, *, max_series: int = 100) -> None:
        fresh_us = round(50 * SECOND_US)
        self.tracker = Tracker(endpoint, fresh_us=fresh_us, max_series=max_series)
        self.now = -EVERY

    def timestamp(self, after: float) -> ScrapeTime:
        self.now += after
        return ScrapeTime(round(self.now * SECOND_US), round((self.now + 1) * SECOND_US))

    def answer(
        self,
        *found: tuple[Labelled, float],
        after: float = EVERY,
        is_whole: bool = True,
    ) -> ObservedRounds:
        values = {series_of(*name): value for name, value in found}
        known = {series: value for series, value in values.items() if series is not None}
        failures = () if is_whole else (CUT,)
        samples = Samples(values=known, is_whole=is_whole, failures=failures)
        self.tracker.note(samples, self.timestamp(after))
        return self

    def says(self, *values: float) -> ObservedRounds:
        """Give one answer per value of the one counter."""
        for value in values:
            self.answer((labelled(), value))
        return self

    def silence(self, observations: int = 1) -> ObservedRounds:
        for _ in range(observations):
            self.tracker.note_failed(SILENT, self.timestamp(EVERY))
        return self

    @property
    def readings(self) -> Readings:
        return self.tracker.readings(AHEAD_US, round((self.now + 1) * SECOND_US))

    @property
    def client(self) -> ClientReading:
        (one,) = self.readings.clients
        return one

    @property
    def errors(self) -> Counted:
        assert self.client.errors is not None
        return self.client.errors

    def state(self, after: float = 1.0) -> EndpointState:
        return self.tracker.state(AHEAD_US, round((self.now + after) * SECOND_US))


def mine_of(seen: ObservedRounds) -> ClientReading:
    """Return the reading of the client that tests are about, among others."""
    return next(one for one in seen.readings.clients if one.client_id == "payments")


def rise(since: float, until: float, count: int | None) -> Rise:
    return Rise(since=at(since), until=at(until), count=count)


# ------------------------------------------------------------------ one counter
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


# ------------------------------------------------------------------ clients that come and go
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


# ------------------------------------------------------------------ a Prometheus server
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


# ------------------------------------------------------------------ rates, and several series
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


# ------------------------------------------------------------------ the endpoint
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
