"""Cases of lost records: what the last observation saw, what the new leader has, what has to be said.

Broker 1 led in epoch 5 with all three offsets at 100; soon broker 2 leads.
"""

from __future__ import annotations

from typing import Final

import pytest

from tests.factories import epoch_ends
from tests.unit.rules.catalogue.election_cases import ELECTIONS, Case
from tests.unit.rules.catalogue.loss_observations import BREACH, RULES, said
from tests.unit.rules.catalogue.restart_cases import RESTARTS

CASES: Final = ELECTIONS | RESTARTS


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("case", CASES.values(), ids=list(CASES))
def test_case(case: Case, rule: str) -> None:
    found = said(RULES[rule], *case.observations)
    is_breach = found.verdict is BREACH
    assert (found.reason if is_breach else None) == case.breaches.get(rule), case.because


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("case", CASES.values(), ids=list(CASES))
def test_an_end_that_is_told_a_round_later_says_the_same(case: Case, rule: str) -> None:
    """A restart, a request that failed, or too many changes at once: the answer may come late."""
    *before, last = case.observations
    if len(before) > 1 and before[-1] is last:
        return  # it was told before
    found = said(RULES[rule], *before, last | {"epoch_ends": epoch_ends()}, last)
    reason = found.reason if found.verdict is BREACH else None
    assert reason == case.breaches.get(rule), case.because
