"""Limits leave partitions and groups out whole, always the same ones, and say how much is gone."""

from __future__ import annotations

import re
from collections.abc import Mapping

import pytest

from rules.facts.snapshot import Snapshot
from service.metrics.selection import DropReason, NamePatterns, SeriesLimits, select
from tests.factories import commits, group, partitions, snapshot
from tests.unit.service.metrics.reading import labelled, rendered

PER_ROW, PER_GROUP, PER_COMMIT = 12, 2, 6


def seen() -> Snapshot:
    """Two topics out of order, three groups out of order: 5 rows, 4 commits."""
    return snapshot(
        partitions=partitions({"orders": 3, "audit": 2}),
        groups=(group("search"), group("billing"), group("pager")),
        commits=commits((0, 0, 9), (0, 3, 9), (1, 0, 9), (2, 4, 9)),
    )


def dropped(limits: SeriesLimits) -> Mapping[DropReason, int]:
    return select(seen(), limits).dropped


def drops(*, topic: int = 0, group: int = 0, limit: int = 0) -> dict[DropReason, int]:
    return {
        DropReason.TOPIC_PATTERN: topic,
        DropReason.GROUP_PATTERN: group,
        DropReason.LIMIT: limit,
    }


def test_without_limits_everything_is_shown() -> None:
    chosen = select(seen(), SeriesLimits())
    assert chosen.rows.tolist() == [0, 1, 2, 3, 4]
    assert chosen.groups.tolist() == [0, 1, 2]
    assert chosen.commits.tolist() == [0, 1, 2, 3]
    assert chosen.dropped == drops()


def test_a_denied_topic_takes_its_commits_with_it() -> None:
    chosen = select(seen(), SeriesLimits(topics=NamePatterns(deny=re.compile("audit"))))
    assert chosen.rows.tolist() == [0, 1, 2]
    assert chosen.groups.tolist() == [0, 1, 2]
    assert chosen.commits.tolist() == [0, 2]
    assert chosen.dropped == drops(topic=2 * PER_ROW + 2 * PER_COMMIT)


def test_a_group_that_is_not_allowed_takes_its_commits_with_it() -> None:
    chosen = select(seen(), SeriesLimits(groups=NamePatterns(allow=re.compile("b.*|pager"))))
    assert chosen.groups.tolist() == [1, 2]
    assert chosen.commits.tolist() == [2, 3]
    assert chosen.dropped == drops(group=PER_GROUP + 2 * PER_COMMIT)


def test_a_series_that_two_patterns_leave_out_is_counted_once() -> None:
    limits = SeriesLimits(
        topics=NamePatterns(deny=re.compile("audit")),
        groups=NamePatterns(deny=re.compile("search")),
    )
    assert dropped(limits) == drops(
        topic=2 * PER_ROW + 2 * PER_COMMIT, group=PER_GROUP + PER_COMMIT
    )


@pytest.mark.parametrize(
    ("allow", "deny", "name", "expected"),
    [
        pytest.param(None, None, "orders", True, id="no patterns"),
        pytest.param("orders", None, "orders", True, id="allowed"),
        pytest.param("order", None, "orders", False, id="patterns match whole names"),
        pytest.param(None, "orders", "orders", False, id="denied"),
        pytest.param(None, "order", "orders", True, id="denied is another name"),
        pytest.param("orders", "o.*", "orders", False, id="deny wins"),
    ],
)
def test_patterns(allow: str | None, deny: str | None, name: str, *, expected: bool) -> None:
    patterns = NamePatterns(
        allow=None if allow is None else re.compile(allow),
        deny=None if deny is None else re.compile(deny),
    )
    assert patterns.shows(name) is expected


def test_partitions_come_first_in_the_order_of_their_names() -> None:
    chosen = select(seen(), SeriesLimits(max_series=3 * PER_ROW + 1))
    assert chosen.rows.tolist() == [0, 3, 4]  # audit-0, audit-1, orders-0
    assert chosen.groups.tolist() == []
    everything_else = 2 * PER_ROW + 3 * PER_GROUP + 4 * PER_COMMIT
    assert chosen.dropped == drops(limit=everything_else)


def test_groups_that_fit_are_shown_whole_in_the_order_of_their_names() -> None:
    room = 5 * PER_ROW + 2 * (PER_GROUP + PER_COMMIT)
    chosen = select(seen(), SeriesLimits(max_series=room + 1))
    assert chosen.groups.tolist() == [1, 2]  # billing, pager
    assert chosen.commits.tolist() == [2, 3]
    assert chosen.dropped == drops(limit=PER_GROUP + 2 * PER_COMMIT)


def test_a_group_too_large_does_not_hide_the_smaller_ones_behind_it() -> None:
    wide = snapshot(
        groups=(group("a-wide"), group("narrow")),
        commits=commits((0, 0, 9), (0, 1, 9), (0, 2, 9), (1, 0, 9)),
    )
    room = 3 * PER_ROW + PER_GROUP + PER_COMMIT
    chosen = select(wide, SeriesLimits(max_series=room))
    assert chosen.groups.tolist() == [1]
    assert chosen.commits.tolist() == [3]


@pytest.mark.parametrize("max_series", [-1, 0, PER_GROUP - 1])
def test_too_small_a_limit_shows_no_subject(max_series: int) -> None:
    chosen = select(seen(), SeriesLimits(max_series=max_series))
    assert not len(chosen.rows)
    assert not len(chosen.commits)


def test_the_order_of_the_answer_does_not_matter() -> None:
    turned = snapshot(
        partitions=partitions({"audit": 2, "orders": 3}),
        groups=(group("pager"), group("billing"), group("search")),
        commits=commits((2, 2, 9), (2, 0, 9), (1, 2, 9), (0, 1, 9)),
    )
    limits = SeriesLimits(max_series=4 * PER_ROW + PER_GROUP + PER_COMMIT)
    one, other = rendered(seen(), limits=limits), rendered(turned, limits=limits)
    assert one == other


def test_what_is_left_out_is_told_and_the_rest_is_unchanged() -> None:
    limits = SeriesLimits(topics=NamePatterns(deny=re.compile("audit")))
    found = rendered(seen(), limits=limits)
    assert labelled(found, "tidemark_series_dropped", "reason") == {
        ("topic_pattern",): 2.0 * PER_ROW + 2 * PER_COMMIT,
        ("group_pattern",): 0.0,
        ("limit",): 0.0,
    }
    shown = labelled(found, "tidemark_kafka_group_committed_offset", "group", "topic", "partition")
    assert shown == {("search", "orders", "0"): 9.0, ("billing", "orders", "0"): 9.0}
