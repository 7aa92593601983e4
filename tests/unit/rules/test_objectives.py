"""Objectives of time lag: what counts as late, for how long, and when a budget is used up too fast."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import numpy as np
import pytest

from rules.baseline.open_series import ClosedSeries, OpenSeries
from rules.baseline.series import Metric, Series
from rules.baseline.unusual_values import ScoringState, UnusualValues
from rules.catalogue import lag_objective_burning
from rules.catalogue.lag_objective_burning import Why
from rules.facts.column import Column
from rules.facts.gap import Gap, GapScope
from rules.facts.lag_objectives import (
    MINUTES,
    LagObjective,
    ObjectiveMemory,
    merge_objectives,
)
from rules.facts.memory import Memory, shift_times
from rules.facts.snapshot import Snapshot
from rules.objectives import with_objectives
from rules.remembering import view_of_round
from rules.time_lag.lags import PRESENT, REASONS, TimeLag, TimeLags, WhyAbsent
from rules.verdict import Severity, Verdict
from rules.view import View
from tests.factories import at, commits, gap, group, member, snapshot

STEP = 30.0  # seconds between rounds
LIMIT = 60.0
OBJECTIVE = LagObjective(groups=re.compile("g"), seconds=LIMIT, share=0.99)
Lag = float | WhyAbsent | None  # seconds; None: at least a minute more than the limit


def seen(number: int, *, groups: Sequence[str] = ("g",), **overrides: Any) -> Snapshot:
    """Return a round in which each group has a commit on both partitions of a topic."""
    pairs = [(place, row) for place in range(len(groups)) for row in range(2)]
    return snapshot(
        taken_at=at(STEP * number),
        groups=tuple(group(name, **overrides) for name in groups),
        commits=commits(*((place, row, 5) for place, row in pairs)),
    )


def lags_of(values: Sequence[Lag]) -> TimeLags:
    """Return time lags, one per commit."""
    known = [value if isinstance(value, float) else None for value in values]
    lag_us = Column.of(None if value is None else int(value * 1e6) for value in known)
    bound = Column.of(int((LIMIT + 60) * 1e6) if value is None else None for value in values)
    why = [
        PRESENT
        if isinstance(value, float)
        else REASONS.index(value or WhyAbsent.OLDER_THAN_HISTORY)
        for value in values
    ]
    lag = TimeLag(
        lag_us=lag_us,
        within_us=np.zeros(len(values), np.int64),
        at_least_us=bound,
        why_absent=np.array(why, np.int8),
    )
    return TimeLags(read_committed=lag, read_uncommitted=lag)


class Watched:
    """Rounds, one after the other, over a group with an objective."""

    def __init__(self, objectives: Sequence[LagObjective] = (OBJECTIVE,)) -> None:
        self.memory: Memory | None = None
        self.number = 0
        self.objectives = objectives
        self.view: View | None = None
        self.overrides: dict[str, Any] = {}  # of the group

    def rounds(self, minutes: float, *lags: Lag) -> None:
        """Make rounds for so long, with these time lags of the commits."""
        for _ in range(round(minutes * 60 / STEP)):
            view = view_of_round(seen(self.number, **self.overrides), self.memory)
            view = replace(view, time_lags=lags_of(lags))
            self.view = with_objectives(view, self.objectives)
            self.memory = self.view.memory
            self.number += 1

    def empty_round(self, gaps: Sequence[Gap] = ()) -> int:
        """Make a round that lists no group; return the number of subjects."""
        unlisted = snapshot(taken_at=at(STEP * self.number), gaps=tuple(gaps))
        view = replace(view_of_round(unlisted, self.memory), time_lags=lags_of(()))
        self.view = with_objectives(view, self.objectives)
        self.memory, self.number = self.view.memory, self.number + 1
        return len(lag_objective_burning.judge(self.view).subjects)

    @property
    def verdict(self) -> tuple[Verdict, str]:
        """Return the verdict on the group, and its reason."""
        assert self.view is not None
        judgement = lag_objective_burning.judge(self.view)
        assert len(judgement.subjects) == 1
        return Verdict(judgement.verdicts[0]), str(judgement.reasons[judgement.reason[0]])


def unusual_lag(view: View, group_id: str, *, minutes_ago: int) -> UnusualValues:
    """Return that a group's lag on one partition was open so long ago; later is not known."""
    series = Series(
        cluster=view.snapshot.cluster,
        metric=Metric.READ_COMMITTED_LAG_SECONDS,
        topic="orders",
        partition=1,
        group=group_id,
    )
    known_at = view.now - timedelta(minutes=minutes_ago)
    opened = OpenSeries(
        series_id=np.array([series.series_id]),
        opened_ms=np.zeros(1, np.int64),
        known_ms=np.array([round(known_at.timestamp() * 1000)]),
        many_ms=np.zeros(1, np.int64),
        is_slow=np.zeros(1, np.bool_),
    )
    return UnusualValues(state=ScoringState.STARTING, open=opened)


OK, UNKNOWN, FAST, SLOW = (
    (Verdict.OK, str(Why.KEPT)),
    (Verdict.UNKNOWN, str(Why.NOT_MEASURED)),
    (Verdict.BREACH, str(Why.BURNS_FAST)),
    (Verdict.BREACH, str(Why.BURNS)),
)


def test_a_short_peak_is_none_and_a_lag_that_stays_is_reported_until_it_is_over() -> None:
    watched = Watched()
    watched.rounds(2, 1.0, 1.0)
    assert watched.verdict == UNKNOWN, "half of five minutes has to be measured"
    watched.rounds(58, 1.0, 1.0)
    assert watched.verdict == OK
    watched.rounds(8, 1.0, 300.0)
    assert watched.verdict == OK, "14.4 % of an hour are 8 min 38 s"
    watched.rounds(1, 1.0, 300.0)
    assert watched.verdict == FAST
    watched.rounds(5, 1.0, 1.0)
    assert watched.verdict == OK, "the last five minutes were kept"
    watched.rounds(2, 1.0, None)
    assert watched.verdict == FAST, "it is at least so far behind"


@pytest.mark.parametrize(
    ("group_id", "reason", "severity"),
    [
        ("g", Why.BURNS_FAST_AND_UNUSUAL, Severity.CRITICAL),
        ("other", Why.BURNS_FAST, Severity.WARNING),
    ],
)
def test_it_pages_if_the_lag_is_unusual_too(group_id: str, reason: Why, severity: Severity) -> None:
    watched = Watched()
    watched.rounds(60, 1.0, 1.0)
    watched.rounds(10, 1.0, 300.0)
    assert watched.view is not None
    unusual = unusual_lag(watched.view, group_id, minutes_ago=1)
    (finding,) = lag_objective_burning.judge(replace(watched.view, unusual=unusual)).findings(
        Verdict.BREACH
    )
    assert (finding.reason, finding.severity) == (reason, severity)
    assert finding.evidence["lag_was_unusual"] == (group_id == "g")
    watched.rounds(5, 1.0, 1.0)
    assert watched.view is not None
    (verdict,) = lag_objective_burning.judge(replace(watched.view, unusual=unusual)).verdicts
    assert verdict == Verdict.OK, "what is unusual alone pages nobody"


@pytest.mark.parametrize("is_open", [True, False])
@pytest.mark.parametrize(
    ("minutes_ago", "severity"), [(59, Severity.CRITICAL), (61, Severity.WARNING)]
)
def test_it_pages_for_no_longer_than_the_hour_in_which_the_lag_was_unusual(
    minutes_ago: int, severity: Severity, *, is_open: bool
) -> None:
    watched = Watched()
    watched.rounds(60, 1.0, 1.0)
    watched.rounds(10, 1.0, 300.0)
    assert watched.view is not None
    unusual = unusual_lag(watched.view, "g", minutes_ago=minutes_ago)
    if not is_open:
        closed = ClosedSeries(series_id=unusual.open.series_id, closed_ms=unusual.open.known_ms)
        unusual = replace(unusual, open=OpenSeries.none(), closed=closed)
    judgement = lag_objective_burning.judge(replace(watched.view, unusual=unusual))
    assert [finding.severity for finding in judgement.findings(Verdict.BREACH)] == [severity]


def test_a_lag_that_comes_and_goes_uses_up_the_budget_of_six_hours() -> None:
    watched = Watched()
    for _ in range(5):
        watched.rounds(26, 1.0, 1.0)
        watched.rounds(4, 61.0, 1.0)
    watched.rounds(26, 1.0, 1.0)
    assert watched.verdict == OK
    watched.rounds(2, 61.0, 1.0)
    assert watched.verdict == SLOW


def test_what_is_not_known_is_neither_kept_nor_late() -> None:
    watched = Watched()
    watched.rounds(60, 1.0, WhyAbsent.END_UNKNOWN)
    assert watched.verdict == UNKNOWN
    watched.rounds(10, 61.0, WhyAbsent.END_UNKNOWN)
    assert watched.verdict == FAST, "one commit that is late is enough"
    watched.rounds(10, 61.0, 1.0)
    watched.rounds(3, WhyAbsent.END_UNKNOWN, 1.0)
    assert watched.verdict == UNKNOWN
    watched.number += int(3600 / STEP)
    watched.rounds(1, 300.0, 300.0)
    assert watched.verdict == UNKNOWN, "an hour without a round is not measured"


def test_six_hours_that_used_up_the_budget_are_not_kept_because_nobody_measured_since() -> None:
    watched = Watched()
    watched.rounds(30, 61.0, 1.0)
    watched.rounds(60, 1.0, 1.0)
    assert watched.verdict == OK
    watched.rounds(10, 61.0, 1.0)
    watched.rounds(10, 1.0, 1.0)
    assert watched.verdict == SLOW
    watched.number += int(40 * 60 / STEP)
    watched.rounds(10, 1.0, 1.0)
    assert watched.verdict == UNKNOWN, "10 of 30 minutes are measured"
    watched.rounds(6, 1.0, 1.0)
    assert watched.verdict == OK


def test_a_group_that_an_incomplete_list_left_out_keeps_its_minutes() -> None:
    watched = Watched()
    watched.rounds(60, 1.0, 1.0)
    watched.rounds(9, 61.0, 1.0)
    assert watched.verdict == FAST
    assert watched.empty_round(gaps=[gap(scope=GapScope.GROUPS)]) == 0
    watched.rounds(0.5, 61.0, 1.0)
    assert watched.verdict == FAST
    assert watched.empty_round() == 0
    watched.rounds(0.5, 61.0, 1.0)
    assert watched.verdict == UNKNOWN, "it was gone, and begins anew"


def test_a_group_with_a_commit_that_a_round_did_not_read_is_not_known_to_keep_up() -> None:
    def half(number: int) -> Snapshot:
        return snapshot(
            taken_at=at(STEP * number),
            groups=(group("g"),),
            commits=commits((0, 0, 5)),
            gaps=(gap(scope=GapScope.COMMITS, group="g"),),
        )

    def measured_ms(first: Snapshot, taken: Snapshot, *lags: Lag) -> int:
        view = view_of_round(taken, view_of_round(first, None).memory)
        view = replace(view, time_lags=lags_of(lags))
        return int(with_objectives(view, [OBJECTIVE]).memory.objectives.measured_within(1)[0])

    assert measured_ms(seen(0), seen(1), 1.0, 1.0) == STEP * 1000
    assert measured_ms(seen(0), half(1), 1.0) == 0
    assert measured_ms(half(0), half(1), 1.0) == 0, "no round has read the other commit yet"
    assert measured_ms(seen(0), half(1), 61.0) == STEP * 1000, "one late commit is enough"


@pytest.mark.parametrize(("share", "minutes"), [(0.99, 9), (0.999, 1), (0.9, 54), (0.5, 54)])
def test_never_more_than_nine_tenths_of_a_window_are_needed(share: float, minutes: int) -> None:
    watched = Watched([replace(OBJECTIVE, share=share)])
    watched.rounds(60, 1.0, 1.0)
    watched.rounds(max(minutes - 1, 0.5), 61.0, 1.0)
    assert watched.verdict == OK
    watched.rounds(1.5, 61.0, 1.0)
    assert watched.verdict == FAST


def test_only_topics_of_the_objective_count_and_the_first_objective_holds() -> None:
    other = LagObjective(
        groups=re.compile(".*"), topics=re.compile("nothing"), seconds=LIMIT, share=0.99
    )
    nothing = Watched([other])
    nothing.rounds(1, 300.0, 300.0)
    assert nothing.view is not None
    assert len(lag_objective_burning.judge(nothing.view).subjects) == 0
    loose = replace(OBJECTIVE, seconds=1000.0)
    first = Watched([loose, OBJECTIVE])
    first.rounds(60, 300.0, 300.0)
    assert first.verdict == OK
    first.objectives = [OBJECTIVE]
    first.rounds(1, 300.0, 300.0)
    assert first.verdict == UNKNOWN, "another limit begins anew"
    first.objectives = []
    first.rounds(1, 300.0, 300.0)
    assert first.view is not None
    assert len(lag_objective_burning.judge(first.view).subjects) == 0


def test_a_group_that_nobody_uses_any_more_is_no_warning() -> None:
    watched = Watched()
    watched.overrides = {"member_count": 0, "state": "Empty"}
    watched.rounds(60, 300.0, 300.0)
    assert watched.verdict == (Verdict.BREACH, str(Why.ABANDONED))
    assert watched.view is not None
    (finding,) = lag_objective_burning.judge(watched.view).findings(Verdict.BREACH)
    assert finding.severity is Severity.INFO
    watched.overrides = {}
    watched.rounds(1, 300.0, 300.0)
    assert watched.verdict == FAST


def test_it_names_the_member_that_owns_each_late_partition() -> None:
    watched = Watched()
    watched.overrides = {"members": (member("a", 0), member("b", 1)), "state": "Stable"}
    watched.rounds(60, 200.0, 300.0)
    assert watched.view is not None
    (finding,) = lag_objective_burning.judge(watched.view).findings(Verdict.BREACH)
    rows: Any = finding.evidence["partitions"]
    owners = [(row["partition"], row["lag_ms"], row["client_id"], row["host"]) for row in rows]
    assert owners == [
        (1, 300_000, "client-of-b", "10.0.0.7"),
        (0, 200_000, "client-of-a", "10.0.0.7"),
    ]


def test_a_clock_that_was_set_moves_the_minutes_along() -> None:
    watched = Watched()
    watched.rounds(60, 1.0, 1.0)
    watched.rounds(9, 61.0, 1.0)
    assert watched.memory is not None
    hours = timedelta(hours=3)
    watched.memory = shift_times(watched.memory, int(hours.total_seconds() * 1e6))
    watched.number += int(hours.total_seconds() / STEP)
    watched.rounds(0.5, 61.0, 1.0)
    assert watched.verdict == FAST


def test_what_was_stored_is_added_to_what_was_seen_since() -> None:
    def memory(newest: int, minutes: Sequence[int]) -> ObjectiveMemory:
        late = np.zeros((1, MINUTES), np.int32)
        for minute in minutes:
            late[0, minute - newest - 1] = 60_000
        return ObjectiveMemory(
            group_ids=("g",),
            limit_ms=(60_000,),
            share=(0.99,),
            newest=newest,
            late_ms=late,
            measured_ms=late.copy(),
        )

    now = 1000
    merged = merge_objectives(memory(now - 10, [now - 365, now - 30, now - 12]), memory(now, [now]))
    assert merged.late_within(1).tolist() == [60_000]
    assert merged.late_within(13).tolist() == [120_000]
    assert merged.late_within(MINUTES).tolist() == [180_000]
    unseen = merge_objectives(memory(now, [now]), ObjectiveMemory.none())
    assert unseen.group_ids == ("g",), "the first complete list decides whether it is gone"
    assert unseen.late_within(1).tolist() == [60_000]
