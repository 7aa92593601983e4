"""The window of snapshots, and which partitions are the same in two of them."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from rules.facts.gap import GapCause
from rules.facts.history import History, matching_rows
from rules.facts.partitions import Partitions
from tests.factories import at, gap, partitions, snapshot, topic_id


def test_before_the_first_round_there_is_no_latest_snapshot() -> None:
    assert History(3).latest is None


def test_only_the_newest_snapshots_are_kept_oldest_first() -> None:
    history = History(2)
    for seconds in range(4):
        history = history.with_snapshot(snapshot(taken_at=at(seconds)))
    assert [kept.taken_at for kept in history.snapshots] == [at(2), at(3)]
    assert history.latest is history.snapshots[-1]


def test_another_cluster_id_starts_an_empty_memory() -> None:
    history = History(5).with_snapshot(snapshot()).with_snapshot(snapshot(taken_at=at(1)))
    other = snapshot(cluster_id="BBBBBBBBQACAAAAAAAAAAQ", taken_at=at(2))
    assert history.with_snapshot(other).snapshots == (other,)


def test_a_history_is_not_changed_by_the_next_round() -> None:
    before = History(3).with_snapshot(snapshot())
    before.with_snapshot(snapshot(taken_at=at(1)))
    assert len(before.snapshots) == 1


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
    known, unknown = with_ids(topic_id("a"), topic_id("b")), with_ids(None, topic_id("b"))
    assert matching_rows(unknown, known).tolist() == [-1, 1]
    assert matching_rows(known, unknown).tolist() == [-1, 1]
    assert matching_rows(unknown, unknown).tolist() == [-1, 1]


def test_gaps_are_counted_by_cause() -> None:
    seen = snapshot(gaps=(gap(), gap(), gap(cause=GapCause.GONE)))
    assert seen.gaps_by_cause() == {GapCause.TIMEOUT: 2, GapCause.GONE: 1}
