"""Columns that exporters show and that Tidemark's own page leaves to PromQL: counts, flags, sums, maxima."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from rules.facts.column import Bools, Column, Int64s, Ragged
from rules.facts.gap import GapScope
from rules.facts.snapshot import Snapshot
from rules.names import READ_UNCOMMITTED_LAG_SECONDS as LAG_SECONDS
from rules.names import Metric
from service.metrics.dropin.exporter import ColumnOf, ObservedRound
from service.metrics.samples import COMMIT_COLUMNS, PARTITION_COLUMNS, TIME_LAGS

Join = Callable[[Column, Int64s, int], Column]


def native(metric: Metric) -> ColumnOf:
    """Return the column that Tidemark's own metric shows."""
    of_snapshot = PARTITION_COLUMNS.get(metric) or COMMIT_COLUMNS[metric]
    return lambda seen: of_snapshot(seen.snapshot)


def leader(seen: ObservedRound) -> Column:
    """Return the broker id of each leader; absent where there is none."""
    return seen.snapshot.partitions.leader


def is_preferred(seen: ObservedRound) -> Column:
    """Return 1 where the first replica leads, 0 where another one or none does."""
    placed = seen.snapshot.partitions
    first = first_items(placed.replicas)
    leads = placed.leader.valid & (placed.leader.values == first.values)
    return Column.known(leads.astype(np.int64)).where(first.valid)


def is_under_replicated(seen: ObservedRound) -> Column:
    """Return 1 where fewer replicas are in sync than are assigned, 0 where all are."""
    placed = seen.snapshot.partitions
    is_short = placed.isr.lengths < placed.replicas.lengths
    return Column.known(is_short.astype(np.int64)).where(placed.isr.valid & placed.replicas.valid)


def first_items(lists: Ragged) -> Column:
    """Return the first item of each list; absent where it is empty or unknown."""
    has_items = lists.valid & (lists.lengths > 0)
    places = np.where(has_items, lists.starts[:-1], -1)
    return Column.known(lists.values).take(places)


def partition_counts(seen: ObservedRound) -> Column:
    """Return the number of partitions of each topic."""
    return Column.known(np.diff(seen.snapshot.partitions.index.starts))


def first_of_topic(column: Column, seen: ObservedRound) -> Column:
    """Return the value of each topic's partition 0; absent for a topic without partitions."""
    starts = seen.snapshot.partitions.index.starts
    return column.take(np.where(np.diff(starts) > 0, starts[:-1], -1))


def topic_sum(metric: Metric) -> ColumnOf:
    """Return the sum over all partitions of each topic."""
    column = native(metric)

    def of_round(seen: ObservedRound) -> Column:
        index = seen.snapshot.partitions.index
        return total(column(seen), index.topic_of_row, len(index.topics))

    return of_round


def members(seen: ObservedRound) -> Column:
    """Return the number of members of each group."""
    return Column.of(group.member_count for group in seen.snapshot.groups)


def time_lag(seen: ObservedRound) -> Column:
    """Return the time lag behind the high watermark of each commit, in microseconds."""
    if seen.lags is None:
        return Column.absent(len(seen.snapshot.commits))
    return TIME_LAGS[LAG_SECONDS](seen.lags).lag_us


def by_group_and_topic(column: ColumnOf, join: Join) -> ColumnOf:
    """Join the shown commits of each group on each topic."""

    def of_round(seen: ObservedRound) -> Column:
        subjects = seen.subjects
        parts = column(seen).take(subjects.commits)
        joined = join(parts, subjects.pair_of_commit, len(subjects.pair_groups))
        return joined.where(_whole(seen.snapshot)[subjects.pair_groups])

    return of_round


def by_group(column: ColumnOf, join: Join) -> ColumnOf:
    """Join the shown commits of each group; absent also while a topic may be missing."""

    def of_round(seen: ObservedRound) -> Column:
        snapshot, commits = seen.snapshot, seen.subjects.commits
        owner = snapshot.commits.group[commits]
        joined = join(column(seen).take(commits), owner, len(snapshot.groups))
        return joined.where(_whole(snapshot) & snapshot.placement_complete)

    return of_round


def _whole(snapshot: Snapshot) -> Bools:
    """Mark the groups of which no commit is known to be missing."""
    gaps = (gap for gap in snapshot.gaps if gap.scope is GapScope.COMMITS)
    if any(gap.group is None for gap in gaps):
        return np.zeros(len(snapshot.groups), np.bool_)
    lacking = snapshot.groups_without_commits
    return np.array([group.group_id not in lacking for group in snapshot.groups], np.bool_)


def total(parts: Column, owner: Int64s, owners: int) -> Column:
    """Return the sum of the parts of each owner; absent without parts, or if one is not known."""
    values = np.zeros(owners, np.int64)
    np.add.at(values, owner, parts.values)
    return _where_whole(values, parts, owner)


def highest(parts: Column, owner: Int64s, owners: int) -> Column:
    """Return the largest part of each owner, none being negative; absent as a sum would be."""
    values = np.zeros(owners, np.int64)
    np.maximum.at(values, owner, parts.values)
    return _where_whole(values, parts, owner)


def _where_whole(values: Int64s, parts: Column, owner: Int64s) -> Column:
    is_whole = np.zeros(len(values), np.bool_)
    is_whole[owner] = True
    is_whole[owner[~parts.valid]] = False
    return Column.known(values).where(is_whole)
