"""Cases of fencing: what was observed of a transactional id, round after round, and what it is called."""

from __future__ import annotations

import pytest

from rules.catalogue import producer_fenced
from rules.fencing.evidence import evidence_of
from rules.judgement import Finding
from rules.verdict import Severity, Verdict
from rules.view import View
from tests.unit.rules.fencing.cases import CASES
from tests.unit.rules.fencing.rounds import (
    B,
    comparable,
    fenced,
    initialised,
    lines,
    observed,
    only,
    play,
    restarted,
    state,
    takeover_v2,
)


@pytest.mark.parametrize("name", CASES)
def test_an_episode_has_its_class(name: str) -> None:
    case = CASES[name]
    verdict = only(play(case.rounds)).verdict
    assert (verdict.class_, verdict.reason) == (case.class_, case.reason), case.because


@pytest.mark.parametrize("name", CASES)
def test_a_restart_after_every_round_changes_nothing(name: str) -> None:
    rounds = CASES[name].rounds
    stayed, again = play(rounds).memory, play(rounds, between=restarted).memory
    assert comparable(again) == comparable(stayed)


def finding_of(view: View, label: str = "transactional_id") -> Finding:
    judgement = producer_fenced.judge(view)
    places = [n for n in range(len(judgement.subjects)) if label in judgement.subjects.labels(n)]
    [place] = places
    return judgement.finding(place)


@pytest.mark.parametrize(
    ("name", "verdict", "severity"),
    [
        ("restart-v1", Verdict.BREACH, Severity.INFO),
        ("restart-in-order", Verdict.OK, Severity.INFO),
        ("restart-v2", Verdict.UNKNOWN, Severity.WARNING),
        ("zombie-v1-request-log", Verdict.BREACH, Severity.WARNING),
        ("fight-v2-request-log", Verdict.BREACH, Severity.WARNING),
        ("timeout-by-line", Verdict.BREACH, Severity.WARNING),
        ("late-after-own-abort-v2", Verdict.OK, Severity.WARNING),
        ("crash-loop", Verdict.UNKNOWN, Severity.WARNING),
    ],
)
def test_what_the_rule_says_of_it(name: str, verdict: Verdict, severity: Severity) -> None:
    said = finding_of(play(CASES[name].rounds[:1]))
    assert (said.verdict, said.reason) == (verdict, CASES[name].class_)
    assert verdict is Verdict.UNKNOWN or name.startswith("late") or said.severity is severity


def test_a_breach_is_said_once_and_again_when_it_becomes_worse() -> None:
    rounds = CASES["restart-v1"].rounds[:1]
    quiet = producer_fenced.judge(play((*rounds, observed())))
    assert quiet.count(Verdict.BREACH) == 0
    worse = finding_of(play((*rounds, observed(broker_log=lines(fenced(20, 0))))))
    assert (worse.verdict, worse.reason) == (Verdict.BREACH, "zombie")


def test_a_zombie_is_shown_with_both_instances_and_what_to_do() -> None:
    evidence = finding_of(play(CASES["zombie-v1-request-log"].rounds)).evidence
    assert str(evidence["older_instance"]).startswith("a at 10.0.0.1:5001")
    assert str(evidence["newer_instance"]).startswith("b at 10.0.0.2:5002")
    assert (evidence["producer_id"], evidence["newest_epoch"]) == (7, 2)
    assert evidence["rejected"] == [
        {
            "request": "EndTxn",
            "error": "PRODUCER_FENCED",
            "source": "request_log",
            "count": 1,
            "producer_epoch": 0,
            "last_at": "2025-06-02T12:00:12.000+00:00",
            "client": "a at 10.0.0.1:5001",
        }
    ]
    assert {"read_committed", "not_lost", "advice"} <= evidence.keys()


@pytest.mark.parametrize(
    ("name", "cuts"),
    [("restart-v1", 1), ("restart-v2", None), ("fight-v2-request-log", 3), ("own-bump-v1-request-log", 0)],
)  # fmt: skip
def test_transactions_that_only_the_request_log_shows_to_be_cut_are_counted(
    name: str, cuts: int | None
) -> None:
    """With transactions v2 `__transaction_state` does not say who aborted."""
    evidence = evidence_of(only(play(CASES[name].rounds)))
    assert evidence.get("cut_transactions") == cuts
    assert ("read_committed" in evidence) == bool(cuts)


def test_a_handover_that_only_the_request_log_shows_to_have_cut_is_reported() -> None:
    took_over = observed(
        transaction_log=state(*takeover_v2(10, 0)), broker_log=lines(initialised(10.1, 2, B))
    )
    [finding] = producer_fenced.judge(play((took_over,))).findings(Verdict.BREACH)
    assert (finding.reason, finding.severity) == ("handover", Severity.INFO)
