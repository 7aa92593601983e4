"""Round after round without a cluster: what is remembered, what blindness is, when to come back."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest

from rules.errors import UnreachableError
from rules.facts.column import Column
from rules.facts.snapshot import Snapshot
from rules.verdict import Verdict
from service.rounds import Scope
from service.watch import WatchedRound, Watcher, leaders_moved, next_due
from tests.factories import NOON, commits, group, offsets, partitions, snapshot

INTERVAL = 15.0


class Script:
    """A source that shows prepared rounds in order; None is a round that cannot be made."""

    def __init__(self, *looks: dict[str, Any] | None) -> None:
        self.looks = list(looks)
        self.now: datetime = NOON - timedelta(seconds=INTERVAL)

    def utc_now(self) -> datetime:
        return self.now

    def read(self, scope: Scope) -> Snapshot:
        """Show the next round, one interval later than the last."""
        del scope
        self.now += timedelta(seconds=INTERVAL)
        look = self.looks.pop(0)
        if look is None:
            raise UnreachableError("no bootstrap address answered: 127.0.0.1:9: connection refused")
        return snapshot(taken_at=self.now, **look)


def watch(script: Script) -> list[WatchedRound]:
    watcher = Watcher("default", script, Scope(), utc_now=script.utc_now)
    return [watcher.make_round() for _ in range(len(script.looks))]


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
    assert breaches(third) == [("high_watermark_stuck", "stands")]


def test_six_minutes_of_blindness_resolve_nothing_and_are_told_and_end_without_noise() -> None:
    stuck = [STUCK] * 3
    away = [None] * 24
    *_, before, _ = seen = watch(Script(*stuck, *away, STUCK, {}))
    dark = seen[len(stuck) : -2]
    for number, found in enumerate(dark):
        *judgements, sight = found.judged.judgements
        assert found.trouble is not None
        assert all(judgement.count(Verdict.UNKNOWN) == 1 for judgement in judgements)
        assert all(judgement.count(Verdict.OK) == 0 for judgement in judgements)
        assert bool(sight.count(Verdict.BREACH)) is (number * INTERVAL >= 300)
    assert breaches(before) == [("high_watermark_stuck", "stands")]
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
    first = Watcher("default", script, Scope(), utc_now=script.utc_now)
    first.make_round()
    first.make_round()
    again = Script(STUCK)
    again.now = script.now
    restarted = Watcher(
        "default", again, Scope(), utc_now=again.utc_now, remembered=first.remembered
    )
    assert breaches(restarted.make_round()) == [("high_watermark_stuck", "stands")]


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
