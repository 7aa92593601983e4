"""Which partitions are the same in two rounds."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from rules.facts.gap import GapCause
from rules.facts.matching import matching_rows
from rules.facts.partitions import Partitions
from tests.factories import gap, partitions, snapshot, topic_id


def rows(newer: Mapping[str, int], older: Mapping[str, int]) -> list[int]:
    return [int(row) for row in matching_rows(partitions(newer), partitions(older))]


@pytest.mark.parametrize(
    ("newer", "older", "expected"),
    [
        pytest.param({"a": 2, "b": 1}, {"a": 2, "b": 1}, [0, 1, 2], id="the-same"),
        pytest.param({"b": 1, "a": 2}, {"a": 2, "b": 1}, [2, 0, 1], id="other-order"),
        pytest.param({"a": 4, "b": 1}, {"a": 2, "b": 1}, [0, 1, -1, -1, 2], id="a-grew"),
        pytest.param({"a": 1, "b": 1}, {"a": 3, "b": 1}, [0, 3], id="a-shrank"),
        pytest.param({"b": 1}, {"a": 2, "b": 1}, [2], id="a-is-gone"),
        pytest.param({"a": 2, "new": 1}, {"a": 2}, [0, 1, -1], id="new-came"),
        pytest.param({"a": 2}, {}, [-1, -1], id="nothing-before"),
        pytest.param({}, {"a": 2}, [], id="nothing-now"),
    ],
)
def test_rows_match_by_topic_and_partition(
    newer: Mapping[str, int], older: Mapping[str, int], expected: list[int]
) -> None:
    assert rows(newer, older) == expected


def with_ids(*ids: str | None) -> Partitions:
    return partitions({"a": 1, "b": 1}, topic_ids=ids)


def test_a_topic_created_again_is_another_topic() -> None:
    newer = with_ids(topic_id("a", creation=1), topic_id("b"))
    assert matching_rows(newer, partitions({"a": 1, "b": 1})).tolist() == [-1, 1]


def test_a_topic_without_an_id_matches_nothing() -> None:
    with_id, unknown = with_ids(topic_id("a"), topic_id("b")), with_ids(None, topic_id("b"))
    assert matching_rows(unknown, with_id).tolist() == [-1, 1]
    assert matching_rows(with_id, unknown).tolist() == [-1, 1]
    assert matching_rows(unknown, unknown).tolist() == [-1, 1]


def test_gaps_are_counted_by_cause() -> None:
    seen = snapshot(gaps=(gap(), gap(), gap(cause=GapCause.GONE)))
    assert seen.gaps_by_cause() == {GapCause.TIMEOUT: 2, GapCause.GONE: 1}
