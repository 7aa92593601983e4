"""The observations that a next round will be given: which are kept, and where they belong."""

from __future__ import annotations

from collections.abc import Sequence

from rules.facts.at_risk_observations import AtRiskObservations
from rules.facts.column import Column
from rules.facts.partitions import Partitions
from tests.factories import ints, offsets, partitions, topic_id

PLACED = partitions()
Observation = tuple[int, int, int]  # row, leader epoch, high watermark


def observations(
    *rows: Observation, second: int = 0, placed: Partitions = PLACED
) -> AtRiskObservations:
    level = [mark for _, _, mark in rows]
    return AtRiskObservations(
        partitions=placed,
        row=ints(*(row for row, _, _ in rows)),
        leader_epoch=ints(*(epoch for _, epoch, _ in rows)),
        last_stable_offset=Column.of(level),
        high_watermark=Column.of(level),
        log_end_offset=Column.of(mark + 5 for mark in level),
        observed_at_us=ints(*([second * 10**6] * len(rows))),
    )


def list_rows(observations: AtRiskObservations) -> list[Observation]:
    level: Sequence[int | None] = observations.high_watermark.to_list()
    assert None not in level
    rows, epochs = observations.row.tolist(), observations.leader_epoch.tolist()
    return list(zip(rows, epochs, [mark or 0 for mark in level], strict=True))


def test_the_latest_observation_is_kept_per_partition_and_epoch() -> None:
    first = AtRiskObservations.none(PLACED).with_newer(
        observations((0, 5, 10), (1, 5, 20), second=1)
    )
    second = first.with_newer(observations((1, 5, 21), (0, 6, 12), second=2))
    assert list_rows(second) == [(0, 5, 10), (1, 5, 21), (0, 6, 12)]
    assert second.observed_at_us.tolist() == [10**6, 2 * 10**6, 2 * 10**6]
    third = second.with_newer(observations((0, 5, 11), second=3))
    assert list_rows(third) == [(1, 5, 21), (0, 6, 12), (0, 5, 11)]


def test_rows_move_along_with_their_partitions() -> None:
    moved = observations((0, 5, 10), (2, 5, 30)).over(partitions({"audit": 1, "orders": 3}))
    assert list_rows(moved) == [(1, 5, 10), (3, 5, 30)]
    same = observations((0, 5, 10))
    assert same.over(PLACED) is same


def test_observations_at_a_topic_that_is_gone_or_created_again_are_forgotten() -> None:
    again = partitions(topic_ids=(topic_id("orders", creation=1),))
    for other in (again, partitions({"audit": 3})):
        assert list_rows(observations((0, 5, 10)).over(other)) == []


def test_a_observation_that_the_round_surpassed_is_forgotten_within_its_epoch() -> None:
    seen = offsets(leader_epoch=[5, 5, 6], high_watermark=[10, 21, 40], log_end_offset=[15, 26, 45])
    before = observations((0, 5, 10), (1, 5, 20), (2, 5, 30), (1, 4, 19))
    assert list_rows(before.not_behind(seen)) == [(0, 5, 10), (2, 5, 30), (1, 4, 19)]


def test_a_observation_behind_the_log_end_alone_is_forgotten_too() -> None:
    seen = offsets(high_watermark=[10, 10, 10], log_end_offset=[15, 16, None])
    before = observations((0, 5, 10), (1, 5, 10), (2, 5, 10))
    assert list_rows(before.not_behind(seen)) == [(0, 5, 10), (2, 5, 10)]
