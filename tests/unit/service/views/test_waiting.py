"""What a group waits for on a partition: the same lag has different causes."""

from __future__ import annotations

import numpy as np
import pytest

from service.views.waiting import WaitsFor, waits_for
from tests.factories import commits, group, offsets, partitions, snapshot


@pytest.mark.parametrize(
    ("committed", "stable", "high", "nothing", "expected"),
    [
        (100, 100, 100, None, WaitsFor.NOTHING_TO_READ),
        (99, 100, 100, 1, WaitsFor.NOTHING_TO_READ),  # a marker alone
        (99, 100, 100, 0, WaitsFor.LAG),
        (50, 100, 100, None, WaitsFor.LAG),
        (50, 90, 100, None, WaitsFor.LAG),  # there is more to read before the transaction
        (90, 90, 100, None, WaitsFor.OPEN_TRANSACTION),
        (89, 90, 100, 1, WaitsFor.OPEN_TRANSACTION),
        (95, 90, 100, None, WaitsFor.LAG),  # reads uncommitted records
        (100, 90, 100, None, WaitsFor.NOTHING_TO_READ),  # likewise, and has read all
        (50, None, 100, None, WaitsFor.UNKNOWN),
        (50, 100, None, None, WaitsFor.LAG),
        (100, 100, None, None, WaitsFor.UNKNOWN),  # a transaction may be open behind it
        (120, 100, 100, None, WaitsFor.UNKNOWN),  # beyond the end: other rules judge that
    ],
)
def test_it_waits_for(
    committed: int, stable: int | None, high: int | None, nothing: int | None, expected: WaitsFor
) -> None:
    seen = snapshot(
        partitions=partitions({"orders": 1}),
        offsets=offsets(1, last_stable_offset=[stable], high_watermark=[high]),
        groups=(group(),),
        commits=commits((0, 0, committed), nothing_to_read=[nothing]),
    )
    assert waits_for(seen, np.array([0])) == [expected]
