"""What an incident comes to, in a sentence."""

from __future__ import annotations

from typing import Unpack

import pytest

from rules.loss.evidence_fields import LossEvidence
from rules.loss.summary import (
    BEYOND,
    COMMITTED,
    POSSIBLY,
    UNCLEAN,
    LossFact,
    Outcome,
    by_partition,
    count_outcomes,
    summary_of,
)
from tests.factories import at

NO_OFFSETS = "1 partition lost committed records for certain"


def fact(
    rule_id: str, reason: str, partition: str = "0", **evidence: Unpack[LossEvidence]
) -> LossFact:
    return LossFact(rule_id, {"topic": "orders", "partition": partition}, reason, evidence, at(0))


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        pytest.param(
            (fact(COMMITTED, "lost", certain_offsets=1),),
            "1 partition lost 1 offset for certain",
            id="one",
        ),
        pytest.param(
            (fact(COMMITTED, "transaction_lost", lost_transaction_count=2),),
            NO_OFFSETS,
            id="only-whole-transactions-prove-it",
        ),
        pytest.param((fact(POSSIBLY, "proven"),), NO_OFFSETS, id="proven-by-what-is-not-here"),
        pytest.param(
            (fact(COMMITTED, "lost", certain_offsets=1298), fact(UNCLEAN, "lost", "1")),
            "1 partition lost 1,298 offsets for certain, "
            "1 partition elected a replica that was not in sync",
            id="beside-an-election",
        ),
        pytest.param(
            (fact(BEYOND, "beyond"),), "1 partition may have lost records", id="read-beyond"
        ),
    ],
)
def test_no_number_is_said_that_nobody_knows(facts: tuple[LossFact, ...], expected: str) -> None:
    sentence = summary_of(by_partition(facts)).sentence
    assert sentence.split("UTC: ", 1)[1] == expected


def test_no_change_of_a_leader_is_said_that_nobody_saw() -> None:
    """A commit above the log end may be a person's: it alone tells of no leader."""
    beyond = fact(BEYOND, "beyond", beyond_by=10)
    assert summary_of(by_partition([beyond])).sentence == (
        "Commits beyond what is there were found 2025-06-02 12:00:00 UTC: "
        "1 partition may have lost records"
    )
    beside = [beyond, fact(UNCLEAN, "lost", "1", leader_before=2)]
    assert summary_of(by_partition(beside)).sentence.startswith("Broker 2 lost leadership before ")


def test_changes_that_nobody_saw_are_of_their_own_times() -> None:
    first, later = (fact(POSSIBLY, "unseen", partition) for partition in ("0", "1"))
    lines = by_partition([first, later._replace(since=at(183))])
    assert summary_of(lines).sentence == (
        "Leadership changed before 2025-06-02 12:00:00 UTC, the last before 12:03:03: "
        "2 partitions may have lost some"
    )


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        pytest.param(
            (
                fact(COMMITTED, "lost", incident="b1"),
                fact(POSSIBLY, "proven", incident="b1"),
                fact(BEYOND, "beyond", incident="b1"),
                fact(UNCLEAN, "lost", incident="b1"),
            ),
            {Outcome.LOST: 1},
            id="four-rules-report-one-loss",
        ),
        pytest.param(
            (fact(COMMITTED, "lost", incident="b1"), fact(POSSIBLY, "possible", incident="b2")),
            {Outcome.LOST: 1},
            id="two-losses-of-one-partition",
        ),
        pytest.param(
            (fact(COMMITTED, "restored", incident="b1"), fact(BEYOND, "beyond", incident="b1")),
            {Outcome.RESTORED: 1},
            id="the-records-are-back",
        ),
        pytest.param(
            (fact(COMMITTED, "restored", incident="b1"), fact(POSSIBLY, "possible", incident="b2")),
            {Outcome.MAY_BE_LOST: 1},
            id="back-and-then-another-loss",
        ),
        pytest.param(
            (fact(COMMITTED, "lost"), fact(POSSIBLY, "possible", "1"), fact(BEYOND, "beyond", "2")),
            {Outcome.LOST: 1, Outcome.MAY_BE_LOST: 1, Outcome.READ_BEYOND: 1},
            id="three-partitions",
        ),
    ],
)
def test_a_partition_counts_once_by_the_worst_that_is_known(
    facts: tuple[LossFact, ...], expected: dict[Outcome, int]
) -> None:
    assert count_outcomes(facts) == count_outcomes(reversed(facts)) == expected
