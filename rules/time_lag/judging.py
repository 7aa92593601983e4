"""The time lag of every commit of a round, computed from the history of ends.

What counts is the oldest unread offset that still exists: the committed offset, or the log start offset
where records expired before they were read. Markers alone are nothing to read.
"""

from __future__ import annotations

import numpy as np

from rules.facts.column import Bools, Column, Int64s
from rules.facts.groups import Commits
from rules.facts.snapshot import Snapshot
from rules.question import SMALL_LAG
from rules.time_lag.ends import EndHistory
from rules.time_lag.lags import PRESENT, REASONS, TimeLag, TimeLags, WhyAbsent
from rules.time_lag.passed import find_passed


def time_lags(history: EndHistory, snapshot: Snapshot) -> TimeLags:
    """Return the time lags of a round; `history` holds its observation already, as the last one."""
    commits, offsets = snapshot.commits, snapshot.offsets
    nothing, hidden = commits.nothing_to_read.values > 0, commits.scan_failed
    stable = commits.read_committed_lag(offsets)
    # Before the high watermark, a single remaining offset is known to be a marker.
    is_one = _is_at_most(commits.read_uncommitted_lag(offsets), 1)
    return TimeLags(
        read_committed=_lags(
            history,
            snapshot,
            end=offsets.last_stable_offset,
            first_track=len(history.partitions),
            nothing=nothing,
            doubtful=hidden & _is_at_most(stable, SMALL_LAG),
        ),
        read_uncommitted=_lags(
            history,
            snapshot,
            end=offsets.high_watermark,
            first_track=0,
            nothing=nothing & is_one,
            doubtful=hidden & is_one,
        ),
    )


def _lags(  # noqa: PLR0913 - one isolation level, each of its columns by name
    history: EndHistory,
    snapshot: Snapshot,
    *,
    end: Column,
    first_track: int,
    nothing: Bools,
    doubtful: Bools,
) -> TimeLag:
    commits = snapshot.commits
    ends, unread = end.take(commits.row), _oldest_unread(commits, snapshot)
    beyond = ends.valid & (commits.committed_offset > ends.values)
    shared = np.ones(len(commits), np.bool_)
    shared[snapshot.offset_commits] = False
    seen = ends.valid & ~beyond & ~shared
    is_read = seen & ((unread >= ends.values) | nothing)
    places = np.flatnonzero(seen & ~is_read & ~doubtful)
    passed = find_passed(history, commits.row[places] + first_track, unread[places])
    lag, within = np.zeros(len(commits), np.int64), np.zeros(len(commits), np.int64)
    lag[places] = np.where(passed.is_known, history.now_us - passed.at_us, 0)
    within[places] = passed.within_us
    older = np.zeros(len(commits), np.bool_)
    older[places] = ~passed.is_known
    why = np.full(len(commits), PRESENT, np.int8)
    for reason, where in (
        (WhyAbsent.PERHAPS_NOTHING_TO_READ, seen & ~is_read & doubtful),
        (WhyAbsent.OLDER_THAN_HISTORY, older),
        (WhyAbsent.BEYOND_END, beyond),
        (WhyAbsent.END_UNKNOWN, ~ends.valid),
        (WhyAbsent.SHARE_GROUP, shared),
    ):
        why[where] = REASONS.index(reason)
    at_least = history.now_us - history.first_us[commits.row + first_track]
    return TimeLag(
        lag_us=Column(lag, why == PRESENT),
        within_us=within,
        at_least_us=Column(np.where(older, at_least, 0), older),
        why_absent=why,
    )


def _oldest_unread(commits: Commits, snapshot: Snapshot) -> Int64s:
    """Return the first offset that is not read and not expired."""
    log_start = snapshot.offsets.log_start_offset.take(commits.row)
    return np.maximum(commits.committed_offset, log_start.values)  # 0 where it is not known


def _is_at_most(lag: Column, most: int) -> Bools:
    at_most: Bools = lag.valid & (lag.values <= most)
    return at_most
