"""Which gaps of a round say why an episode's partition was not scanned."""

from __future__ import annotations

from typing import Any

import pytest

from rules.facts.gap import GapCause, GapScope
from tests.factories import gap
from tests.unit.rules.sequence.case_observations import ALONE, line_of_2, of_2
from tests.unit.rules.sequence.stage import verdict


@pytest.mark.parametrize(
    ("of", "reason"),
    [
        pytest.param({}, "not_readable", id="of-nobody-knows-which"),
        pytest.param({"topic": "orders"}, "not_readable", id="of-its-topic"),
        pytest.param({"topic": "orders", "partition": 0}, "not_readable", id="its-own"),
        pytest.param(
            {"topic": "orders", "partition": 1}, "scan_pending", id="of-another-partition"
        ),
        pytest.param({"topic": "payments"}, "scan_pending", id="of-another-topic"),
    ],
)
def test_only_a_gap_of_its_own_says_why_it_was_not_observed(
    of: dict[str, Any], reason: str
) -> None:
    missing = gap(scope=GapScope.BATCHES, cause=GapCause.NOT_AUTHORIZED, **of)
    observations = (of_2(12 + n, gaps=(missing,)) for n in range(4))
    assert verdict(ALONE, line_of_2(), *observations) == ("loss", "suspected", reason)
