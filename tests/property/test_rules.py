"""Laws of judging: three outcomes, no order, no memory of what did not happen."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from rules.catalogue.all_rules import RULES, judge_round
from rules.facts.memory import Memory, advance, shift_times
from rules.facts.snapshot import Snapshot
from rules.judgement import Finding
from rules.verdict import Verdict
from rules.view import View
from tests.factories import unknown_offsets
from tests.property.strategies import Ends, Topic, Topics, snapshot_of, topics

HEALTHY = Ends(
    log_start_offset=0,
    last_stable_offset=100,
    high_watermark=100,
    log_end_offset=100,
    leader_epoch=5,
    isr=(1, 2, 3),
)
histories = st.lists(topics, min_size=1, max_size=4)


def views(observations: list[Snapshot]) -> View:
    before: Memory | None = None
    for observation in observations[:-1]:
        before = advance(observation, before)
    memory = advance(observations[-1], before)
    return View(
        snapshot=observations[-1], memory=memory, before=before, now=observations[-1].taken_at
    )


def findings(view: View) -> dict[object, Finding]:
    return {
        found.identity: found
        for judgement in judge_round(view, {}).judgements
        for found in judgement.findings(*Verdict)
    }


def observations_at(history: list[Topics], *, every: float = 40) -> list[Snapshot]:
    return [snapshot_of(found, seconds=number * every) for number, found in enumerate(history)]


def backwards(found: Topics) -> Topics:
    return dict(reversed(list(found.items())))


@given(histories)
def test_every_subject_has_one_verdict_and_a_reason_of_its_rule(history: list[Topics]) -> None:
    view = views(observations_at(history))
    for rule in RULES:
        judgement = rule.judge(view)
        assert len(judgement.verdicts) == len(judgement.reason) == len(judgement.subjects)
        assert set(judgement.verdicts.tolist()) <= {int(verdict) for verdict in Verdict}
        assert all(0 <= place < len(judgement.reasons) for place in judgement.reason.tolist())
        assert all(len(column) == len(judgement.subjects) for column in judgement.evidence.values())


@given(histories)
def test_order_of_topics_changes_no_finding(history: list[Topics]) -> None:
    straight = findings(views(observations_at(history)))
    reversed_ = findings(views(observations_at([backwards(found) for found in history])))
    assert straight == reversed_


@given(histories)
def test_same_rounds_give_the_same_findings(history: list[Topics]) -> None:
    assert findings(views(observations_at(history))) == findings(views(observations_at(history)))


@given(histories)
def test_a_healthy_partition_adds_no_breach(history: list[Topics]) -> None:
    fine = Topic(topic_id=None, ends=(HEALTHY,))
    without = _breaches(findings(views(observations_at(history))))
    with_it = _breaches(
        findings(views(observations_at([{**found, "fine": fine} for found in history])))
    )
    assert with_it == without


@given(histories)
def test_less_time_between_rounds_never_adds_a_breach(history: list[Topics]) -> None:
    slow = _breaches(findings(views(observations_at(history, every=40))))
    quick = _breaches(findings(views(observations_at(history, every=1))))
    assert quick <= slow


@given(histories)
def test_what_was_not_seen_is_never_ok_and_never_a_breach(history: list[Topics]) -> None:
    last = observations_at(history)[-1]
    blind = replace(last, offsets=unknown_offsets(len(last.partitions), 0))
    view = views([*observations_at(history)[:-1], blind])
    by_rule = {rule.meta.rule_id: rule.judge(view) for rule in RULES}
    for name in ("high_watermark_stuck", "last_stable_offset_stuck"):
        assert np.all(by_rule[name].verdicts == Verdict.UNKNOWN)


@given(histories)
def test_memory_of_a_round_is_the_same_when_the_round_is_seen_twice(
    history: list[Topics],
) -> None:
    observations = observations_at(history)
    once = views(observations)
    again = views([*observations, observations[-1]])
    assert once.now == again.now
    unchanged = [
        name
        for name, found in findings(once).items()
        if found.verdict is Verdict.BREACH and found.rule.rule_id == "high_watermark_stuck"
    ]
    after = findings(again)
    assert all(after[name].verdict is Verdict.BREACH for name in unchanged)


@given(histories, st.integers(-(2**33), 2**33))
def test_a_clock_that_is_set_between_two_rounds_changes_no_finding(
    history: list[Topics], milliseconds: int
) -> None:
    *earlier, last = observations_at(history)
    step = timedelta(milliseconds=milliseconds)
    memory: Memory | None = None
    for observation in earlier:
        memory = advance(observation, memory)
    moved = None if memory is None else shift_times(memory, step // timedelta(microseconds=1))
    later = replace(last, taken_at=last.taken_at + step)
    view = View(snapshot=later, memory=advance(later, moved), before=moved, now=later.taken_at)
    assert findings(view) == findings(views([*earlier, last]))


def _breaches(found: Mapping[object, Finding]) -> set[object]:
    return {name for name, one in found.items() if one.verdict is Verdict.BREACH}


def test_without_topic_ids_a_value_that_is_the_same_by_name_has_stood() -> None:
    held = Topic(topic_id=None, ends=(replace(HEALTHY, log_end_offset=120),))
    found = findings(views(observations_at([{"orders": held}] * 3)))
    [stuck] = [one for one in found.values() if one.rule.rule_id == "high_watermark_stuck"]
    assert stuck.verdict is Verdict.BREACH
