"""Decides which partitions and groups get series, so that a page stays small enough to scrape.

Partitions and groups are shown or left out whole, in the order of their names, so that the same
cluster always shows the same series. A series counts whether or not its value is known just now:
otherwise subjects would come and go with every answer that is missing.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

import numpy as np

from rules.facts.column import Bools, Int64s
from rules.facts.snapshot import Snapshot
from rules.names import COMMIT_METRICS, GROUP_METRICS, PARTITION_METRICS

DEFAULT_MAX_SERIES: Final = 500_000


class DropReason(StrEnum):
    """Why a series was left out; the first reason that applies, in this order."""

    TOPIC_PATTERN = "topic_pattern"
    GROUP_PATTERN = "group_pattern"
    LIMIT = "limit"


@dataclass(frozen=True, slots=True, kw_only=True)
class NamePatterns:
    """The names that are shown: all that fully match `allow` and do not fully match `deny`."""

    allow: re.Pattern[str] | None = None  # None: every name
    deny: re.Pattern[str] | None = None  # None: no name

    def shows(self, name: str) -> bool:
        """Return whether a name is shown."""
        if self.deny is not None and self.deny.fullmatch(name):
            return False
        return self.allow is None or self.allow.fullmatch(name) is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class SeriesLimits:
    """Limits on series. Tidemark's own few series are always shown and do not count."""

    max_series: int = DEFAULT_MAX_SERIES
    topics: NamePatterns = NamePatterns()
    groups: NamePatterns = NamePatterns()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Selection:
    """The rows, groups and commits that are shown, each ascending, and the series left out by reason."""

    rows: Int64s
    groups: Int64s
    commits: Int64s
    dropped: Mapping[DropReason, int]  # series; every reason has a number
    spare: int  # series that the limit still allows


def select(snapshot: Snapshot, limits: SeriesLimits) -> Selection:
    """Choose the series: partitions first, then groups that still fit, with their commits."""
    commits = snapshot.commits
    row_ok = _allowed_rows(snapshot, limits.topics)
    group_ok = _mask([limits.groups.shows(group.group_id) for group in snapshot.groups])
    topic_ok = row_ok[commits.row]
    commit_ok = topic_ok & group_ok[commits.group]
    kept_rows = _fitting_rows(snapshot, row_ok, limits.max_series)
    left = limits.max_series - _series(rows=int(kept_rows.sum()))
    kept_groups = _fitting_groups(snapshot, group_ok, commit_ok, left)
    kept_commits = commit_ok & kept_groups[commits.group]
    left -= _series(groups=_count(kept_groups), commits=_count(kept_commits))
    return Selection(
        spare=left,
        rows=np.flatnonzero(kept_rows),
        groups=np.flatnonzero(kept_groups),
        commits=np.flatnonzero(kept_commits),
        dropped={
            DropReason.TOPIC_PATTERN: _series(rows=_count(~row_ok), commits=_count(~topic_ok)),
            DropReason.GROUP_PATTERN: _series(
                groups=_count(~group_ok), commits=_count(topic_ok & ~commit_ok)
            ),
            DropReason.LIMIT: _series(
                rows=_count(row_ok & ~kept_rows),
                groups=_count(group_ok & ~kept_groups),
                commits=_count(commit_ok & ~kept_commits),
            ),
        },
    )


def _allowed_rows(snapshot: Snapshot, topics: NamePatterns) -> Bools:
    index = snapshot.partitions.index
    return _mask([topics.shows(topic) for topic in index.topics])[index.topic_of_row]


def _fitting_rows(snapshot: Snapshot, allowed: Bools, budget: int) -> Bools:
    """Keep allowed rows by topic name and partition, as many as fit whole."""
    index = snapshot.partitions.index
    rank = np.zeros(len(index.topics), np.int64)
    rank[_order(index.topics)] = np.arange(len(index.topics))
    rows = np.flatnonzero(allowed)
    by_name = rows[np.argsort(rank[index.topic_of_row[rows]], kind="stable")]
    fitting = np.zeros(len(allowed), np.bool_)
    fitting[by_name[: max(0, budget) // len(PARTITION_METRICS)]] = True
    return fitting


def _fitting_groups(
    snapshot: Snapshot, allowed: Bools, commit_allowed: Bools, budget: int
) -> Bools:
    """Keep allowed groups by name while they fit; one too large does not hide those behind it."""
    counts = np.bincount(snapshot.commits.group[commit_allowed], minlength=len(allowed)).tolist()
    fitting = np.zeros(len(allowed), np.bool_)
    for position in _order([group.group_id for group in snapshot.groups]):
        needed = _series(groups=1, commits=counts[position])
        if allowed[position] and needed <= budget:
            fitting[position] = True
            budget -= needed
    return fitting


def _order(names: Sequence[str]) -> list[int]:
    return sorted(range(len(names)), key=names.__getitem__)


def _series(*, rows: int = 0, groups: int = 0, commits: int = 0) -> int:
    return (
        rows * len(PARTITION_METRICS) + groups * len(GROUP_METRICS) + commits * len(COMMIT_METRICS)
    )


def _mask(flags: Sequence[bool]) -> Bools:
    return np.array(flags, np.bool_)


def _count(mask: Bools) -> int:
    return int(np.count_nonzero(mask))
