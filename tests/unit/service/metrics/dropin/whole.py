"""A round of which everything is known that an exporter shows, and one with a share group in it."""

from __future__ import annotations

from dataclasses import replace

from rules.facts.column import Column, Ragged
from rules.facts.groups import GroupType
from rules.facts.snapshot import Snapshot
from tests.factories import broker, commits, group, offsets, partitions, snapshot


def whole_snapshot() -> Snapshot:
    """Return two topics, and two groups whose four commits the lags of a busy day fit."""
    return snapshot(
        brokers=(broker(1, rack="a"), broker(2, rack="b")),
        partitions=partitions(
            {"audit": 1, "orders": 3},
            leader=Column.of([1, 2, 1, 3]),
            isr=Ragged.of([(1, 2, 3), (2, 3), (1, 2, 3), (3,)]),
        ),
        offsets=offsets(
            4,
            log_start_offset=[0, 5, 7, 9],
            last_stable_offset=[90, 100, 100, 2**40],
            high_watermark=[100, 110, 100, 2**40],
        ),
        groups=(
            group("billing", group_type=GroupType.CLASSIC, protocol_type="consumer"),
            group("search", member_count=0, state="Empty", protocol_type="consumer"),
        ),
        commits=commits((0, 0, 95), (0, 1, 4), (1, 0, 80), (1, 2, 100)),
    )


def shared_snapshot() -> Snapshot:
    """Return the same with `billing` as a share group."""
    seen = whole_snapshot()
    billing, search = seen.groups
    return replace(seen, groups=(replace(billing, group_type=GroupType.SHARE), search))
