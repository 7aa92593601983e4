"""What the rules that judge groups show: one finding for a group, with its partitions."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import numpy as np
import pytest

from rules.by_group import SHOWN
from rules.catalogue import consumer_group_rewound, consumer_group_stalled
from rules.facts.column import Column
from rules.facts.gap import Gap, GapScope
from rules.facts.snapshot import Snapshot
from rules.time_lag.lags import PRESENT, TimeLag, TimeLags
from rules.verdict import Severity, Verdict
from tests.factories import NOON, commits, gap, group, offsets, partitions, snapshot
from tests.unit.rules.catalogue.judging import names, view_of

OK, BREACH = Verdict.OK, Verdict.BREACH


def wide(number: int, *, members: int, unchanged: bool = True) -> Snapshot:
    """Return a round in which a group is before 30 partitions; it goes on reading of one."""
    placed = partitions({"orders": 31})
    moved = 0 if unchanged else 20 * number
    return snapshot(
        partitions=placed,
        offsets=offsets(31, last_stable_offset=[1000] * 31, high_watermark=[1000] * 31),
        groups=(group(member_count=members),),
        commits=commits(*((0, row, 10 * row) for row in range(30)), (0, 30, 990 - 300 + moved)),
        taken_at=NOON + timedelta(minutes=number),
    )


def test_a_group_that_unchanged_has_one_finding_with_the_largest_lags_first() -> None:
    observations = [wide(number, members=int(number == 0)) for number in range(3)]
    judgement = consumer_group_stalled.judge(view_of(observations))
    assert len(judgement.verdicts) == 1
    said = judgement.finding(0)
    assert (said.reason, said.severity) == ("no_members", Severity.WARNING)
    lags = [1000 - 10 * row for row in range(30)]
    assert (said.evidence["partition_count"], said.evidence["total_lag"]) == (31, sum(lags) + 310)
    assert said.evidence["last_active_ms_ago"] == 120_000
    assert names(said) == [("orders", row) for row in range(SHOWN)]


def test_a_group_with_members_names_the_partitions_that_stand_alone() -> None:
    observations = [wide(number, members=2, unchanged=False) for number in range(12)]
    said = consumer_group_stalled.judge(view_of(observations)).finding(0)
    assert (said.reason, said.evidence["partition_count"]) == ("not_moving", 30)
    assert ("orders", 30) not in names(said)


def test_how_long_the_oldest_unread_offset_has_waited_is_told_where_history_knows_it() -> None:
    observations = [wide(number, members=2) for number in range(3)]
    view = view_of(observations)
    assert consumer_group_stalled.judge(view).finding(0).evidence["oldest_unread_ms"] is None
    waited = TimeLag(
        lag_us=Column.of([None, *range(1_000_000, 31_000_000, 1_000_000)]),
        within_us=np.zeros(31, np.int64),
        at_least_us=Column.of([90_000_000, *[None] * 30]),
        why_absent=np.full(31, PRESENT, np.int8),
    )
    known = replace(view, time_lags=TimeLags(read_committed=waited, read_uncommitted=waited))
    evidence = consumer_group_stalled.judge(known).finding(0).evidence
    assert evidence["oldest_unread_ms"] == 30_000
    assert evidence["oldest_unread_at_least_ms"] == 90_000


@pytest.mark.parametrize(
    ("gaps", "verdict"),
    [
        pytest.param((gap(scope=GapScope.COMMITS, group="billing"),), Verdict.UNKNOWN, id="hidden"),
        pytest.param((gap(scope=GapScope.COMMITS),), Verdict.UNKNOWN, id="not-all-are-seen"),
        pytest.param((gap(scope=GapScope.COMMITS, group="audit"),), OK, id="of-another-group"),
        pytest.param((), OK, id="deleted"),
    ],
)
def test_a_group_is_not_well_while_a_commit_of_it_is_hidden(
    gaps: tuple[Gap, ...], verdict: Verdict
) -> None:
    observations = [wide(number, members=2, unchanged=False) for number in range(12)]
    rest = observations[-1].commits
    moving = commits((0, 30, int(rest.committed_offset[30])))
    observations[-1] = replace(observations[-1], commits=moving, gaps=gaps)
    assert consumer_group_stalled.judge(view_of(observations)).finding(0).verdict is verdict


@pytest.mark.parametrize("anew", [True, False])
def test_a_group_of_which_another_commit_is_gone_was_made_anew(*, anew: bool) -> None:
    before = snapshot(groups=(group(),), commits=commits((0, 0, 50), (0, 1, 60)))
    left = commits((0, 0, 20)) if anew else commits((0, 0, 20), (0, 1, 60))
    after = snapshot(groups=(group(),), commits=left, taken_at=NOON + timedelta(seconds=15))
    said = consumer_group_rewound.judge(view_of([before, after])).finding(0)
    expected = (OK, "made_anew") if anew else (BREACH, "went_back")
    assert (said.verdict, said.reason) == expected


@pytest.mark.parametrize("hidden", ["billing", None])
def test_a_commit_that_could_not_be_seen_is_no_sign_of_another_group(hidden: str | None) -> None:
    before = snapshot(groups=(group(),), commits=commits((0, 0, 50), (0, 1, 60)))
    after = snapshot(
        groups=(group(),),
        commits=commits((0, 0, 20)),
        gaps=(gap(scope=GapScope.COMMITS, group=hidden),),
        taken_at=NOON + timedelta(seconds=15),
    )
    assert consumer_group_rewound.judge(view_of([before, after])).finding(0).verdict is BREACH


def test_one_reset_of_many_partitions_is_one_finding() -> None:
    before = snapshot(groups=(group(),), commits=commits((0, 0, 50), (0, 1, 60), (0, 2, 70)))
    after = snapshot(
        groups=(group(),),
        commits=commits((0, 0, 10), (0, 1, 61), (0, 2, 10)),
        taken_at=NOON + timedelta(seconds=15),
    )
    judgement = consumer_group_rewound.judge(view_of([before, after]))
    assert judgement.count(BREACH) == len(judgement.verdicts) == 1
    said = judgement.finding(0)
    assert (said.evidence["rewound_by"], said.evidence["partition_count"]) == (100, 2)
    assert names(said) == [("orders", 2), ("orders", 0)]


@pytest.mark.parametrize(
    ("first", "later", "anew"),
    [
        pytest.param({"epoch": 7}, {"epoch": 2}, True, id="a-lower-epoch"),
        pytest.param({"epoch": 7}, {"epoch": 7}, False, id="the-same-epoch"),
        pytest.param({"epoch": 7}, {"epoch": 9}, False, id="a-higher-epoch"),
        pytest.param({"epoch": 7}, {}, False, id="an-epoch-that-was-not-told"),
        pytest.param({"protocol_type": "consumer"}, {"protocol_type": ""}, True, id="never-joined"),
        pytest.param({"protocol_type": ""}, {"protocol_type": "consumer"}, False, id="joined-now"),
        pytest.param({"protocol_type": "consumer"}, {}, False, id="a-protocol-that-was-not-told"),
    ],
)
def test_a_group_that_is_younger_than_it_was_is_another_one(
    first: dict[str, Any], later: dict[str, Any], *, anew: bool
) -> None:
    observations = [
        snapshot(
            groups=(group(**told),),
            commits=commits((0, 0, offset)),
            taken_at=NOON + timedelta(seconds=15 * number),
        )
        for number, (told, offset) in enumerate([(first, 50), ({}, 50), (later, 20)])
    ]
    said = consumer_group_rewound.judge(view_of(observations)).finding(0)
    expected = (OK, "made_anew") if anew else (BREACH, "went_back")
    assert (said.verdict, said.reason) == expected


def test_commits_that_the_log_calls_deleted_are_no_rewind_and_others_are() -> None:
    before = snapshot(groups=(group(),), commits=commits((0, 0, 50), (0, 1, 60)))
    after = snapshot(
        groups=(group(),),
        commits=commits((0, 0, 10), (0, 1, 20)),
        commits_made_anew=frozenset({0}),
        taken_at=NOON + timedelta(seconds=15),
    )
    said = consumer_group_rewound.judge(view_of([before, after])).finding(0)
    assert (said.verdict, names(said)) == (BREACH, [("orders", 1)])
    anew = replace(after, commits_made_anew=frozenset({0, 1}))
    said = consumer_group_rewound.judge(view_of([before, anew])).finding(0)
    assert (said.verdict, said.reason) == (OK, "made_anew")
