"""When the next round is made before its time: a question whose answer may go on or be wiped."""

from __future__ import annotations

import pytest

from rules.catalogue.all_rules import Judged
from rules.catalogue.committed_records_lost import RULE, Why
from rules.facts.gap import Gap, GapScope
from rules.facts.identity import TopicPartition
from rules.judgement import NamedSubjects, decide
from rules.question import BatchesQuestion, BatchRequest
from rules.verdict import Verdict
from service.observe.watch import WatchedRound
from tests.factories import NOON, gap, snapshot

ASKED = BatchesQuestion(
    (BatchRequest(name=TopicPartition("orders", 0), producer_id=7, offset=100, sequence=2),)
)


@pytest.mark.parametrize(
    ("gaps", "is_early"),
    [
        pytest.param((), True, id="asked"),
        pytest.param((gap(scope=GapScope.BATCHES),), False, id="rejected"),
        pytest.param((gap(scope=GapScope.EPOCHS),), True, id="something-else-is-rejected"),
    ],
)
def test_batches_that_a_rule_asks_for_are_worth_a_round_unless_they_are_rejected(
    gaps: tuple[Gap, ...], *, is_early: bool
) -> None:
    judgement = decide(
        RULE,
        NamedSubjects(RULE.subject, ()),
        (),
        (Verdict.OK, Why.FIRST_OBSERVATION),
        questions=(ASKED,),
    )
    made = WatchedRound(
        at=NOON, snapshot=snapshot(gaps=gaps), judged=Judged(judgements=(judgement,))
    )
    assert made.next_is_early is is_early
