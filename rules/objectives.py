"""Measures in a round whether groups keep their objectives of time lag."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from rules.facts.column import Bools, Column, Int64s
from rules.facts.commit_memory import groups_with_hidden_commits
from rules.facts.lag_objectives import (
    MINUTES,
    MOST_GROUPS,
    LagObjective,
    Measured,
    ObjectiveMemory,
    advance_objectives,
    objective_of,
)
from rules.facts.last_observation import microseconds
from rules.facts.snapshot import Snapshot
from rules.time_lag.lags import REASONS, TimeLags, WhyAbsent
from rules.view import View

NONE: Final = -1
_BEYOND_END: Final = REASONS.index(WhyAbsent.BEYOND_END)


def with_objectives(view: View, objectives: Sequence[LagObjective]) -> View:
    """Return a view whose memory has the objectives of this round; its time lags are there already.

    A group that an incomplete list left out keeps its minutes; one that is gone begins anew.
    """
    if not objectives or view.time_lags is None:
        memory = ObjectiveMemory.none()
    else:
        before = ObjectiveMemory.none() if view.before is None else view.before.objectives
        hidden = groups_with_hidden_commits(view.snapshot, view.memory.commits)
        hidden |= view.snapshot.groups_without_commits
        measured = measure(view.snapshot, view.time_lags, objectives, hidden=hidden)
        memory = advance_objectives(
            before,
            measured.joined(_unlisted(view.snapshot, before, objectives, len(measured))),
            now_us=microseconds(view.now),
            before_us=0 if view.before is None else view.before.taken_us,
        )
    return replace(view, memory=replace(view.memory, objectives=memory))


def measure(
    snapshot: Snapshot,
    time_lags: TimeLags,
    objectives: Sequence[LagObjective],
    *,
    hidden: frozenset[str] = frozenset(),
) -> Measured:
    """Return which groups with an objective are late, and of which that is known.

    A group is late if any of its commits is; it is not late if each of them is known not to be, and
    none was hidden from this round (`hidden`, by group). A group without a commit that counts is left out.
    """
    chosen = {
        place: objective
        for place, group in enumerate(snapshot.groups)
        if (objective := objective_of(group.group_id, objectives)) is not None
    }
    commits = snapshot.offset_commits
    counts = _reads(snapshot, chosen)[commits]
    has_commits = set(snapshot.commits.group[commits][counts].tolist())
    chosen = {
        place: objective
        for place, objective in chosen.items()
        if place in has_commits or snapshot.groups[place].group_id in hidden
    }
    by_name = sorted(chosen, key=lambda place: snapshot.groups[place].group_id)
    places, left_out = by_name[:MOST_GROUPS], by_name[MOST_GROUPS:]
    row_of = np.full(len(snapshot.groups), NONE, np.int64)
    row_of[places] = np.arange(len(places))
    limit_ms = np.array([round(chosen[place].seconds * 1000) for place in places], np.int64)
    is_late, is_known = _commits(snapshot, time_lags, row_of, limit_ms)
    rows = row_of[snapshot.commits.group[commits]]
    counts &= rows >= 0
    late, known, every = (
        np.bincount(rows[counts & mask], minlength=len(places))
        for mask in (is_late[commits], is_known[commits], np.ones(len(commits), np.bool_))
    )
    group_ids = tuple(snapshot.groups[place].group_id for place in places)
    is_whole = np.array([group_id not in hidden for group_id in group_ids], np.bool_)
    return Measured(
        group_ids=group_ids,
        limit_ms=tuple(limit_ms.tolist()),
        share=tuple(chosen[place].share for place in places),
        is_late=late > 0,
        is_known=(late > 0) | ((known == every) & (every > 0) & is_whole),
        left_out=tuple(snapshot.groups[place].group_id for place in left_out),
    )


def _unlisted(
    snapshot: Snapshot, before: ObjectiveMemory, objectives: Sequence[LagObjective], count: int
) -> Measured:
    """Return the remembered groups that an incomplete list left out; nothing was measured of them."""
    if snapshot.groups_complete:
        return Measured.unknown({})
    listed = {group.group_id for group in snapshot.groups}
    is_recent = before.measured_within(MINUTES) > 0
    chosen = {
        group_id: objective
        for group_id, recent in zip(before.group_ids, is_recent.tolist(), strict=True)
        if recent
        and group_id not in listed
        and (objective := objective_of(group_id, objectives)) is not None
    }
    return Measured.unknown(
        {
            group_id: (round(objective.seconds * 1000), objective.share)
            for group_id, objective in list(chosen.items())[: MOST_GROUPS - count]
        }
    )


def lag_ms(time_lags: TimeLags) -> Column:
    """Return the time lag of each commit, or what it is at least.

    A group above the last stable offset reads uncommitted records, and is judged by them.
    """
    stable, high = time_lags.read_committed, time_lags.read_uncommitted
    reads_all = stable.why_absent == _BEYOND_END
    values = np.where(
        stable.lag_us.valid,
        stable.lag_us.values,
        np.where(reads_all, high.lag_us.values, stable.at_least_us.values),
    )
    valid = np.where(
        stable.lag_us.valid, True, np.where(reads_all, high.lag_us.valid, stable.at_least_us.valid)
    )
    return Column(values // 1000, valid)


def _commits(
    snapshot: Snapshot, time_lags: TimeLags, row_of: Int64s, limit_ms: Int64s
) -> tuple[Bools, Bools]:
    """Mark the commits that are late, and those of which it is known whether they are."""
    rows = row_of[snapshot.commits.group]
    limits = np.append(limit_ms, np.iinfo(np.int64).max)[rows]  # the last one for those without
    lag = lag_ms(time_lags)
    is_late: Bools = lag.valid & (lag.values > limits)
    is_bound = ~time_lags.read_committed.lag_us.valid & time_lags.read_committed.at_least_us.valid
    return is_late, is_late | (lag.valid & ~is_bound)


def _reads(snapshot: Snapshot, chosen: dict[int, LagObjective]) -> Bools:
    """Mark the commits on topics that the objective of their group is for."""
    commits, index = snapshot.commits, snapshot.partitions.index
    topic_of = index.topic_of_row[commits.row]
    counts = np.ones(len(commits), np.bool_)
    for objective in dict.fromkeys(chosen.values()):
        if objective.topics is None:
            continue
        has_it = np.zeros(len(snapshot.groups), np.bool_)
        has_it[[place for place, of_group in chosen.items() if of_group is objective]] = True
        matches = np.array([bool(objective.topics.fullmatch(name)) for name in index.topics])
        of_objective = has_it[commits.group]
        counts[of_objective] = matches[topic_of[of_objective]]
    return counts
