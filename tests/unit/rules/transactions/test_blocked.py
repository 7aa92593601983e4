"""Whom a transaction holds up: the same answer however the commits are ordered."""

from __future__ import annotations

import numpy as np
import pytest

from rules.facts.groups import GroupType
from rules.transactions.blocked import CommitsByRow, blocked_groups
from tests.factories import commits, group, offsets, snapshot

SEEN = snapshot(
    offsets=offsets(3, high_watermark=[100, 100, None]),
    groups=(group("a"), group("b"), group("c"), group("s", group_type=GroupType.SHARE)),
    # Not in the order of partitions, and the last one has no known end.
    commits=commits(
        (0, 1, 40), (1, 0, 90), (2, 2, 10), (0, 0, 50), (3, 0, 10), (2, 1, 95), (1, 1, 95)
    ),
)


@pytest.mark.parametrize("start_offset", [0, 40, 50, 90, 95])
@pytest.mark.parametrize("row", range(3))
def test_sorted_commits_tell_what_a_search_through_all_tells(row: int, start_offset: int) -> None:
    by_row = CommitsByRow(SEEN)
    told = blocked_groups(SEEN, row, start_offset)
    assert by_row.blocked_groups(row, start_offset) == told
    names = {one.group_id for one in told}
    for place, one in enumerate(SEEN.groups):
        asked = np.arange(len(SEEN.groups)) == place
        is_blocked = by_row.are_blocked(row, start_offset, asked)
        assert is_blocked is (one.group_id in names), one.group_id


def test_those_that_wait_come_first_and_share_groups_have_no_position() -> None:
    assert [(one.group_id, one.is_waiting) for one in blocked_groups(SEEN, 0, 90)] == [
        ("b", True), ("a", False),
    ]  # fmt: skip
