"""Each incident shows in its series exactly from its start to its end, and ordinary things pass."""

from __future__ import annotations

import numpy as np
import pytest

from rules.baseline.series import Metric
from service.sandbox.simulator.fleet import Traffic
from service.sandbox.simulator.occasions import Kind
from tests.unit.service.sandbox.simulator.simulated import Days, explanation, occasion, pipeline

GIVEN_UP_MS = 120_000


def test_a_producer_that_stops_writes_nothing_from_start_to_end() -> None:
    drop = occasion(Kind.PRODUCER_DROP)
    days = Days(pipeline(), drop)
    written = days.of(Metric.PRODUCE_RATE)
    assert not written[days.within(drop)].any()
    assert written[days.outside(drop)].all()


def test_a_surge_writes_three_times_as_much() -> None:
    surge = occasion(Kind.SURGE, strength=3.0)
    quiet, loud = Days(pipeline()), Days(pipeline(), surge)
    inside, outside = loud.within(surge), loud.outside(surge)
    ratio = loud.of(Metric.PRODUCE_RATE) / quiet.of(Metric.PRODUCE_RATE)
    assert ratio[inside].mean() == pytest.approx(3, rel=0.02)
    assert ratio[outside].mean() == pytest.approx(1, rel=0.02)


def test_a_poison_pill_stops_the_reading_of_one_partition() -> None:
    pill = occasion(Kind.POISON_PILL, partition=1)
    days = Days(pipeline(transaction_seconds=None), pill)
    inside = days.within(pill, spare_ms=60_000)
    assert days.of(Metric.CONSUME_RATE, 1)[inside].max() < 10  # what commits were still under way
    assert days.of(Metric.CONSUME_RATE, 0)[inside].min() > 10
    lag = days.of(Metric.READ_COMMITTED_LAG_SECONDS, 1)
    assert lag[inside][-1] == pytest.approx(3600, abs=35)
    assert lag[days.outside(pill, spare_ms=3_600_000 * 2)].max() < 5


def test_a_slow_consumer_falls_behind_more_and_more() -> None:
    slow = occasion(Kind.SLOW_CONSUMER, minutes=90)
    days = Days(pipeline(), slow)
    lag = days.of(Metric.READ_COMMITTED_LAG_SECONDS)
    inside = np.flatnonzero(days.within(slow))
    assert lag[inside[:10]].max() < 5  # it has space for some minutes
    assert 0 < lag[inside[60]] < lag[inside[100]] < lag[inside[-1]]
    assert lag[inside[-1]] > 600


def test_a_dead_partition_takes_nothing_and_its_producers_give_up() -> None:
    dead = occasion(Kind.DEAD_PARTITION, partition=0)
    days = Days(pipeline(), dead)
    assert not days.of(Metric.PRODUCE_RATE, 0)[days.within(dead)].any()
    assert days.of(Metric.PRODUCE_RATE, 1)[days.within(dead)].all()
    errors = days.of(Metric.RECORD_ERROR_RATE)
    assert errors[days.within(dead, spare_ms=GIVEN_UP_MS)].min() > 10
    assert errors[days.outside(dead, spare_ms=GIVEN_UP_MS)].max() < 1


def test_a_step_of_errors_is_a_share_of_what_is_written() -> None:
    step = occasion(Kind.ERROR_STEP, strength=0.05)
    days = Days(pipeline(), step)
    written = 2 * explanation(days, Metric.PRODUCE_RATE, days.within(step))
    failed = explanation(days, Metric.RECORD_ERROR_RATE, days.within(step))
    assert failed / written == pytest.approx(0.05, rel=0.1)
    assert days.of(Metric.RECORD_ERROR_RATE)[days.outside(step)].max() < 1


def test_a_stuck_transaction_holds_the_stable_offset_and_nothing_is_left_to_read() -> None:
    stuck = occasion(Kind.STUCK_TRANSACTION, partition=0)
    days = Days(pipeline(), stuck)
    inside = days.within(stuck, spare_ms=60_000)
    assert not days.of(Metric.READ_COMMITTED_LAG)[inside].any()
    assert days.of(Metric.OPEN_SPAN)[inside][-1] == pytest.approx(
        explanation(days, Metric.PRODUCE_RATE, days.within(stuck)) * 3600, rel=0.05
    )
    assert days.of(Metric.OPEN_SPAN)[days.outside(stuck)].max() < 1000
    assert days.of(Metric.READ_UNCOMMITTED_LAG_SECONDS)[inside][-1] > 3500
    assert days.of(Metric.OPEN_SPAN, 1)[inside].max() < 1000


@pytest.mark.parametrize("kind", [Kind.DEPLOY, Kind.REBALANCE])
def test_a_pause_of_two_minutes_is_made_up_for_soon(kind: Kind) -> None:
    pauses = occasion(kind, minutes=2)
    paused = occasion(kind, minutes=2, pauses=((pauses.start_ms, pauses.end_ms),))
    days = Days(pipeline(), paused)
    lag = days.of(Metric.READ_COMMITTED_LAG_SECONDS)
    assert 60 < lag[days.within(paused)].max() < 150
    assert lag[days.outside(paused, spare_ms=240_000)].max() < 5


def test_a_shift_of_level_lasts() -> None:
    shift = occasion(Kind.LEVEL_SHIFT, minutes=0, strength=2.0)
    before, after = Days(pipeline(), days=2), Days(pipeline(), shift, days=2)
    ratio = after.of(Metric.PRODUCE_RATE) / before.of(Metric.PRODUCE_RATE)
    begun = after.times_ms > shift.start_ms + 30_000
    assert ratio[begun].mean() == pytest.approx(2, rel=0.02)
    assert ratio[~begun].mean() == pytest.approx(1, rel=0.02)
    assert after.of(Metric.READ_COMMITTED_LAG_SECONDS).max() < 5  # the group has grown with it


def test_an_incident_is_over_when_its_backlog_has_been_read() -> None:
    pill = occasion(Kind.POISON_PILL, partition=1)
    days = Days(pipeline(), pill)
    over = days.block.over_ms[pill]
    lag = days.of(Metric.READ_COMMITTED_LAG_SECONDS, 1)
    assert over > pill.end_ms
    assert lag[days.times_ms >= over].max() < 10
    assert lag[(days.times_ms > pill.end_ms) & (days.times_ms < over)].min() > 1


def test_retention_takes_what_a_group_that_unchanged_has_not_read() -> None:
    pill = occasion(Kind.POISON_PILL, minutes=180, partition=0)
    days = Days(pipeline(retention_seconds=3600.0), pill)
    lag = days.of(Metric.READ_COMMITTED_LAG_SECONDS)
    assert 3500 < lag.max() < 3700


def test_a_compacted_topic_is_caught_up_with_sooner() -> None:
    pill = occasion(Kind.POISON_PILL, partition=0)
    plain, compacted = Days(pipeline(), pill), Days(pipeline(holes=0.5), pill)
    waits = [days.block.over_ms[pill] - pill.end_ms for days in (plain, compacted)]
    assert 0 < waits[1] < 0.6 * waits[0]


def test_a_reader_that_comes_once_an_hour_lets_records_wait() -> None:
    days = Days(pipeline(traffic=Traffic.HOURLY_READER))
    hours = days.of(Metric.READ_COMMITTED_LAG_SECONDS)[240:].reshape(-1, 120)
    assert (hours.max(axis=1) > 3000).all()
    assert (hours.min(axis=1) < 60).all()
