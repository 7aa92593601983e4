"""Commits as rows, without duplicates and without sentinels."""

from __future__ import annotations

from dataclasses import replace

import pytest

from collectors.commit_rows import CommitRows
from collectors.session import Session
from collectors.wire.blocks import GroupBlock, TopicBlock
from rules.facts.gap import GapCause, GapScope
from tests.factories import broker, group, ints, partitions
from tests.unit.collectors.fake_pool import session_of

# (partition, error, offset, leader epoch)
Entry = tuple[int, int, int, int]


@pytest.fixture
def rows() -> CommitRows:
    groups = [group("billing"), group("shipping")]
    return CommitRows(groups, partitions({"audit": 1, "orders": 3, "payments": 2}))


@pytest.fixture
def session() -> Session:
    return session_of(broker())


def topic(name: str, *entries: Entry) -> TopicBlock:
    partition, error, offset, epoch = zip(*entries, strict=True)
    return TopicBlock(name, ints(*partition), ints(*error), ints(*offset), ints(*epoch))


def put(rows: CommitRows, group_id: str, *topics: TopicBlock) -> None:
    rows.put(GroupBlock(group_id, topics, 0))


def committed(rows: CommitRows) -> list[tuple[int, int, int]]:
    commits = rows.done()
    columns = (commits.group, commits.row, commits.committed_offset)
    return list(zip(*(column.tolist() for column in columns), strict=True))


def test_commits_stand_at_their_group_and_row_in_order(rows: CommitRows) -> None:
    put(rows, "shipping", topic("orders", (2, 0, 30, 5), (0, 0, 10, 5)))
    put(rows, "billing", topic("payments", (1, 0, 7, 5)), topic("audit", (0, 0, 3, 5)))
    assert committed(rows) == [(0, 0, 3), (0, 5, 7), (1, 1, 10), (1, 3, 30)]


def test_a_reported_lag_is_unknown_where_the_broker_does_not_know_it(rows: CommitRows) -> None:
    starts = topic("orders", (0, 0, 4, 0), (1, 0, 4, 0), (2, 0, -1, 0))
    put(rows, "billing", replace(starts, lag=ints(3, -1, -1)))
    put(rows, "shipping", topic("orders", (0, 0, 10, 5)))
    commits = rows.done()
    assert commits.reported_lag.to_list() == [3, None, None]
    assert commits.has_reported_lag.tolist() == [True, True, False]


def test_a_commit_that_came_twice_is_kept_once_and_counted(rows: CommitRows) -> None:
    put(rows, "billing", topic("orders", (1, 0, 11, 5), (1, 0, 11, 5), (2, 0, 12, 5)))
    put(rows, "billing", topic("orders", (1, 0, 11, 5)))
    assert committed(rows) == [(0, 2, 11), (0, 3, 12)]
    assert rows.duplicates == 2


def test_the_same_partition_of_two_groups_is_no_duplicate(rows: CommitRows) -> None:
    put(rows, "billing", topic("orders", (1, 0, 11, 5)))
    put(rows, "shipping", topic("orders", (1, 0, 22, 5)))
    assert committed(rows) == [(0, 2, 11), (1, 2, 22)]
    assert rows.duplicates == 0


def test_minus_one_is_no_commit_and_zero_is_one(rows: CommitRows) -> None:
    put(rows, "billing", topic("orders", (0, 0, -1, -1), (1, 0, 0, 0)))
    assert committed(rows) == [(0, 2, 0)]


def test_a_commit_without_an_epoch_has_none(rows: CommitRows) -> None:
    put(rows, "billing", topic("orders", (0, 0, 5, -1), (1, 0, 6, 0), (2, 0, 7, 9)))
    commits = rows.done()
    assert commits.committed_leader_epoch.to_list() == [None, 0, 9]
    assert commits.committed_leader_epoch.values.tolist() == [0, 0, 9]
    assert commits.nothing_to_read.to_list() == [None, None, None]


@pytest.mark.parametrize("partition", [3, 4, 99, -1])
def test_a_commit_behind_the_end_of_its_topic_is_not_taken_for_the_next_topics(
    partition: int, rows: CommitRows
) -> None:
    put(rows, "billing", topic("orders", (partition, 0, 5, 1), (0, 0, 6, 1)))
    assert committed(rows) == [(0, 1, 6)]
    assert rows.duplicates == 0


def test_without_blocks_there_are_no_commits(rows: CommitRows) -> None:
    assert committed(rows) == []
    assert rows.duplicates == 0


def test_a_partition_with_an_error_is_a_gap_not_a_commit(
    rows: CommitRows, session: Session
) -> None:
    put(rows, "billing", topic("orders", (0, 29, -1, -1), (1, 0, 6, 1), (2, 29, 4, 1)))
    assert committed(rows) == [(0, 2, 6)]
    rows.report(session, all_topics=True)
    (gap,) = session.gaps
    assert gap.what == "commits of group billing for 2 partitions of orders"
    assert (gap.cause, gap.group, gap.topic) == (GapCause.NOT_AUTHORIZED, "billing", "orders")
    assert gap.scope is GapScope.COMMITS


def test_commits_for_a_topic_that_is_not_there_are_one_gap(
    rows: CommitRows, session: Session
) -> None:
    put(rows, "billing", topic("deleted", (0, 0, 6, 1)))
    put(rows, "shipping", topic("deleted", (0, 0, 7, 1)))
    assert committed(rows) == []
    rows.report(session, all_topics=True)
    (gap,) = session.gaps
    assert gap.what == "offsets of topic deleted, for which billing, shipping committed"
    assert (gap.cause, gap.scope) == (GapCause.GONE, GapScope.OFFSETS), "its commits were seen"


def test_commits_outside_the_filter_are_no_gap(rows: CommitRows, session: Session) -> None:
    put(rows, "billing", topic("elsewhere", (0, 0, 6, 1)))
    rows.report(session, all_topics=False)
    assert session.gaps == []
