"""Rows of one page are the same as those of the whole, in the order that was asked for."""

from __future__ import annotations

import numpy as np

from rules.facts.column import Ragged
from rules.facts.snapshot import Snapshot
from service.views.snapshot_rows import commit_rows, partition_rows
from tests.factories import commits, group, ints, offsets, partitions, snapshot


def busy() -> Snapshot:
    placed = partitions(
        {"audit": 1, "empty": 0, "orders": 3},
        replicas=Ragged.of([(1, 2), None, (3,), ()]),
    )
    seen = offsets(4, high_watermark=[1, 2, None, 4], replica_log_end_offsets=[11, None, 33])
    return snapshot(
        partitions=placed,
        offsets=seen,
        followed=np.array([True, True, True, False]),
        groups=(group("a"), group("b")),
        commits=commits((0, 0, 1), (0, 3, 5), (1, 1, 2), nothing_to_read=[1, None, 0]),
    )


def test_chosen_partitions_are_the_rows_of_the_whole() -> None:
    every = partition_rows(busy())
    assert [(row["topic"], row["partition"]) for row in every] == [
        ("audit", 0), ("orders", 0), ("orders", 1), ("orders", 2),
    ]  # fmt: skip
    assert partition_rows(busy(), ints(3, 0)) == [every[3], every[0]]
    assert partition_rows(busy(), ints()) == []


def test_ends_of_replicas_stay_with_their_row() -> None:
    ends = [row["replica_log_end_offsets"] for row in partition_rows(busy(), ints(2, 1, 0, 3))]
    assert ends == [{"3": 33}, None, {"1": 11, "2": None}, None]


def test_chosen_commits_are_the_rows_of_the_whole() -> None:
    every = commit_rows(busy())
    assert [place for place, _ in every] == [0, 0, 1]
    assert commit_rows(busy(), ints(2, 1)) == [every[2], every[1]]
    assert commit_rows(busy(), ints()) == []
