"""A line of posture: what is shown of one subject of a check."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from rules.facts.configs import ConfigEntry, ConfigSource
from rules.posture.line import (
    Advice,
    PostureCheck,
    PostureJudgement,
    PostureReason,
    PostureScope,
    Shown,
    judgement_of_lines,
)
from rules.verdict import Severity, Verdict


class Why(PostureReason):
    """Reasons of the check of these tests."""

    RIGHT = "right"
    SHORT = "short"
    RISKY = "risky"


CHECK = PostureCheck(
    check_id="retention",
    scope=PostureScope.TOPIC,
    setting="retention.ms",
    summary="Records stay long enough.",
    milder=frozenset({Why.SHORT}),
)


def judgement() -> PostureJudgement:
    """Return the judgement of four topics."""
    entry = ConfigEntry("retention.ms", "1", ConfigSource.TOPIC)
    return PostureJudgement(
        check=CHECK,
        names=["a", "b", "c", "d"],
        verdicts=np.array([Verdict.OK, Verdict.BREACH, Verdict.BREACH, Verdict.BREACH], np.int8),
        reasons=tuple(Why),
        reason=np.array([0, 1, 2, 2], np.int8),
        mild=np.array([False, False, True, False]),
        advice={
            Why.SHORT: Advice(consequence="{value} ms of {name}", fix='set {{"{name}"}} {most}'),
            Why.RISKY: Advice(consequence="", fix=""),
        },
        show=lambda _: Shown.of(entry, most=7),
    )


def test_lines_are_those_of_a_verdict_with_the_words_of_their_subject() -> None:
    made = judgement()
    assert (made.count(Verdict.BREACH), made.positions(Verdict.OK)) == (3, [0])
    line, *others = made.lines(Verdict.BREACH)
    assert (line.name, line.reason, line.source) == ("b", Why.SHORT, ConfigSource.TOPIC)
    assert (line.consequence, line.fix) == ("1 ms of b", 'set {"b"} 7')
    assert [entry.severity for entry in (line, *others)] == [
        Severity.INFO,  # by its reason
        Severity.INFO,  # by its subject
        Severity.WARNING,
    ]


def test_what_is_right_says_nothing() -> None:
    [line] = judgement().lines(Verdict.OK)
    assert (line.consequence, line.fix, line.value) == ("", "", "1")


def test_judgement_of_lines_has_the_same_lines() -> None:
    made = list(judgement().lines(*Verdict))
    again = judgement_of_lines(CHECK, made)
    assert list(again.lines(*Verdict)) == made


def test_lines_of_the_same_reason_keep_their_own_words() -> None:
    made = list(judgement().lines(Verdict.BREACH))
    words = [replace(line, consequence=f"{{x}} {number}") for number, line in enumerate(made)]
    assert list(judgement_of_lines(CHECK, words).lines(Verdict.BREACH)) == words
