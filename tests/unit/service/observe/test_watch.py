"""Round after round without a cluster: what is remembered, what blindness is, when to come back."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import pytest

from rules.facts.at_risk_observations import AtRiskObservations
from rules.facts.column import Column
from rules.facts.lag_objectives import LagObjective
from rules.facts.last_observation import LastObservations
from rules.facts.memory import advance
from rules.facts.times import MICROSECOND
from rules.question import ReadableQuestion
from rules.verdict import Verdict
from service.observe.cluster_reader import Scope
from service.observe.watch import Remembered, WatchedRound, Watcher, leaders_moved, next_due
from tests.factories import (
    NOON,
    at,
    commits,
    group,
    ints,
    offsets,
    open_producer,
    partitions,
    producers,
    snapshot,
    transactions,
    unseen_offsets,
)
from tests.unit.service.observe.watchers import INTERVAL, Script, watcher_of

STEP = timedelta(seconds=INTERVAL)
HOUR = timedelta(hours=1)

UNCHANGED = ("high_watermark_stuck", "unchanged")


def watch(
    script: Script, *, remembered: Remembered | None = None, **clock_set_by: timedelta
) -> list[WatchedRound]:
    """Make all rounds of a script; `after_1` sets the clock after the first of them."""
    watcher, made = watcher_of(script, remembered), []
    for number in range(1, len(script.observations) + 1):
        made.append(watcher.make_round())
        script.pass_time(clock_set_by=clock_set_by.get(f"after_{number}", timedelta(0)))
    return made


def breaches(found: WatchedRound) -> list[tuple[str, str]]:
    return [
        (one.rule.rule_id, one.reason)
        for judgement in found.judged.judgements
        for one in judgement.findings(Verdict.BREACH)
    ]


STUCK: dict[str, Any] = {"offsets": offsets(log_end_offset=[100, 130, 100])}


def test_memory_is_carried_from_round_to_round() -> None:
    first, second, third = watch(Script(STUCK, STUCK, STUCK))
    assert breaches(first) == breaches(second) == []
    assert breaches(third) == [UNCHANGED]


def test_objectives_are_measured_round_by_round_and_remembered() -> None:
    behind: dict[str, Any] = {"groups": (group("billing"),), "commits": commits((0, 0, 5))}
    level: dict[str, Any] = {**behind, "commits": commits((0, 0, 100))}
    script = Script(*[level] * 3, *[behind] * 3)
    objective = LagObjective(groups=re.compile("billing"), seconds=10.0, share=0.99)
    watcher = watcher_of(script, objectives=[objective])
    rounds = []
    for _ in range(6):
        rounds.append(watcher.make_round())
        script.pass_time()
    memory = watcher.remembered.memory
    assert memory is not None
    assert memory.objectives.group_ids == ("billing",)
    assert memory.objectives.measured_within(5).tolist() == [5 * 15_000]
    assert 0 < memory.objectives.late_within(5)[0] < 5 * 15_000
    (judgement,) = (
        judged
        for judged in rounds[-1].judged.judgements
        if judged.rule.rule_id == "lag_objective_burning"
    )
    assert judgement.subjects.labels(0) == {"cluster": "default", "group": "billing"}


def test_what_waits_for_a_second_observation_does_not_wait_for_long() -> None:
    hangs: dict[str, Any] = {
        "offsets": offsets(last_stable_offset=[90, 100, 100]),
        "transactions": transactions(resolved=frozenset({7})),
        "producers": producers(open_producer()),
    }
    calm, seen_once, told = watch(Script({}, hangs, hangs))
    assert [calm.next_is_early, seen_once.next_is_early, told.next_is_early] == [False, True, False]
    assert breaches(told) == [("transaction_hanging", "hanging")]


def test_six_minutes_of_blindness_resolve_nothing_and_are_told_and_end_without_noise() -> None:
    stuck = [STUCK] * 3
    away = [None] * 24
    *_, before, _ = seen = watch(Script(*stuck, *away, STUCK, {}))
    dark = seen[len(stuck) : -2]
    for number, found in enumerate(dark):
        *judgements, visibility = found.judged.judgements
        assert found.error is not None
        assert all(judgement.count(Verdict.UNKNOWN) == 1 for judgement in judgements)
        assert all(judgement.count(Verdict.OK) == 0 for judgement in judgements)
        assert bool(visibility.count(Verdict.BREACH)) is (number * INTERVAL >= 300)
    assert breaches(before) == [UNCHANGED]
    assert breaches(seen[-1]) == []


def test_another_cluster_id_starts_an_empty_memory() -> None:
    other = {**STUCK, "cluster_id": "another"}
    *_, last = watch(Script(STUCK, STUCK, other))
    assert breaches(last) == []


def test_a_rewind_is_seen_across_a_blind_round() -> None:
    def at(committed: int) -> dict[str, Any]:
        return {"groups": (group(),), "commits": commits((0, 0, committed))}

    *_, last = watch(Script(at(50), None, at(40)))
    assert ("consumer_group_rewound", "went_back") in breaches(last)


def test_memory_of_an_earlier_process_judges_the_first_round() -> None:
    script = Script(STUCK, STUCK)
    first = watcher_of(script)
    first.make_round()
    script.pass_time()
    first.make_round()
    [found] = watch(Script(STUCK, began=NOON + 2 * STEP), remembered=first.remembered)
    assert breaches(found) == [UNCHANGED]


@pytest.mark.parametrize("step", [HOUR, -HOUR], ids=["forward", "back"])
def test_a_clock_that_is_set_changes_no_duration(step: timedelta) -> None:
    first, second, third, fourth = watch(Script(STUCK, STUCK, STUCK, STUCK), after_1=step)
    assert breaches(first) == breaches(second) == []
    assert breaches(third) == breaches(fourth) == [UNCHANGED]
    steps = [found.clock_step for found in (first, second, third, fourth)]
    assert steps == [None, step, None, None]


@pytest.mark.parametrize("step", [HOUR, -HOUR], ids=["forward", "back"])
def test_a_clock_that_is_set_in_blindness_changes_no_duration(step: timedelta) -> None:
    *before, last = watch(Script(*[None] * 21), after_5=step)
    told = [bool(found.judged.judgements[-1].count(Verdict.BREACH)) for found in (*before, last)]
    assert told == [False] * 20 + [True]


def test_a_restart_with_a_clock_set_back_still_tells_in_time() -> None:
    script = Script(STUCK, None)
    watcher = watcher_of(script)
    watcher.make_round()
    watcher.make_round()
    again = Script(STUCK, STUCK, STUCK, began=NOON - HOUR)
    first, second, third = watch(again, remembered=watcher.remembered)
    assert breaches(first) == breaches(second) == []
    assert breaches(third) == [UNCHANGED]
    memory = watcher.remembered.memory
    assert memory is not None
    ahead = memory.observations.observed_at_us
    observations = advance(
        snapshot(taken_at=NOON - HOUR, offsets=unseen_offsets()), memory
    ).observations
    assert (
        observations.observed_at_us.values.tolist() == (ahead.values - HOUR // MICROSECOND).tolist()
    )


def test_a_question_is_given_to_the_next_round_and_outlives_one_that_cannot_be_made() -> None:
    stalled = {"groups": (group(),), "commits": commits((0, 0, 50))}
    script = Script(*[stalled] * 4, None, stalled, {})
    watch(script)
    assert [len(asked) for asked in script.queries] == [0, 0, 0, 1, 1, 1, 1]
    [question] = script.queries[-1]
    assert isinstance(question, ReadableQuestion)
    assert (question.commits.group_ids, question.commits.row.tolist()) == (("billing",), [0])


@pytest.mark.parametrize(
    ("change", "moved"),
    [
        ({}, False),
        ({"partitions": partitions(leader=Column.of([2, 1, 1]))}, True),
        ({"offsets": offsets(leader_epoch=[6, 5, 5])}, True),
        ({"partitions": partitions(leader=Column.of([None, 1, 1]))}, False),
    ],
    ids=["nothing", "leader", "epoch", "no-leader-yet"],
)
def test_a_leader_change_is_noticed(change: dict[str, Any], *, moved: bool) -> None:
    assert leaders_moved(snapshot(), snapshot(**change)) is moved
    *_, last = watch(Script({}, change))
    assert last.leaders_moved is moved


@pytest.mark.parametrize(
    ("began", "ended", "early", "due"),
    [
        (100.0, 100.2, False, 115.0),
        (100.0, 100.2, True, 101.2),
        (100.0, 114.9, True, 115.0),
        (100.0, 130.0, False, 130.0),
        (100.0, 130.0, True, 130.0),
    ],
    ids=["regular", "early", "early-is-never-later", "slow-round", "slow-and-early"],
)
def test_rounds_are_counted_from_start_to_start_and_never_overlap(
    began: float, ended: float, due: float, *, early: bool
) -> None:
    assert next_due(began, ended, interval_seconds=INTERVAL, early=early) == due


class LightObservations:
    """What is seen between two rounds: one partition's high watermark in epoch 5, at a second."""

    def __init__(self) -> None:
        self.seen: tuple[int, float] | None = None  # high watermark, second

    def take(self) -> AtRiskObservations | None:
        """Give the observation once."""
        if self.seen is None:
            return None
        (mark, second), self.seen = self.seen, None
        return AtRiskObservations(
            partitions=partitions(),
            row=ints(1),
            leader_epoch=ints(5),
            last_stable_offset=Column.of([mark]),
            high_watermark=Column.of([mark]),
            log_end_offset=Column.of([mark]),
            observed_at_us=ints(round(at(second).timestamp() * 10**6)),
        )


def observations_of(watcher: Watcher) -> LastObservations:
    assert watcher.remembered.memory is not None
    return watcher.remembered.memory.observations


@pytest.mark.parametrize("is_seen", [True, False], ids=["leader-changes", "cannot-be-asked"])
def test_what_was_seen_between_two_rounds_is_remembered_when_the_next_begins(
    *, is_seen: bool
) -> None:
    """A new leader's epoch does not hide the last observation of the old one: a loss is proven with it."""
    light = LightObservations()
    moved = {"offsets": offsets(high_watermark=[100, 90, 100], leader_epoch=[5, 6, 5])}
    script = Script({}, moved if is_seen else None)
    watcher = watcher_of(script, light_observations=light.take)
    watcher.make_round()
    light.seen = (130, 7)
    script.pass_time()
    made = watcher.make_round()
    if made.view is not None:
        assert made.view.before is not None
        assert made.view.before.observations.high_watermark.to_list() == [100, 130, 100]
    last = observations_of(watcher)[1]
    assert last is not None
    assert (last.leader_epoch, last.high_watermark) == (5, 130)
    assert last.observed_at_us == round(at(7).timestamp() * 10**6)
    assert observations_of(watcher).high_watermark.to_list() == [100, 130, 100]


def test_an_observation_before_anything_is_remembered_is_none() -> None:
    light = LightObservations()
    light.seen = (130, -1)
    watcher = watcher_of(Script({}), light_observations=light.take)
    watcher.make_round()
    assert observations_of(watcher).high_watermark.to_list() == [100, 100, 100]


def test_what_was_remembered_of_commits_is_for_their_own_cluster_alone() -> None:
    """The name may be another cluster's by now, with the same topics and groups."""
    memory = advance(snapshot(cluster_id="here"))
    scope = Scope(remembered=memory)
    assert scope.commits_of("here") is memory.commits
    assert scope.commits_of("another") is None
    assert Scope().commits_of("here") is None
