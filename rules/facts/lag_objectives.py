"""How well each group has kept its objective of time lag: minute by minute, for six hours.

An objective is a share of the time in which a group is at most so many seconds behind. Time is measured by
rounds: each speaks for the time since the round before. What no round measured is neither kept nor late.
Source: The Site Reliability Workbook (Google), chapter 5, alerting on SLOs.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from rules.facts.column import Int64s
from rules.facts.times import SECOND_US

MINUTE_MS: Final = 60_000
MINUTE_US: Final = 60 * SECOND_US
MINUTES: Final = 361  # six hours, and the minute under way
LONGEST_STEP_US: Final = 5 * MINUTE_US  # a round does not speak for a longer time
MOST_GROUPS: Final = 1_000  # with an objective: their minutes are stored with every round

Int32s = NDArray[np.int32]


@dataclass(frozen=True, slots=True, kw_only=True)
class LagObjective:
    """An objective, and the groups and topics that it is for; a pattern has to match a whole name."""

    groups: re.Pattern[str]
    topics: re.Pattern[str] | None = None  # None: all that the group reads
    seconds: float  # behind, at most
    share: float  # of the time, below 1


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ObjectiveMemory:
    """One row per group with an objective; columns are minutes, the oldest first."""

    group_ids: tuple[str, ...] = ()
    limit_ms: tuple[int, ...] = ()  # of the objective: behind, at most
    share: tuple[float, ...] = ()
    newest: int = 0  # number of the last column's minute since 1970-01-01 UTC
    late_ms: Int32s  # (n, MINUTES) in which the group was further behind
    measured_ms: Int32s  # the same shape: in which that is known
    left_out: tuple[str, ...] = ()  # groups beyond `MOST_GROUPS`; not stored

    @classmethod
    def none(cls) -> ObjectiveMemory:
        """Return the memory of no group."""
        nothing = np.zeros((0, MINUTES), np.int32)
        return cls(late_ms=nothing, measured_ms=nothing)

    def __len__(self) -> int:
        return len(self.group_ids)

    def late_within(self, minutes: int) -> Int64s:
        """Return how long each group was late within the last minutes, in milliseconds."""
        within: Int64s = self.late_ms[:, -minutes:].sum(axis=1, dtype=np.int64)
        return within

    def measured_within(self, minutes: int) -> Int64s:
        """Return how much of the last minutes was measured, in milliseconds."""
        within: Int64s = self.measured_ms[:, -minutes:].sum(axis=1, dtype=np.int64)
        return within

    def only(self, group_ids: Collection[str]) -> ObjectiveMemory:
        """Return the rows of these groups."""
        rows = [row for row, group_id in enumerate(self.group_ids) if group_id in group_ids]
        return replace(
            self,
            group_ids=tuple(self.group_ids[row] for row in rows),
            limit_ms=tuple(self.limit_ms[row] for row in rows),
            share=tuple(self.share[row] for row in rows),
            late_ms=self.late_ms[rows],
            measured_ms=self.measured_ms[rows],
        )

    def shifted(self, by_us: int) -> ObjectiveMemory:
        """Return it with all times moved, to the minute."""
        return replace(self, newest=self.newest + round(by_us / MINUTE_US))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Measured:
    """What a round says of groups with an objective; one row each."""

    group_ids: tuple[str, ...]
    limit_ms: tuple[int, ...]
    share: tuple[float, ...]
    is_late: NDArray[np.bool_]
    is_known: NDArray[np.bool_]
    left_out: tuple[str, ...] = ()

    @classmethod
    def unknown(cls, limits: Mapping[str, tuple[int, float]]) -> Measured:
        """Return groups of which nothing was measured, with their limit and share."""
        nothing = np.zeros(len(limits), np.bool_)
        return cls(
            group_ids=tuple(limits),
            limit_ms=tuple(limit for limit, _ in limits.values()),
            share=tuple(share for _, share in limits.values()),
            is_late=nothing,
            is_known=nothing,
        )

    def __len__(self) -> int:
        return len(self.group_ids)

    def joined(self, more: Measured) -> Measured:
        """Return the rows of both."""
        return replace(
            self,
            group_ids=self.group_ids + more.group_ids,
            limit_ms=self.limit_ms + more.limit_ms,
            share=self.share + more.share,
            is_late=np.append(self.is_late, more.is_late),
            is_known=np.append(self.is_known, more.is_known),
        )


def advance_objectives(
    before: ObjectiveMemory, measured: Measured, *, now_us: int, before_us: int
) -> ObjectiveMemory:
    """Return the memory one round later.

    A group whose objective has another limit begins anew. `before_us` is when the round before began, 0 if there
    was none in this process.
    """
    kept = _rows_of(before, measured)
    after = _moved_to(kept, now_us // MINUTE_US)
    step_us = now_us - before_us if before_us else 0
    if 0 < step_us <= LONGEST_STEP_US:
        after.measured_ms[:, -1] += np.where(measured.is_known, step_us // 1000, 0).astype(np.int32)
        after.late_ms[:, -1] += np.where(measured.is_late, step_us // 1000, 0).astype(np.int32)
    return replace(after, left_out=measured.left_out)


def merge_objectives(stored: ObjectiveMemory, seen: ObjectiveMemory) -> ObjectiveMemory:
    """Add the stored minutes of an earlier process to those of this one.

    Groups that were not seen are kept: the next complete list decides whether they are gone.
    """
    limits = _limits(seen)
    for group_id, limit in _limits(stored).items():
        if len(limits) < MOST_GROUPS:
            limits.setdefault(group_id, limit)
    groups = Measured.unknown(limits)
    minute = seen.newest if len(seen) else max(seen.newest, stored.newest)
    older = _moved_to(_rows_of(stored, groups), minute)
    newer = _moved_to(_rows_of(seen, groups), minute)
    return replace(
        newer,
        late_ms=older.late_ms + newer.late_ms,
        measured_ms=older.measured_ms + newer.measured_ms,
    )


def _limits(memory: ObjectiveMemory) -> dict[str, tuple[int, float]]:
    """Return the limit and the share of each group."""
    limits = zip(memory.limit_ms, memory.share, strict=True)
    return dict(zip(memory.group_ids, limits, strict=True))


def _rows_of(memory: ObjectiveMemory, measured: Measured) -> ObjectiveMemory:
    """Return the rows of these groups; zeros where nothing is remembered for their limit."""
    keys = zip(memory.group_ids, memory.limit_ms, strict=True)
    place = {key: row for row, key in enumerate(keys)}
    wanted = zip(measured.group_ids, measured.limit_ms, strict=True)
    rows = np.array([place.get(key, -1) for key in wanted], np.int64)
    late, known = (np.zeros((len(rows), MINUTES), np.int32) for _ in range(2))
    found = rows >= 0
    late[found], known[found] = memory.late_ms[rows[found]], memory.measured_ms[rows[found]]
    return replace(
        memory,
        group_ids=measured.group_ids,
        limit_ms=measured.limit_ms,
        share=measured.share,
        late_ms=late,
        measured_ms=known,
    )


def _moved_to(memory: ObjectiveMemory, minute: int) -> ObjectiveMemory:
    """Return it with another minute as the last one; what is older than six hours is forgotten.

    A memory whose last minute is later, because the clock was set back meanwhile, ends there all the same.
    """
    by = min(max(minute - memory.newest, 0), MINUTES)

    def moved(values: Int32s) -> Int32s:
        after = np.zeros_like(values)
        after[:, : MINUTES - by] = values[:, by:]
        return after

    return replace(
        memory, newest=minute, late_ms=moved(memory.late_ms), measured_ms=moved(memory.measured_ms)
    )


def objective_of(group_id: str, objectives: Sequence[LagObjective]) -> LagObjective | None:
    """Return the first objective of a group, None if there is none."""
    return next((each for each in objectives if each.groups.fullmatch(group_id)), None)
