"""Rounds that the service scores: what opens, and what the rules are told."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

import numpy as np
import pytest

from rules.baseline.blocks import DayBlock
from rules.baseline.judging import Memory
from rules.baseline.learnt_series import LearntColumns, LearntSeries
from rules.baseline.live import LiveEvaluation
from rules.baseline.series import Metric
from rules.baseline.unusual_values import ScoringState
from rules.catalogue import consumer_lag_unusual
from rules.remembering import view_of_round
from rules.unusual import were_unusual
from rules.verdict import Severity, Verdict
from service.storage.baselines.judging import OTHER
from tests.factories import NOON
from tests.unit.rules.baseline.flat_bands import flat_bands, labels_of
from tests.unit.service.rounds.scored_rounds import (
    CALM,
    DAY,
    FAR,
    MINUTE,
    MISSING,
    Rounds,
    lag,
    rate,
)


def test_the_service_opens_what_a_replay_of_the_same_samples_opens() -> None:
    series = [rate("orders", number) for number in range(4)]
    rounds = Rounds(series)
    draw = np.random.default_rng(7)
    level = np.repeat(draw.choice([CALM, CALM, FAR, 0.0], (10, 4)), 25, axis=0)
    values = level + draw.normal(0, 1, level.shape)
    values[draw.random(values.shape) < 0.1] = MISSING
    opened: dict[int, list[int]] = {}
    for row in values:
        rounds.put(1, *row)
        known = rounds.scoring.latest().open
        for series_id, at_ms in zip(known.series_id, known.opened_ms, strict=True):
            opened.setdefault(int(series_id), []).append(int(at_ms))
    judge = rounds.judges.judge
    assert judge is not None
    first = round((NOON.timestamp() * 1000 - DAY.start_ms) / 60_000)
    grid = np.full((4, DAY.samples(60_000)), np.nan, np.float32)
    grid[:, first : first + len(values) - 1] = values[:-1].T  # the last one is not over
    ids = judge.series_id
    block = DayBlock(series_id=ids, metric=np.zeros(4, np.uint8), step_ms=60_000, values=grid)
    _, openings, _ = judge.judge.replay(Memory.empty(4, 60_000), block)
    expected = {
        (int(ids[opening.row]), DAY.start_ms + opening.opened * 60_000)
        for opening in openings
        if opening.opened is not None
    }
    assert {(key, at_ms) for key, times in opened.items() for at_ms in times} == expected
    assert len(expected) > 4


def test_a_sentence_says_what_is_measured_and_what_is_usual() -> None:
    rounds = Rounds([lag("billing", number) for number in range(2)] + [lag("audit")])
    mine = [each.group == "billing" and each.partition == 1 for each in rounds.series]
    rounds.put(60, CALM)
    rounds.put(8, *[FAR if is_mine else CALM for is_mine in mine])
    (finding,) = rounds.breaches(consumer_lag_unusual)
    assert finding.severity is Severity.INFO
    assert finding.labels == {"cluster": "default", "group": "billing"}
    assert finding.evidence["explanation"] == (
        "read-committed lag of orders-1 900 s; usual for 13:00\N{EN DASH}13:30 is "
        "90\N{EN DASH}110 s (5 weeks); 80 \N{MULTIPLICATION SIGN} the usual deviation; "
        "rose within the last hour"
    )
    assert finding.evidence["series_count"] == 1
    assert ("audit", "usual") in rounds.said(consumer_lag_unusual)
    scored = rounds.scoring.latest().of_series(lag("billing", 1).series_id)
    assert scored is not None
    assert (scored.value, scored.usual_deviations, scored.unknown_reason) == (900.0, 80.0, None)
    assert scored.unusual_since is not None
    assert rounds.now - scored.unusual_since < 8 * MINUTE
    calm = rounds.scoring.latest().of_series(lag("audit").series_id)
    assert calm is not None
    assert calm.unusual_since is None
    assert rounds.scoring.latest().of_series(1) is None


def test_a_profile_of_a_later_version_has_a_sentence_too() -> None:
    rounds = Rounds([lag("billing")])
    judge = rounds.judges.judge
    assert judge is not None
    bands = replace(flat_bands(rounds.series), profile=np.full(1, OTHER, np.uint8))
    learnt = LearntSeries.join(
        "default", "UTC", [LearntColumns.of(bands)], labels_of(rounds.series)
    )
    rounds.judges.judge = replace(judge, learnt=learnt)
    rounds.put(60, CALM)
    rounds.put(8, FAR)
    (finding,) = rounds.breaches(consumer_lag_unusual)
    assert "usual for 13:00" in str(finding.evidence["explanation"])


def test_a_lag_that_is_worked_off_rose() -> None:
    rounds = Rounds([lag("billing")])
    rounds.put(60, CALM)
    rounds.put(8, FAR)
    rounds.put(4, CALM / 2)
    (finding,) = rounds.breaches(consumer_lag_unusual)
    assert str(finding.evidence["explanation"]).endswith("; rose within the last hour")


@pytest.mark.parametrize("hours", [-2, 2])
def test_a_clock_that_is_set_does_not_change_for_how_long_it_has_been_so(hours: int) -> None:
    rounds = Rounds([rate("orders")])
    rounds.put(60, CALM)
    rounds.put(8, FAR)
    rounds.set_clock(timedelta(hours=hours))
    rounds.put(3, FAR)
    (finding,) = rounds.breaches()
    assert str(finding.evidence["explanation"]).endswith("; so for 5 min")


def test_many_that_open_together_are_one_finding_until_they_close() -> None:
    rounds = Rounds([rate(f"t{number:02}") for number in range(12)])
    rounds.put(60, CALM)
    rounds.put(8, FAR)
    (finding,) = rounds.breaches()
    assert finding.labels == {"cluster": "default"}
    assert finding.reason == "many_unusual"
    assert str(finding.evidence["explanation"]).startswith("12 topics became unusual together; ")
    assert finding.evidence["series_count"] == 12
    assert ("t03", "one_of_many") in rounds.said()
    rounds.put(20, *[FAR] * 3, *[CALM] * 9)
    (finding,) = rounds.breaches()
    assert (finding.labels, finding.evidence["series_count"]) == ({"cluster": "default"}, 3)
    rounds.put(20, CALM)
    assert {reason for _, reason in rounds.said()} == {"usual"}


def test_one_of_many_that_is_not_measured_is_unknown() -> None:
    rounds = Rounds([rate(f"t{number:02}") for number in range(12)])
    first = rounds.series[0].topic
    rounds.put(60, CALM)
    rounds.put(8, FAR)
    rounds.put(3, MISSING, *[FAR] * 11)
    said = dict(rounds.said())
    assert said.pop(str(first)) == "not_measured"
    assert said.pop("") == "many_unusual"
    assert set(said.values()) == {"one_of_many"}


def test_ten_that_open_together_are_ten_findings() -> None:
    rounds = Rounds([rate(f"t{number:02}") for number in range(10)])
    rounds.put(60, CALM)
    rounds.put(8, FAR)
    assert len(rounds.breaches()) == 10


def test_what_is_not_measured_is_unknown_and_ends_nothing() -> None:
    rounds = Rounds([rate("orders"), rate("audit")])
    is_orders = [each.topic == "orders" for each in rounds.series]
    rounds.put(60, CALM)
    rounds.put(8, *[FAR if mine else CALM for mine in is_orders])
    rounds.put(90, *[MISSING if mine else CALM for mine in is_orders])
    assert sorted(rounds.said()) == [("", "usual"), ("audit", "usual"), ("orders", "not_measured")]
    rounds.put(2, FAR)
    assert [finding.labels["topic"] for finding in rounds.breaches()] == ["orders"]


def test_a_round_copies_no_hour_of_all_series(monkeypatch: pytest.MonkeyPatch) -> None:
    rounds = Rounds([rate("orders")])
    rounds.put(2, CALM)

    def fail(_: LiveEvaluation) -> Memory:
        raise AssertionError("the hour of all series was copied")

    monkeypatch.setattr(LiveEvaluation, "memory", property(fail))
    rounds.put(8, CALM)
    assert rounds.said() == [("orders", "usual"), ("", "usual")]


def test_groups_whose_lag_was_unusual_are_those_of_the_run_that_scored(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rounds = Rounds([lag("billing"), lag("audit"), rate("orders")])
    rounds.put(60, CALM)
    rounds.put(8, *[CALM if each.group == "audit" else FAR for each in rounds.series])

    def fail(_: Sequence[str]) -> None:
        raise AssertionError("the ids of a group's series are known from the run")

    monkeypatch.setattr("rules.unusual.series_ids", fail)
    view = view_of_round(replace(rounds.seen, taken_at=rounds.now), None)
    marked = were_unusual(
        replace(view, unusual=rounds.scoring.latest()),
        Metric.READ_COMMITTED_LAG_SECONDS,
        np.arange(2),
        np.ones(2, np.bool_),
        within=timedelta(hours=1),
    )
    assert marked.tolist() == [True, False]


def test_what_has_closed_was_unusual_for_an_hour() -> None:
    rounds = Rounds([rate("orders")])
    (series,) = rounds.series
    hour = timedelta(hours=1)
    rounds.put(60, CALM)
    rounds.put(8, FAR)
    rounds.put(15, CALM)
    latest = rounds.scoring.latest()
    assert not len(latest.open)
    assert latest.unusual_within(hour, rounds.now).tolist() == [series.series_id]
    assert not len(latest.unusual_within(hour, rounds.now + hour))
    rounds.put(60, CALM)
    assert not len(rounds.scoring.latest().closed.series_id)


def test_what_is_not_measured_was_unusual_for_an_hour() -> None:
    rounds = Rounds([rate("orders")])
    (series,) = rounds.series
    rounds.put(60, CALM)
    rounds.put(8, FAR)
    for minutes, is_unusual in ((58, True), (5, False)):
        rounds.put(minutes, MISSING)
        latest = rounds.scoring.latest()
        assert latest.open.series_id.tolist() == [series.series_id], "nothing ends what is open"
        within = latest.unusual_within(timedelta(hours=1), rounds.now)
        assert (series.series_id in within) == is_unusual


def test_what_is_measured_is_shown_beside_its_deviation() -> None:
    rounds = Rounds([rate("orders"), rate("payments"), rate("silent")])
    ids = np.array([series.series_id for series in rounds.series] + [1])
    rounds.put(60, CALM)
    rounds.put(2, FAR, CALM / 2, MISSING)
    values, scores = rounds.scoring.latest().values_of(ids, rounds.now)
    np.testing.assert_equal(values, [FAR, CALM / 2, np.nan, np.nan])
    assert scores[0] > 3
    assert scores[1] < 0
    assert np.isnan(scores[2:]).all()
    late = rounds.scoring.latest().values_of(ids, rounds.now + timedelta(hours=1))
    assert np.isnan(late).all()


def test_scores_that_are_too_old_say_nothing() -> None:
    rounds = Rounds([rate("orders")])
    rounds.put(60, CALM)
    rounds.put(8, FAR)
    judgement = rounds.judged(after=timedelta(minutes=10))
    assert [finding.reason for finding in judgement.findings(*Verdict)] == ["not_scored"]
    assert judgement.count(Verdict.UNKNOWN) == 1


def test_without_a_published_run_nothing_is_judged() -> None:
    rounds = Rounds([rate("orders")])
    rounds.judges.judge, rounds.judges.has_run = None, False
    rounds.put(10, FAR)
    assert not rounds.breaches()
    assert rounds.scoring.latest().state is ScoringState.OFF
