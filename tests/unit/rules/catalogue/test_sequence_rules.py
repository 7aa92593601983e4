"""What the rules of sequences tell, when, and with which evidence."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Final

import pytest

from rules.catalogue import (
    duplicates_possible,
    producer_sequence_bug,
    sequence_gap_loss,
    sequence_gap_reordering,
    sequence_gap_undetermined,
)
from rules.judgement import Finding
from rules.verdict import Severity, Verdict
from tests.unit.rules.catalogue.sequence_rules import RULES, TEXTBOOK, breaches, told
from tests.unit.rules.sequence.case_observations import ALONE, OLD_BATCH, line_of_2, of_2
from tests.unit.rules.sequence.cases import CASES
from tests.unit.rules.sequence.lines import rejected
from tests.unit.rules.sequence.stage import Observation, batch, found, play


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What the rounds of a case tell, and why."""

    because: str
    says: list[tuple[int, str, str]]


TOLD: Final = {
    "just-seen": Told(because="nothing is told while an answer is awaited", says=[]),
    "same-leader-epoch": Told(
        because="a proof is told at once", says=[(2, "reordering", "reordered")]
    ),
    "earliest-seen": Told(
        because="the line itself is the proof", says=[(1, "reordering", "reordered")]
    ),
    "textbook": Told(because="a proven loss is told once", says=[(2, "loss", "lost")]),
    "unclean-and-unhealed": Told(
        because="a suspicion warns when it is known that nothing more comes soon, a proof pages",
        says=[(3, "loss", "lost")],
    ),
    "no-offsets": Told(
        because="numbers alone warn nobody: what is not known is said when a client has given up",
        says=[(3, "undetermined", "undetermined")],
    ),
    "unclean-and-waiting": Told(because="a client may still send what is missing", says=[]),
    "seemingly-clean": Told(because="likewise", says=[]),
    "leader-does-not-answer": Told(because="that nobody answers says nothing", says=[]),
    "starts-of-several-transactions": Told(because="each is a healthy one", says=[]),
    "no-offsets-and-a-small-gap": Told(
        because="what is not known is said when a client would have given up",
        says=[(3, "undetermined", "undetermined")],
    ),
    "no-read": Told(
        because="likewise, when it was asked often enough",
        says=[(9, "undetermined", "undetermined")],
    ),
    "no-read-and-a-loss": Told(
        because="committed_records_lost pages; this one warns when a client has given up",
        says=[(9, "loss", "possibly_lost")],
    ),
    "stale-retry": Told(
        because="its records are there already", says=[(2, "duplicates", "stale_retry")]
    ),
    "epochs-above-zero": Told(
        because="it is the client's bug", says=[(2, "bug", "starts_above_zero")]
    ),
    "no-state-for-good": Told(
        because="what such a producer sends again is not recognised",
        says=[(4, "duplicates", "state_lost")],
    ),
}


@pytest.mark.parametrize("name", TOLD)
def test_case(name: str) -> None:
    assert told(name) == TOLD[name].says, TOLD[name].because


@pytest.mark.parametrize("name", CASES)
def test_only_a_confirmed_loss_pages(name: str) -> None:
    views = play(CASES[name].observations)
    pages = [
        finding
        for view in views
        for judge in RULES.values()
        for finding in judge(view).findings(Verdict.BREACH)
        if finding.severity is Severity.CRITICAL
    ]
    is_lost = CASES[name].says[:2] == ("loss", "confirmed")
    assert len(pages) == int(is_lost)


def test_suspected_loss_warns_and_the_rest_informs() -> None:
    assert sequence_gap_loss.RULE.severity_of("possibly_lost") is Severity.WARNING
    for rule in (sequence_gap_undetermined, duplicates_possible):
        assert rule.RULE.severity is Severity.INFO
    reordering = sequence_gap_reordering
    severities = {why: reordering.RULE.severity_of(why) for why in reordering.Why}
    assert severities.pop(reordering.Why.TRANSACTION_FAILED) is Severity.WARNING
    assert set(severities.values()) == {Severity.INFO}
    assert producer_sequence_bug.RULE.severity is Severity.INFO


def textbook() -> Finding:
    [finding] = sequence_gap_loss.judge(play(TEXTBOOK)[-1]).findings(Verdict.BREACH)
    return finding


def test_a_loss_is_told_with_its_range_and_what_to_do() -> None:
    finding = textbook()
    assert finding.labels == {"cluster": "default", "topic": "orders", "partition": "0"}
    said = finding.evidence
    wanted: dict[str, Any] = {
        "class": "loss",
        "phase": "confirmed",
        "why": "loss_proven",
        "producer_id": 7,
        "producer_epoch": 0,
        "offset": 100,
        "incoming_sequence": 27,
        "current_sequence": 2,
        "gap": 24,
        "lost_from": 100,
        "lost_to": 124,
        "lost_offsets": 24,
        "at_most_records": 24,
        "appended_leader_epoch": 5,
        "appended_offset": 99,
        "episode_count": 1,
        "needed_evidence": None,
    }
    assert {name: said[name] for name in wanted} == wanted
    assert said["evidence_for"] == [
        {"fact": "24 records are missing, and up to 4 may be in flight before it"},
        {
            "fact": "the last accepted batch, up to offset 99, is of leader epoch 5, and the "
            "leader has changed since"
        },
        {
            "fact": "broker 2 became leader in epoch 6 without the committed offsets 100 to before 124",
        },
    ]
    assert said["evidence_against"] == []


def test_what_speaks_against_is_told_too() -> None:
    observations = CASES["a-large-gap-in-the-same-epoch"].observations
    [finding] = sequence_gap_reordering.judge(play(observations)[-1]).findings(Verdict.BREACH)
    assert finding.evidence["evidence_for"] == [
        {"fact": "leader epoch 5 lasted from the last accepted batch on"}
    ]
    assert finding.evidence["evidence_against"] == [
        {"fact": "497 records are missing, and up to 4 may be in flight before it"}
    ]


def test_a_retry_that_is_sent_once_more_under_a_new_epoch_is_told_again() -> None:
    batches = [batch(94 + n, n) for n in range(6)]
    observations = (
        Observation(second=0),
        Observation(second=11, lines=(rejected(0, 5),)),
        Observation(second=12, found=[found(*batches)]),
        Observation(second=13, found=[found(*batches, batch(100, 0, epoch=1))]),
        Observation(second=14, found=[found(*batches, batch(100, 0, epoch=1))]),
    )
    assert breaches(play(observations)) == [
        (2, "duplicates", "stale_retry"),
        (3, "duplicates", "resent"),
    ]


def test_two_producers_are_told_in_one_finding_the_worst_first() -> None:
    lines = (rejected(27, 2, broker=2), rejected(6, 2, broker=2, producer_id=8, offset=110))
    observations = (
        ALONE,
        replace(line_of_2(), lines=lines),
        of_2(
            12,
            found=[
                found(OLD_BATCH),
                found(batch(107, 0, 3, leader_epoch=6), producer_id=8),
            ],
        ),
    )
    view = play(observations)[-1]
    assert breaches([view]) == [(0, "loss", "lost"), (0, "reordering", "reordered")]
    third = replace(observations[1], lines=(*lines, rejected(30, 2, broker=2, producer_id=9)))
    more = replace(observations[2], found=[*observations[2].found, found(OLD_BATCH, producer_id=9)])
    [finding] = sequence_gap_loss.judge(play((ALONE, third, more))[-1]).findings(Verdict.BREACH)
    assert finding.evidence["episode_count"] == 2
    assert isinstance(finding.evidence["episodes"], list)
    assert [one["gap"] for one in finding.evidence["episodes"]] == [24, 27]
