"""Hard cases with a tempting wrong verdict: a loss that seems healed, a reordering that seems a loss.

The stage is that of `test_classes`: producer 7 writes to orders-0.
"""

from __future__ import annotations

import pytest

from rules.catalogue import sequence_gap_loss, sequence_gap_reordering
from rules.facts.sequence_verdicts import SequenceReason
from rules.sequence.requests import questions_of
from rules.sequence.words import WORDS
from rules.verdict import Verdict
from tests.factories import at
from tests.unit.rules.sequence.case_observations import OLD_BATCH, Case, of_2
from tests.unit.rules.sequence.hard_cases import CASES, OVERTAKEN
from tests.unit.rules.sequence.stage import found, play, verdict, watched


@pytest.mark.parametrize("case", CASES.values(), ids=list(CASES))
def test_case(case: Case) -> None:
    assert verdict(*case.observations) == case.says, case.because


def test_a_confirmed_loss_is_scanned_until_its_client_has_given_up() -> None:
    queries = [*range(22, 122, 11), 131]  # and answered a second later
    observations = [
        *OVERTAKEN[:3],
        *(
            of_2(second, found=[found(OLD_BATCH)] if second - 1 in queries else ())
            for second in range(13, 400)
        ),
    ]
    views = play(observations)
    assert [view.now for view in views[2:] if questions_of(view)] == [
        at(episode) for episode in queries
    ]
    assert watched(*observations).verdict.is_confirmed


def test_a_loss_that_is_refuted_is_reported_as_a_reordering() -> None:
    """It was reported as lost at once, so that the correction has to be reported too."""
    said = [
        (view.now, finding.rule.rule_id, finding.reason)
        for view in play(OVERTAKEN)
        for rule in (sequence_gap_loss, sequence_gap_reordering)
        for finding in rule.judge(view).findings(Verdict.BREACH)
    ]
    assert said == [
        (at(12), "sequence_gap_loss", "lost"),
        (at(41), "sequence_gap_loss", "refuted"),
        (at(41), "sequence_gap_reordering", "reordered"),
    ]


def test_no_advice_to_write_again_what_a_client_may_still_send() -> None:
    for reason in (SequenceReason.LOSS_PROVEN, SequenceReason.UNCLEAN_AND_UNHEALED):
        assert "delivery.timeout.ms" in WORDS[reason].check
