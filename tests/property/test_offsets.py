"""Lags and spans: true, or absent with a reason; the order of partitions means nothing."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from collectors.offset_plan import make_plan, rows_to_follow
from rules.facts.matching import matching_rows
from rules.facts.partitions import PartitionIndex, Partitions
from service.views.snapshot_rows import partition_rows
from tests.factories import broker, commits
from tests.property.strategies import (
    TOPICS,
    Topics,
    commit_keys,
    offsets_of,
    partitions_of,
    snapshot_of,
    topics,
)

CommitKeys = dict[tuple[int, str, int], int]
Lag = int | None


@given(topics)
def test_spans_are_never_negative_where_the_order_of_offsets_holds(found: Topics) -> None:
    seen = offsets_of(found)
    for span in (seen.open_span, seen.unreplicated_span):
        assert (span.values[span.valid] >= 0).all()


def lags_of(found: Topics, keys: CommitKeys) -> dict[tuple[int, str, int], tuple[Lag, Lag, bool]]:
    """Return both lags of every commit, and whether it is told as above the high watermark."""
    index, seen = partitions_of(found).index, offsets_of(found)
    rows = {key: index.row(key[1], key[2]) for key in keys}
    unchanged = [key for key, row in rows.items() if row is not None]
    made = commits(*((key[0], rows[key] or 0, keys[key]) for key in unchanged))
    beyond = set(made.beyond_high_watermark(seen).tolist())
    both = zip(
        made.read_committed_lag(seen).to_list(),
        made.read_uncommitted_lag(seen).to_list(),
        strict=True,
    )
    return {
        key: (*lags, place in beyond)
        for place, (key, lags) in enumerate(zip(unchanged, both, strict=True))
    }


@given(topics, commit_keys)
def test_a_lag_is_the_difference_or_absent_with_a_reason(found: Topics, keys: CommitKeys) -> None:
    for (_, topic, partition), committed in keys.items():
        if topic not in found or partition >= len(found[topic].ends):
            continue
        end = found[topic].ends[partition]
        told = lags_of(found, {(0, topic, partition): committed})[0, topic, partition]
        expected = tuple(
            None if upper is None or upper < committed else upper - committed
            for upper in (end.last_stable_offset, end.high_watermark)
        )
        is_beyond = end.high_watermark is not None and committed > end.high_watermark
        assert told == (*expected, is_beyond)


@given(topics, commit_keys)
def test_reading_uncommitted_is_never_behind_less_than_reading_committed(
    found: Topics, keys: CommitKeys
) -> None:
    for committed, uncommitted, _ in lags_of(found, keys).values():
        if committed is not None and uncommitted is not None:
            assert 0 <= committed <= uncommitted


def reordered(found: Topics, order: list[str]) -> Topics:
    return {name: found[name] for name in order if name in found}


orders = st.permutations(TOPICS)


@given(topics, commit_keys, orders)
def test_lags_do_not_depend_on_the_order_of_topics(
    found: Topics, keys: CommitKeys, order: list[str]
) -> None:
    assert lags_of(reordered(found, order), keys) == lags_of(found, keys)


@given(topics, orders)
def test_what_is_shown_does_not_depend_on_the_order_of_topics(
    found: Topics, order: list[str]
) -> None:
    def shown(seen: Topics) -> dict[tuple[str, int], dict[str, Any]]:
        rows = partition_rows(snapshot_of(seen))
        return {(row["topic"], row["partition"]): row for row in rows}

    assert shown(reordered(found, order)) == shown(found)


@given(topics, orders)
def test_what_is_asked_does_not_depend_on_the_order_of_topics(
    found: Topics, order: list[str]
) -> None:
    def asked(placed: Partitions, broker_id: int) -> dict[str, list[int]]:
        follow = rows_to_follow(placed, all_replicas=False)
        plan = make_plan(broker(broker_id), placed, follow)
        return {block.topic: block.partition.tolist() for block in plan.hosted}

    for broker_id in (1, 2):
        here = asked(partitions_of(reordered(found, order)), broker_id)
        assert here == asked(partitions_of(found), broker_id)


@given(topics, topics)
def test_rows_match_where_topic_partition_and_id_do(newer: Topics, older: Topics) -> None:
    new, old = partitions_of(newer), partitions_of(older)
    for row, match in enumerate(matching_rows(new, old).tolist()):
        name = new.index.topic_partition(row)
        there = old.index.row(name.topic, name.partition)
        new_id = new.topic_id(row)
        is_same = there is not None and new_id is not None and new_id == old.topic_id(there)
        assert match == (there if is_same else -1)


@given(st.dictionaries(st.text(max_size=5), st.integers(0, 4), max_size=8))
def test_rows_and_names_are_each_others_inverse(counts: dict[str, int]) -> None:
    index = PartitionIndex.of(counts)
    names = [(topic, number) for topic, count in counts.items() for number in range(count)]
    assert [index.row(*name) for name in names] == list(range(len(index)))
    told = [index.topic_partition(row) for row in range(len(index))]
    assert [(name.topic, name.partition) for name in told] == names
    assert np.array_equal(
        index.starts[index.topic_of_row] <= np.arange(len(index)), [True] * len(index)
    )
