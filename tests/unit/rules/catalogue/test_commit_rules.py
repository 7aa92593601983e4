"""Case tables of the rules that judge commits.

To add a case, say in one sentence why it is so. Changing an old one needs an argument.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from rules.catalogue import consumer_group_rewound, consumer_group_stalled
from rules.facts.gap import GapScope
from rules.facts.groups import GroupType
from rules.question import ReadableQuestion
from rules.verdict import Verdict
from tests.factories import (
    NOON,
    commits,
    gap,
    group,
    offsets,
    snapshot,
)
from tests.unit.rules.catalogue.commit_observations import (
    BREACH,
    OK,
    UNKNOWN,
    UNNAMED,
    UNSEEN,
    at,
)
from tests.unit.rules.catalogue.judging import Case, judged, names, rounds, view_of
from tests.unit.rules.catalogue.rewound_cases import REWOUND

STALLED = [
    Case(
        id="caught-up",
        because="a group at the end has nothing to do",
        observations=(at(100), at(100)),
        seconds=60,
        verdict=OK,
        reason="nothing_to_read",
    ),
    Case(
        id="unchanged",
        because="a minute without a commit while 50 offsets wait",
        observations=(at(50), at(50)),
        seconds=60,
        verdict=BREACH,
        reason="not_moving",
    ),
    Case(
        id="is-unnamed",
        because="a commit that is the same by name has stood, whatever became of the topic",
        observations=(at(50, **UNNAMED), at(50, **UNNAMED)),
        seconds=60,
        verdict=BREACH,
        reason="not_moving",
    ),
    Case(
        id="stable-end-not-seen",
        because="what waits below the high watermark may all be undecided",
        observations=(at(50), at(50, offsets=offsets(1, last_stable_offset=[None]))),
        seconds=60,
        verdict=UNKNOWN,
        reason="end_not_seen",
    ),
    Case(
        id="end-not-seen-before",
        because="a lag that nobody saw lets nothing stand",
        observations=(at(50, **UNSEEN), at(50)),
        seconds=60,
        verdict=OK,
        reason="moves",
    ),
    Case(
        id="commits-seldom",
        because="half a minute without a commit is usual",
        observations=(at(50), at(50)),
        seconds=30,
        verdict=OK,
        reason="moves",
    ),
    Case(
        id="slow",
        because="a slow group moves, however far behind it is",
        observations=(at(50), at(51), at(52)),
        seconds=60,
        verdict=OK,
        reason="moves",
    ),
    Case(
        id="application-down",
        because="nobody is there to read, and somebody was",
        observations=(at(50), at(50, members=0)),
        seconds=60,
        verdict=BREACH,
        reason="no_members",
    ),
    Case(
        id="application-down-that-commits-without-being-a-member",
        because="a commit that went forward is work too",
        observations=(at(40, members=0), at(50, members=0), at(50, members=0)),
        seconds=60,
        verdict=BREACH,
        reason="no_members",
    ),
    Case(
        id="abandoned",
        because="nobody has been there since the group is known",
        observations=(at(50, members=0), at(50, members=0)),
        seconds=60,
        verdict=BREACH,
        reason="abandoned",
    ),
    Case(
        id="abandoned-and-reset",
        because="a commit that goes back is a person's, and no work",
        observations=(at(60, members=0), at(50, members=0), at(50, members=0)),
        seconds=60,
        verdict=BREACH,
        reason="abandoned",
    ),
    Case(
        id="gone-for-a-week",
        because="Kafka itself forgets a group without members after a week",
        observations=(at(50), at(50, members=0)),
        seconds=7 * 86400,
        verdict=BREACH,
        reason="abandoned",
    ),
    Case(
        id="gone-for-less-than-a-week",
        because="it may be missed",
        observations=(at(50), at(50, members=0)),
        seconds=7 * 86400 - 1,
        verdict=BREACH,
        reason="no_members",
    ),
    Case(
        id="described-by-its-state-alone",
        because="a listing tells that it is empty",
        observations=(at(50), at(50, groups=(group(member_count=None, state="Empty"),))),
        seconds=60,
        verdict=BREACH,
        reason="no_members",
    ),
    Case(
        id="members-not-seen",
        because="whether it is stopped or stuck was not told",
        observations=(at(50), at(50, groups=(group(member_count=None, state=None),))),
        seconds=60,
        verdict=UNKNOWN,
        reason="members_not_seen",
    ),
    Case(
        id="group-behind-a-gap",
        because="a round that could not list it does not forget that it was at work",
        observations=(at(50), {"gaps": (gap(scope=GapScope.GROUPS),)}, at(50, members=0)),
        seconds=60,
        verdict=BREACH,
        reason="no_members",
    ),
    Case(
        id="marker",
        because="the lag of 1 is the marker of the last transaction",
        observations=(at(99, nothing=1), at(99, nothing=1)),
        seconds=600,
        verdict=OK,
        reason="nothing_to_read",
    ),
    Case(
        id="small-and-known",
        because="the lag of 1 is a record",
        observations=(at(99, nothing=0), at(99, nothing=0)),
        seconds=60,
        verdict=BREACH,
        reason="not_moving",
    ),
    Case(
        id="small-and-unknown",
        because="without READ on the topic a marker cannot be told from a record",
        observations=(at(99), at(99)),
        seconds=60,
        verdict=UNKNOWN,
        reason="not_determined",
    ),
    Case(
        id="large-and-rejected",
        because="without READ ninety offsets may be aborted records alone",
        observations=(at(10), at(10, failed=True)),
        seconds=60,
        verdict=UNKNOWN,
        reason="not_determined",
    ),
    Case(
        id="rejected-and-nobody-there",
        because="an application that is down misses nothing if nothing is there to read",
        observations=(at(10, members=0), at(10, members=0, failed=True)),
        seconds=60,
        verdict=UNKNOWN,
        reason="not_determined",
    ),
    Case(
        id="rejected-and-moves",
        because="what moves needs no observation",
        observations=(at(10), at(20, failed=True)),
        seconds=60,
        verdict=OK,
        reason="moves",
    ),
    Case(
        id="large-and-nothing",
        because="fifty offsets of aborted records are nothing that a reader would get",
        observations=(at(50), at(50, nothing=1)),
        seconds=60,
        verdict=OK,
        reason="nothing_to_read",
    ),
    Case(
        id="large-and-something",
        because="somewhere in the fifty offsets is a record",
        observations=(at(50), at(50, nothing=0)),
        seconds=60,
        verdict=BREACH,
        reason="not_moving",
    ),
    Case(
        id="large-and-something-for-nobody",
        because="a record waits, and nobody is there to read it",
        observations=(at(50), at(50, members=0, nothing=0)),
        seconds=60,
        verdict=BREACH,
        reason="no_members",
    ),
    Case(
        id="end-not-seen",
        because="a group before an unreachable leader is neither stalled nor fine",
        observations=(at(50), at(50, **UNSEEN)),
        seconds=60,
        verdict=UNKNOWN,
        reason="end_not_seen",
    ),
    Case(
        id="reads-uncommitted",
        because="above the LSO the other lag counts",
        observations=(
            at(95, offsets=offsets(1, last_stable_offset=[90], high_watermark=[200])),
            at(95, offsets=offsets(1, last_stable_offset=[90], high_watermark=[200])),
        ),
        seconds=60,
        verdict=BREACH,
        reason="not_moving",
    ),
]

TABLE = [
    *((consumer_group_stalled.judge, case) for case in STALLED),
    *((consumer_group_rewound.judge, case) for case in REWOUND),
]


@pytest.mark.parametrize(
    ("judge", "case"), TABLE, ids=[f"{j.__module__.rpartition('.')[2]}:{c.id}" for j, c in TABLE]
)
def test_case(judge: Any, case: Case) -> None:
    finding = judged(judge, case)
    assert (finding.verdict, finding.reason) == (case.verdict, case.reason), case.because


def test_share_group_has_no_position_to_judge() -> None:
    shared = at(50) | {"groups": (group(group_type=GroupType.SHARE),)}
    case = Case(id="share", because="", observations=(shared, shared), verdict=OK, reason="")
    assert len(consumer_group_stalled.judge(view_of(rounds(case))).verdicts) == 0


@pytest.mark.parametrize(
    ("observations", "seconds", "asks"),
    [
        pytest.param((at(50), at(50)), 30, True, id="is-for-half-the-time"),
        pytest.param((at(50), at(50)), 29, False, id="not-yet"),
        pytest.param((at(50), at(51)), 30, False, id="moves"),
        pytest.param((at(50), at(50, nothing=0)), 60, True, id="answered-and-still-wanted"),
        pytest.param((at(89), at(89)), 30, True, id="eleven-offsets"),
        pytest.param((at(90), at(90)), 30, False, id="small-lags-are-observed-into-unasked"),
        pytest.param((at(50), at(50, **UNSEEN)), 30, True, id="end-not-seen"),
        pytest.param(
            (at(50), {"gaps": (gap(scope=GapScope.COMMITS),)}), 30, True, id="commit-not-seen"
        ),
        pytest.param((at(50), {}), 30, False, id="commit-gone"),
    ],
)
def test_a_larger_lag_that_unchanged_is_asked_about(
    observations: tuple[dict[str, Any], ...], seconds: float, *, asks: bool
) -> None:
    case = Case(
        id="", because="", observations=observations, seconds=seconds, verdict=OK, reason=""
    )
    questions = consumer_group_stalled.judge(view_of(rounds(case))).questions
    assert bool(questions) is asks


def test_a_question_names_the_commits_that_stand() -> None:
    groups = (group("billing"), group("audit"))
    observations = [
        snapshot(
            groups=groups, commits=commits((0, 0, 50), (0, 1, 60), (1, 1, moves)), taken_at=now
        )
        for now, moves in ((NOON, 10), (NOON + consumer_group_stalled.ASKS_AFTER, 20))
    ]
    [question] = consumer_group_stalled.judge(view_of(observations)).questions
    assert isinstance(question, ReadableQuestion)
    assert question.commits.group.tolist() == [0, 0]
    assert question.commits.row.tolist() == [0, 1]


def test_evidence_of_a_rewind_says_from_where_and_by_how_much() -> None:
    case = next(case for case in REWOUND if case.id == "back")
    finding = judged(consumer_group_rewound.judge, case)
    assert finding.labels == {"cluster": "default", "group": "billing"}
    moved = {"committed_offset": 40, "previous_committed_offset": 50, "rewound_by": 10}
    assert finding.evidence == {
        "rewound_by": 10,
        "partition_count": 1,
        "partitions": [{"topic": "orders", "partition": 0, **moved, "owner": "unknown"}],
    }


@pytest.mark.parametrize(
    ("other", "minutes", "verdict", "reason"),
    [
        pytest.param(20, 2, OK, "reads_elsewhere", id="works-off-a-backlog-elsewhere"),
        pytest.param(20, 10, BREACH, "not_moving", id="elsewhere-for-too-long"),
        pytest.param(0, 2, BREACH, "not_moving", id="everything-is"),
        pytest.param(94, 2, BREACH, "not_moving", id="only-keeps-up-elsewhere"),
    ],
)
def test_group_that_works_off_a_backlog_lets_another_partition_wait(
    other: int, minutes: int, verdict: Verdict, reason: str
) -> None:
    """The commit of partition 1 begins at `other` and moves, but for one at 0."""
    moves = int(other > 0)
    observations = [
        snapshot(
            groups=(group(), group("other")),
            commits=commits((0, 0, 50), (0, 1, other + number * moves), (1, 2, 1 + number)),
            taken_at=NOON + number * timedelta(seconds=30),
        )
        for number in range(2 * minutes + 1)
    ]
    said = consumer_group_stalled.judge(view_of(observations)).finding(0)
    assert said.labels == {"cluster": "default", "group": "billing"}
    if verdict is BREACH:
        assert ("orders", 0) in names(said)
        assert said.reason == reason
    else:
        assert (said.verdict, said.reason) == (verdict, reason)
