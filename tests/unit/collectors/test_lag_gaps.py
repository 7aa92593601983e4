"""Which commits above the high watermark are a gap: only those of groups that read."""

from __future__ import annotations

import pytest

from collectors.offset_gaps import gaps_of_lags
from rules.facts.gap import GapCause, GapScope
from tests.factories import commits, group, offsets, partitions


@pytest.mark.parametrize(
    ("members", "committed", "epoch", "is_gap"),
    [
        pytest.param(2, 120, None, True, id="it-reads"),
        pytest.param(None, 120, None, True, id="whether-it-reads-is-not-known"),
        pytest.param(0, 120, None, False, id="abandoned"),
        pytest.param(0, 120, 4, False, id="abandoned-with-an-epoch"),
        pytest.param(2, 120, 4, True, id="read-in-an-older-epoch"),
        pytest.param(2, 120, 5, False, id="on-an-earlier-topic"),
        pytest.param(2, 120, 9, False, id="on-an-earlier-topic-that-had-changed-its-leader"),
        pytest.param(2, 100, None, False, id="at-the-end"),
    ],
)
def test_a_commit_above_the_high_watermark_is_a_gap_of_who_reads(
    members: int | None, committed: int, epoch: int | None, *, is_gap: bool
) -> None:
    found = list(
        gaps_of_lags(
            partitions({"orders": 1}),
            (group("billing", member_count=members),),
            commits((0, 0, committed), epochs=[epoch]),
            offsets(1, leader_epoch=[5], high_watermark=[100]),
        )
    )
    assert [(one.cause, one.scope, one.group, one.topic) for one in found] == (
        [(GapCause.IMPOSSIBLE_VALUE, GapScope.OFFSETS, "billing", "orders")] if is_gap else []
    )
