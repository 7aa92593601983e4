"""A group is behind for more of the time than its objective allows.

Detects:
    Groups that use up what their objective of time lag allows too fast: within the last hour and
    the last 5 minutes, or within the last 6 hours and the last 30 minutes. One finding per group. It is
    critical where the last hour uses it up, and the lag of one of its partitions was unusual for the
    time within that hour (rule consumer_lag_unusual); else a warning.

Why it matters:
    What the pipeline has promised its users, such as "99 % of the time at most 60 s behind", is
    about to be broken. A lag that comes and goes is reported as well as one that stays, and one
    short peak is not.

Inputs:
    The time lag of each commit (its oldest unread offset has been readable for so long), from the
    offset history, by read_committed; groups above the last stable offset are judged by
    read_uncommitted. The objectives of the settings, `[[lag.objectives]]`: a group without one is
    not judged, nor is one without a commit on the objective's topics, or a share group. Time between rounds that are more than 5 minutes apart is not measured, nor is time
    in which the lag of one of the group's commits is not known and none is late. Minutes are kept
    across restarts. What is unusual comes from the rounds before; without a baseline run nothing is. A lag
    that is not measured or scored any more counts as unusual for an hour.

Thresholds:
    With an objective of 99 % the budget is 1 % of the time. The rule fires where the last hour used
    it up 14.4 times as fast as it lasts, and the last 5 minutes did so too; or the last 6 hours
    6 times as fast, and the last 30 minutes too. In a month that is 2 % of the budget in an hour,
    and 5 % in 6 hours. It never takes more than 90 % of a window, so that an objective of 80 % can be
    missed too. The long window counts as kept where nothing was measured; of the short one half
    has to be measured, of the 30 minutes only where the last 6 hours used it up too fast. A group
    without members for 7 days, or since it was first observed, is reported as info.

False positives:
    An objective that the group never kept: the dashboard of groups shows what is usual, and what is
    usual is no more than a warning. Planned work: silence the group.

Runbook:
    `tidemark collect --once --groups GROUP` shows where the group is behind: on one partition (a
    poison record, a slow member), on all of them (too few members, a slow sink), or because the
    last stable offset does not move (rules last_stable_offset_stuck and
    read_committed_consumers_blocked). `abandoned`: delete the group. `not_measured`: the history of end offsets has just begun, or
    the gaps of the round say what could not be read.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Final

import numpy as np
from numpy.typing import NDArray

from rules.baseline.series import Metric
from rules.by_group import SHOWN
from rules.catalogue.consumer_group_stalled import ABANDONED_AFTER
from rules.evidence import Evidence, Scalar
from rules.facts.column import Bools, Column, Int64s
from rules.facts.lag_objectives import MINUTE_MS, ObjectiveMemory
from rules.judgement import Case, GroupSubjects, Judgement, Reason, decide
from rules.objectives import lag_ms
from rules.owners import owners_evidence
from rules.unusual import were_unusual
from rules.verdict import Kind, RuleMeta, Severity, SubjectKind, Verdict
from rules.view import View

Float64s = NDArray[np.float64]

MOST_SHARE: Final = 0.9  # of a window that has to be late, whatever the objective


class Why(Reason):
    """Reasons of this rule."""

    BURNS_FAST_AND_UNUSUAL = "burns_fast_and_unusual"  # in the last hour, and its lag was unusual
    BURNS_FAST = "burns_fast"  # in the last hour
    BURNS = "burns"  # in the last six hours
    ABANDONED = "abandoned"  # no member for a week, or since the group was first observed
    NOT_MEASURED = "not_measured"
    TOO_MANY_GROUPS = "too_many_groups"  # with objectives: the first 1,000 by name are judged
    KEPT = "kept"


RULE: Final = RuleMeta(
    rule_id="lag_objective_burning",
    subject=SubjectKind.GROUP,
    kind=Kind.STATE,
    severity=Severity.CRITICAL,
    milder=(
        (Why.BURNS_FAST, Severity.WARNING),
        (Why.BURNS, Severity.WARNING),
        (Why.ABANDONED, Severity.INFO),
    ),
    summary="A group is behind for more of the time than its objective allows.",
)


@dataclass(frozen=True, slots=True)
class _Window:
    """A long window, the short one that ends with it, and how fast the budget may be used up."""

    minutes: int
    short: int  # minutes
    factor: float

    def burns(self, memory: ObjectiveMemory) -> Bools:
        """Mark the groups that use up their budget too fast in both windows."""
        short = memory.measured_within(self.short)
        is_short = memory.late_within(self.short) >= self._least(memory) * short
        burns: Bools = self.is_long_over(memory) & is_short & self.is_measured(memory)
        return burns

    def is_long_over(self, memory: ObjectiveMemory) -> Bools:
        """Mark the groups that used up their budget too fast in the long window."""
        least = self._least(memory) * self.minutes * MINUTE_MS
        is_over: Bools = memory.late_within(self.minutes) >= least
        return is_over

    def is_measured(self, memory: ObjectiveMemory) -> Bools:
        """Mark the groups of which half of the short window is measured."""
        measured: Bools = 2 * memory.measured_within(self.short) >= self.short * MINUTE_MS
        return measured

    def _least(self, memory: ObjectiveMemory) -> Float64s:
        """Return the share of a window that has to be late."""
        return np.minimum(self.factor * (1 - np.array(memory.share, np.float64)), MOST_SHARE)


HOUR: Final = _Window(60, 5, 14.4)
SIX_HOURS: Final = _Window(360, 30, 6.0)


def judge(view: View) -> Judgement:
    """Judge every group that has an objective."""
    snapshot = view.snapshot
    place_of = {group.group_id: place for place, group in enumerate(snapshot.groups)}
    memory = view.memory.objectives.only(place_of)
    names = [*memory.group_ids, *memory.left_out]
    places = np.array([place_of[name] for name in names], np.int64)
    more = len(memory.left_out)

    def with_more(mask: Bools, *, value: bool = False) -> Bools:
        return np.append(mask, np.full(more, value))

    fast, slow = HOUR.burns(memory), SIX_HOURS.burns(memory)
    is_left_out = with_more(np.zeros(len(memory), np.bool_), value=True)
    lag = _worst_lag(view, places)
    # A lag that comes and goes is unusual, and then not, every quarter of an hour: that is one alert.
    is_unusual = were_unusual(
        view,
        Metric.READ_COMMITTED_LAG_SECONDS,
        places,
        with_more(fast | slow),
        within=timedelta(minutes=HOUR.minutes),
    )

    def details(position: int) -> Evidence:
        if position >= len(memory):
            return {}
        return {
            **_details(memory, position),
            "lag_was_unusual": bool(is_unusual[position]),
            "partitions": _worst_partitions(view, int(places[position])),
        }

    return decide(
        RULE,
        GroupSubjects(snapshot, places),
        [
            Case(is_left_out, Verdict.UNKNOWN, Why.TOO_MANY_GROUPS),
            Case(
                with_more(fast | slow) & view.are_abandoned(ABANDONED_AFTER)[places],
                Verdict.BREACH,
                Why.ABANDONED,
            ),
            Case(with_more(fast) & is_unusual, Verdict.BREACH, Why.BURNS_FAST_AND_UNUSUAL),
            Case(with_more(fast), Verdict.BREACH, Why.BURNS_FAST),
            Case(with_more(slow), Verdict.BREACH, Why.BURNS),
            Case(with_more(_may_burn(memory)), Verdict.UNKNOWN, Why.NOT_MEASURED),
        ],
        (Verdict.OK, Why.KEPT),
        {"lag_ms": lag},
        details=details,
    )


def _may_burn(memory: ObjectiveMemory) -> Bools:
    """Mark the groups of which too little was measured to say that they keep their objective."""
    may_burn: Bools = ~HOUR.is_measured(memory) | (
        SIX_HOURS.is_long_over(memory) & ~SIX_HOURS.is_measured(memory)
    )
    return may_burn


def _worst_lag(view: View, places: Int64s) -> Column:
    """Return the longest known time lag of these groups' commits, of whatever topic."""
    commits = view.snapshot.commits
    worst = np.full(len(view.snapshot.groups), -1, np.int64)
    if view.time_lags is not None:
        lag = lag_ms(view.time_lags)
        np.maximum.at(worst, commits.group, np.where(lag.valid, lag.values, -1))
    return Column(worst[places], worst[places] >= 0)


def _worst_partitions(view: View, group: int) -> list[dict[str, Scalar]]:
    """Return the partitions with the longest known time lags of a group, with their owners."""
    if view.time_lags is None:
        return []
    commits, index = view.snapshot.commits, view.snapshot.partitions.index
    lag = lag_ms(view.time_lags)
    late = np.flatnonzero((commits.group == group) & lag.valid & (lag.values > 0))
    worst = late[np.argsort(-lag.values[late], kind="stable")][:SHOWN]
    owners = owners_evidence(view.snapshot, commits.group[worst], commits.row[worst])
    return [
        {
            "topic": (name := index.topic_partition(int(commits.row[place]))).topic,
            "partition": name.partition,
            "lag_ms": lag[place],
            **owner,
        }
        for place, owner in zip(worst.tolist(), owners, strict=True)
    ]


def _details(memory: ObjectiveMemory, position: int) -> Evidence:
    share, limit = memory.share[position], memory.limit_ms[position]
    late = {
        minutes: int(memory.late_ms[position, -minutes:].sum(dtype=np.int64))
        for window in (HOUR, SIX_HOURS)
        for minutes in (window.short, window.minutes)
    }
    return {
        "objective": f"{100 * share:.6g} % of the time at most {limit / 1000:g} s behind",
        "late_ms_in_5_minutes": late[HOUR.short],
        "late_ms_in_hour": late[HOUR.minutes],
        "late_ms_in_30_minutes": late[SIX_HOURS.short],
        "late_ms_in_6_hours": late[SIX_HOURS.minutes],
        "burn_rate_of_hour": _rate(late[HOUR.minutes], HOUR.minutes, share),
        "burn_rate_of_6_hours": _rate(late[SIX_HOURS.minutes], SIX_HOURS.minutes, share),
    }


def _rate(late_ms: int, minutes: int, share: float) -> str:
    """Return how many times as fast as it lasts the budget was used up."""
    return f"{late_ms / (minutes * MINUTE_MS * (1 - share)):.1f}"
