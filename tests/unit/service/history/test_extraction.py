"""Which samples a round gives, and when it gives none."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import numpy as np
import pytest

from rules.baseline.series import Metric, Series
from rules.facts.broker_log import BrokerLog, LogSource, Origin, SequenceForm, SequenceRejected
from rules.facts.column import Column
from rules.facts.groups import GroupType
from rules.facts.memory import Memory, advance
from rules.facts.scrapes import ClientReading, Counted, Scrapes
from rules.facts.snapshot import Snapshot
from rules.facts.transaction_log import Outcome, TransactionLog
from rules.time_lag import TimeLag, TimeLags
from service.history.extraction import Extraction, JudgedRound, RoundSamples
from tests.factories import at, commits, ended, group, offsets, partitions, snapshot, topic_id
from tests.scraped import endpoint_state
from tests.unit.rules.sequence.cases import CASES
from tests.unit.rules.sequence.stage import play

INTERVAL = 15.0


class Rounds:
    """Rounds of one cluster, one after the other."""

    def __init__(self) -> None:
        self.extraction = Extraction("c", interval_seconds=INTERVAL)
        self.memory: Memory | None = None
        self.labels: dict[int, bytes] = {}

    def make(
        self, seconds: float, step: timedelta | None = None, **observations: Any
    ) -> RoundSamples:
        seen: Snapshot = snapshot(**{"taken_at": at(seconds), **observations})
        found = self.extraction.samples(
            JudgedRound(snapshot=seen, before=self.memory, clock_step=step)
        )
        self.memory = advance(seen, self.memory)
        self.labels |= self.extraction.take_new_labels()
        return found

    def value(
        self,
        found: RoundSamples,
        metric: Metric,
        topic: str | None = "orders",
        partition: int | None = 0,
        group_id: str | None = None,
    ) -> float:
        wanted = Series(
            cluster="c", metric=metric, topic=topic, partition=partition, group=group_id
        )
        assert self.labels[wanted.series_id] == wanted.text
        (place,) = np.flatnonzero(found.ids == wanted.series_id).tolist()
        return float(found.values[place])


def ends(*values: int | None) -> dict[str, Any]:
    return {"offsets": offsets(log_end_offset=values)}


def read_to(committed: int, end: int = 100) -> dict[str, Any]:
    return {
        "groups": (group("billing"),),
        "commits": commits((0, 0, committed)),
        "offsets": offsets(high_watermark=[end] * 3, log_end_offset=[end] * 3),
    }


def test_a_round_tells_lags_and_spans() -> None:
    rounds = Rounds()
    found = rounds.make(
        0,
        groups=(group("billing"),),
        commits=commits((0, 1, 60)),
        offsets=offsets(
            last_stable_offset=[90] * 3, high_watermark=[100] * 3, log_end_offset=[100, 105, None]
        ),
    )
    assert rounds.value(found, Metric.READ_COMMITTED_LAG, "orders", 1, "billing") == 30
    assert rounds.value(found, Metric.READ_UNCOMMITTED_LAG, "orders", 1, "billing") == 40
    assert rounds.value(found, Metric.OPEN_SPAN, "orders", 1) == 10
    assert rounds.value(found, Metric.UNREPLICATED_SPAN, "orders", 1) == 5
    assert np.isnan(rounds.value(found, Metric.UNREPLICATED_SPAN, "orders", 2))
    assert np.isnan(rounds.value(found, Metric.READ_COMMITTED_LAG_SECONDS, "orders", 1, "billing"))
    assert found.at_ms == at(0).timestamp() * 1000


def test_lags_in_seconds_are_those_of_the_round() -> None:
    lag = TimeLag(
        lag_us=Column.of([None, 2_500_000]),
        within_us=np.zeros(2, np.int64),
        at_least_us=Column.absent(2),
        why_absent=np.array([0, -1], np.int8),
    )
    seen = snapshot(groups=(group("a"), group("b")), commits=commits((0, 0, 5), (1, 0, 6)))
    lags = TimeLags(read_committed=lag, read_uncommitted=lag)
    extraction = Extraction("c", interval_seconds=INTERVAL)
    found = extraction.samples(JudgedRound(snapshot=seen, before=None, time_lags=lags))
    is_seconds = found.metric == list(Metric).index(Metric.READ_UNCOMMITTED_LAG_SECONDS)
    assert found.values[is_seconds].tolist() == pytest.approx([float("nan"), 2.5], nan_ok=True)


def test_a_share_group_has_no_lag() -> None:
    rounds = Rounds()
    rounds.make(0, groups=(group(group_type=GroupType.SHARE),), commits=commits((0, 0, 5)))
    assert not [text for text in rounds.labels.values() if json.loads(text)[-1] is not None]


@pytest.mark.parametrize(
    ("seconds", "end", "rate"),
    [
        pytest.param(15.5, 255, 10.0, id="by the time that truly passed"),
        pytest.param(15, 100, 0.0, id="an idle producer is a zero"),
        pytest.param(50, 200, 2.0, id="over two rounds that are missing"),
        pytest.param(60, 200, None, id="not over a longer gap"),
        pytest.param(15, 90, None, id="not when it went back"),
        pytest.param(15, None, None, id="not when it was not seen"),
        pytest.param(0, 200, None, id="not without time"),
    ],
)
def test_the_rate_of_producing(seconds: float, end: int | None, rate: float | None) -> None:
    rounds = Rounds()
    first = rounds.make(0, **ends(100, 100, 100))
    assert np.isnan(rounds.value(first, Metric.PRODUCE_RATE))
    found = rounds.make(seconds, **ends(end, 100, 100))
    expected = float("nan") if rate is None else rate
    assert rounds.value(found, Metric.PRODUCE_RATE) == pytest.approx(expected, nan_ok=True)
    assert found.went_back == (end == 90)


def test_a_partition_that_one_round_did_not_see_has_its_rate_in_the_next() -> None:
    rounds = Rounds()
    rounds.make(0, **ends(100, 100, 100))
    rounds.make(15, **ends(None, 100, 100))
    found = rounds.make(30, **ends(400, 100, 100))
    assert rounds.value(found, Metric.PRODUCE_RATE) == 10


def test_a_topic_that_was_created_again_begins_anew_and_is_counted() -> None:
    rounds = Rounds()
    rounds.make(0, **ends(100, 100, 100))
    anew = partitions(topic_ids=(topic_id("orders", creation=1),))
    found = rounds.make(15, partitions=anew, **ends(500, 500, 500))
    assert np.isnan(rounds.value(found, Metric.PRODUCE_RATE))
    assert found.went_back == 3


@pytest.mark.parametrize(("committed", "rate", "back"), [(90, 2.0, 0), (60, 0.0, 0), (45, None, 1)])
def test_the_rate_of_reading(committed: int, rate: float | None, back: int) -> None:
    rounds = Rounds()
    rounds.make(0, **read_to(60))
    found = rounds.make(15, **read_to(committed))
    value = rounds.value(found, Metric.CONSUME_RATE, "orders", 0, "billing")
    assert value == pytest.approx(float("nan") if rate is None else rate, nan_ok=True)
    assert found.went_back == back


def test_a_step_of_the_clock_changes_no_rate() -> None:
    rounds = Rounds()
    rounds.make(0, **ends(100, 100, 100))
    found = rounds.make(3615, timedelta(hours=1), **ends(250, 100, 100))
    assert rounds.value(found, Metric.PRODUCE_RATE) == 10
    back = rounds.make(-3570, timedelta(hours=-2), **ends(400, 100, 100))
    assert rounds.value(back, Metric.PRODUCE_RATE) == 10


def test_another_cluster_of_the_same_name_shares_no_rate() -> None:
    rounds = Rounds()
    rounds.make(0, **read_to(60))
    found = rounds.make(15, cluster_id="BBBBBBBBQACAAAAAAAAAAQ", **read_to(90, end=300))
    assert np.isnan(rounds.value(found, Metric.PRODUCE_RATE))
    assert np.isnan(rounds.value(found, Metric.CONSUME_RATE, "orders", 0, "billing"))


def rejected(partition: int = 0) -> SequenceRejected:
    return SequenceRejected(
        origin=Origin(source="a"),
        form=SequenceForm.OUT_OF_ORDER,
        producer_id=1,
        topic="orders",
        partition=partition,
        offset=None,
        incoming_sequence=9,
        current_sequence=3,
    )


def log(*events: SequenceRejected, error: str | None = None) -> BrokerLog:
    return BrokerLog(is_read=True, events=events, sources=(LogSource(name="a", error=error),))


def test_rejected_batches_are_a_rate_from_the_first_one_on() -> None:
    rounds = Rounds()
    quiet = rounds.make(0, broker_log=log())
    assert not np.any(quiet.metric == list(Metric).index(Metric.SEQUENCE_ERRORS))
    seen = rounds.make(15, broker_log=log(rejected(), rejected(), rejected()))
    assert rounds.value(seen, Metric.SEQUENCE_ERRORS) == pytest.approx(0.2)
    assert rounds.value(rounds.make(30, broker_log=log()), Metric.SEQUENCE_ERRORS) == 0
    blind = rounds.make(45, broker_log=log(error="not there"))
    assert np.isnan(rounds.value(blind, Metric.SEQUENCE_ERRORS))
    assert np.isnan(rounds.value(rounds.make(60), Metric.SEQUENCE_ERRORS))


def test_partitions_that_had_rejected_batches_before_a_restart_are_listed_at_once() -> None:
    memory = play(CASES["textbook-just-seen"].observations)[-1].memory
    (name, *_) = (episode.name for episode in memory.sequences.episodes)
    assert name is not None
    again = Rounds()
    again.memory = memory
    places = partitions({name.topic: name.partition + 1})
    seen = again.make(30, broker_log=log(), partitions=places)
    value = again.value(seen, Metric.SEQUENCE_ERRORS, name.topic, name.partition)
    assert np.isnan(value), "a rate needs the round before"
    later = again.make(45, broker_log=log(), partitions=places)
    assert again.value(later, Metric.SEQUENCE_ERRORS, name.topic, name.partition) == 0


def reading(
    rate: float | None, endpoint: str = "e", client: str = "producer-1", **overrides: Any
) -> ClientReading:
    counted = Counted(total=None, increase=None, since=None, rate=rate)
    base = ClientReading(
        endpoint=endpoint,
        address="app:1",
        client_id=client,
        topic="orders",
        seen_since=at(0),
        seen_at=at(0),
        is_gone=False,
        errors=counted,
        retries=None,
    )
    return replace(base, **overrides)


@pytest.mark.parametrize(
    ("readings", "rate"),
    [
        pytest.param([reading(1.5), reading(2.0, client="b")], 3.5, id="producers are added"),
        pytest.param([reading(1.5), reading(1.5, "f")], 1.5, id="told twice, counted once"),
        pytest.param([reading(0.0)], 0.0, id="no errors are a zero"),
        pytest.param([reading(None)], None, id="not known yet"),
        pytest.param([reading(1.0, "stale")], None, id="an endpoint that is away"),
    ],
)
def test_record_errors_are_of_a_topic(
    readings: Sequence[ClientReading], rate: float | None
) -> None:
    rounds = Rounds()
    states = [endpoint_state("e"), endpoint_state("f"), endpoint_state("stale", is_fresh=False)]
    scrapes = Scrapes(is_read=True, endpoints=tuple(states), clients=tuple(readings))
    found = rounds.make(0, scrapes=scrapes)
    value = rounds.value(found, Metric.RECORD_ERROR_RATE, "orders", None)
    assert value == pytest.approx(float("nan") if rate is None else rate, nan_ok=True)


def test_a_client_has_series_of_its_own_from_its_first_retry_on() -> None:
    rounds = Rounds()

    def found(second: float, rate: float) -> float:
        retried = Counted(total=round(rate), increase=None, since=None, rate=rate)
        client = reading(0.0, client="payments", retries=retried)
        scrapes = Scrapes(is_read=True, endpoints=(endpoint_state("e"),), clients=(client,))
        seen = rounds.make(second, scrapes=scrapes)
        metric = Metric.CLIENT_RECORD_RETRY_RATE
        if not np.any(seen.metric == list(Metric).index(metric)):
            return -1.0
        wanted = Series(cluster="c", metric=metric, topic="orders", client_id="payments")
        return float(seen.values[seen.ids == wanted.series_id].item())

    assert [found(0, 0.0), found(15, 2.0), found(30, 2.0)] == [-1.0, 2.0, 2.0]


@pytest.mark.parametrize(
    ("transactions", "ratio"),
    [
        (TransactionLog.unread(), None),
        (TransactionLog(is_read=True), None),
        (TransactionLog(is_read=True, ended=(ended(),)), 0.0),
        (TransactionLog(is_read=True, ended=(ended(), ended(outcome=Outcome.ABORTED))), 0.5),
    ],
)
def test_the_ratio_of_aborts(transactions: TransactionLog, ratio: float | None) -> None:
    rounds = Rounds()
    found = rounds.make(0, transaction_log=transactions)
    value = rounds.value(found, Metric.ABORT_RATIO, None, None)
    assert value == pytest.approx(float("nan") if ratio is None else ratio, nan_ok=True)


def test_the_same_series_have_the_same_columns_and_are_told_once() -> None:
    rounds = Rounds()
    first = rounds.make(0, **read_to(60))
    told = len(rounds.labels)
    assert told == len(first) == len(np.unique(first.ids))
    assert rounds.labels.keys() == set(first.ids.tolist())
    again = rounds.make(15, **read_to(70))
    assert again.ids is first.ids
    assert again.version == first.version


def test_series_that_come_keep_those_that_were_there() -> None:
    rounds = Rounds()
    first = rounds.make(0, **read_to(60))
    more = rounds.make(
        15,
        groups=(group("a"), group("billing")),
        commits=commits((0, 2, 5), (1, 1, 60)),
        partitions=partitions({"new": 1, "orders": 3}),
        offsets=offsets(rows=4),
    )
    assert more.version != first.version
    assert set(first.ids.tolist()) < set(more.ids.tolist())
    assert rounds.value(more, Metric.READ_COMMITTED_LAG, "orders", 1, "a") == 95
    assert rounds.labels.keys() == set(more.ids.tolist())


def test_labels_are_told_once_more_when_they_were_lost() -> None:
    rounds = Rounds()
    first = rounds.make(0, **read_to(60))
    rounds.labels.clear()
    rounds.extraction.ids.make_anew()
    rounds.make(15, **read_to(60))
    assert rounds.labels.keys() == set(first.ids.tolist())


def test_a_lag_that_is_impossible_is_absent() -> None:
    rounds = Rounds()
    found = rounds.make(0, groups=(group("billing"),), commits=commits((0, 0, 101)))
    assert np.isnan(rounds.value(found, Metric.READ_UNCOMMITTED_LAG, "orders", 0, "billing"))


def test_columns_of_a_snapshot_are_not_written_to() -> None:
    seen = snapshot()
    before = [Column(one.values.copy(), one.valid.copy()) for one in (seen.offsets.open_span,)]
    Rounds().make(0, offsets=seen.offsets)
    assert np.array_equal(before[0].values, seen.offsets.open_span.values)
