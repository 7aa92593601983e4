"""Case table of the rule that finds what retention took from a group.

To add a case, say in one sentence why it is so. Changing an old one needs an argument.
"""

from __future__ import annotations

from typing import Any

import pytest

from rules.catalogue import consumer_data_expired
from rules.facts.gap import GapScope
from rules.judgement import Finding
from rules.verdict import Severity, Verdict
from tests.factories import (
    commits,
    gap,
    group,
    offsets,
    partitions,
    snapshot,
    topic_id,
)
from tests.unit.rules.catalogue.judging import Case, judged, view_of

OK, UNKNOWN, BREACH = Verdict.OK, Verdict.UNKNOWN, Verdict.BREACH


def at(committed: int, *, start: int | None, members: int = 1, **more: Any) -> dict[str, Any]:
    """Return an observation of one group on a log that starts at `start` and ends at 100."""
    return {
        "groups": (group(member_count=members),),
        "commits": commits((0, 0, committed)),
        "offsets": offsets(1, log_start_offset=[start]),
        **more,
    }


def hidden(start: int) -> dict[str, Any]:
    """Return an observation in which the group's coordinator was away."""
    gaps = (gap(scope=GapScope.COMMITS),)
    return {"offsets": offsets(1, log_start_offset=[start]), "gaps": gaps}


AGAIN: dict[str, Any] = {
    "partitions": partitions({"orders": 1}, topic_ids=(topic_id("orders", creation=1),))
}

CASES = [
    Case(
        id="within",
        because="its next record is still there",
        observations=(at(50, start=0),),
        verdict=OK,
        reason="within_log",
    ),
    Case(
        id="at-start",
        because="the next record to read is the first that is left",
        observations=(at(50, start=50),),
        verdict=OK,
        reason="within_log",
    ),
    Case(
        id="first-observation",
        because="ten offsets were deleted unread, nobody knows when",
        observations=(at(50, start=60),),
        verdict=BREACH,
        reason="below_log_start",
    ),
    Case(
        id="not-described",
        because="nobody told how many members it has, and its coordinator lists it as empty",
        observations=(at(50, start=60, groups=(group(member_count=None, state="Empty"),)),),
        verdict=BREACH,
        reason="abandoned",
    ),
    Case(
        id="now",
        because="they were there in the last round",
        observations=(at(50, start=0), at(50, start=60)),
        verdict=BREACH,
        reason="below_log_start",
    ),
    Case(
        id="moved-and-still-below",
        because="it went on reading, and was overtaken all the same",
        observations=(at(40, start=0), at(50, start=60)),
        verdict=BREACH,
        reason="below_log_start",
    ),
    Case(
        id="told",
        because="it happened in an earlier round, and nothing more was deleted",
        observations=(at(50, start=60), at(50, start=60), at(50, start=60)),
        verdict=OK,
        reason="still_below",
    ),
    Case(
        id="more",
        because="another twenty offsets were deleted unread",
        observations=(at(50, start=60), at(50, start=60), at(50, start=80)),
        verdict=BREACH,
        reason="below_log_start",
    ),
    Case(
        id="reset",
        because="the group went on behind the gap that was told; nothing more is missing",
        observations=(at(50, start=60), at(70, start=60)),
        verdict=OK,
        reason="within_log",
    ),
    Case(
        id="jumped",
        because="it may have read the ten offsets before they were deleted, or have been reset",
        observations=(at(50, start=0), at(70, start=60)),
        verdict=UNKNOWN,
        reason="may_have_expired",
    ),
    Case(
        id="jumped-to-start",
        because="a purge of what was read ends at the commit, and so does a reset to the earliest",
        observations=(at(50, start=0), at(60, start=60)),
        verdict=UNKNOWN,
        reason="may_have_expired",
    ),
    Case(
        id="jumped-to-end",
        because="it may have read everything, or have been reset to the latest",
        observations=(at(50, start=0), at(100, start=60)),
        verdict=UNKNOWN,
        reason="may_have_expired",
    ),
    Case(
        id="jumped-while-more-was-deleted",
        because="behind the gap that was told it may have been overtaken once more",
        observations=(at(50, start=60), at(90, start=80)),
        verdict=UNKNOWN,
        reason="may_have_expired",
    ),
    Case(
        id="ahead-of-retention",
        because="what it had read already may be deleted",
        observations=(at(70, start=0), at(80, start=60)),
        verdict=OK,
        reason="within_log",
    ),
    Case(
        id="nobody",
        because="nobody is there to miss it now",
        observations=(at(50, start=0), at(50, start=60, members=0)),
        verdict=BREACH,
        reason="no_members",
    ),
    Case(
        id="abandoned",
        because="nobody has been there since the group is known",
        observations=(at(50, start=0, members=0), at(50, start=60, members=0)),
        verdict=BREACH,
        reason="abandoned",
    ),
    Case(
        id="nobody-for-long",
        because="a group that nobody uses is told once, not with every deletion",
        observations=(at(50, start=60, members=0), at(50, start=80, members=0)),
        verdict=OK,
        reason="still_below",
    ),
    Case(
        id="somebody-again",
        because="who came back loses what was deleted since",
        observations=(at(50, start=60, members=0), at(50, start=80)),
        verdict=BREACH,
        reason="below_log_start",
    ),
    Case(
        id="start-not-seen",
        because="without the log start nothing can be said",
        observations=(at(50, start=None),),
        verdict=UNKNOWN,
        reason="log_start_not_seen",
    ),
    Case(
        id="told-before-an-unseen-start",
        because="a round that could not see it forgets nothing",
        observations=(at(50, start=60), at(50, start=None), at(50, start=60)),
        verdict=OK,
        reason="still_below",
    ),
    Case(
        id="told-before-an-unseen-commit",
        because="a coordinator that was away forgets nothing",
        observations=(at(50, start=60), hidden(60), at(50, start=60)),
        verdict=OK,
        reason="still_below",
    ),
    Case(
        id="happened-behind-a-gap",
        because="in the round in which it happened nobody saw the commit",
        observations=(at(50, start=0), hidden(60), at(50, start=60)),
        verdict=BREACH,
        reason="below_log_start",
    ),
    Case(
        id="recreated",
        because="a topic of the same name with another id has lost nothing of the old one",
        observations=(at(50, start=0), at(70, start=60, **AGAIN)),
        verdict=OK,
        reason="within_log",
    ),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_case(case: Case) -> None:
    finding = judged(consumer_data_expired.judge, case)
    assert (finding.verdict, finding.reason) == (case.verdict, case.reason), case.because


def found(case_id: str) -> Finding:
    case = next(case for case in CASES if case.id == case_id)
    return judged(consumer_data_expired.judge, case)


@pytest.mark.parametrize(
    ("case_id", "exactly", "at_most"),
    [("more", 30, None), ("jumped", None, 10), ("reset", None, None), ("within", None, None)],
)
def test_evidence_counts_what_is_missing(
    case_id: str, exactly: int | None, at_most: int | None
) -> None:
    evidence = found(case_id).evidence
    assert (evidence["expired_offsets"], evidence["expired_offsets_at_most"]) == (exactly, at_most)


def test_only_a_group_with_members_is_critical() -> None:
    assert found("now").severity is Severity.CRITICAL
    assert found("nobody").severity is Severity.WARNING
    assert found("abandoned").severity is Severity.INFO


def test_every_group_has_one_finding_that_names_its_partitions() -> None:
    seen = snapshot(
        groups=(group("billing"), group("audit", member_count=0)),
        commits=commits((0, 0, 50), (0, 2, 70), (1, 0, 50)),
        offsets=offsets(log_start_offset=[60, 0, 60]),
    )
    judgement = consumer_data_expired.judge(view_of([seen]))
    assert [finding.reason for finding in judgement.findings(*Verdict)] == [
        "below_log_start",
        "abandoned",
    ]
    finding = judgement.finding(0)
    assert finding.labels == {"cluster": "default", "group": "billing"}
    assert (finding.evidence["partition_count"], finding.evidence["members"]) == (1, 1)
    assert finding.evidence["partitions"] == [
        {
            "topic": "orders",
            "partition": 0,
            "committed_offset": 50,
            "previous_committed_offset": None,
            "log_start_offset": 60,
            "expired_offsets": 10,
            "expired_offsets_at_most": None,
            "owner": "unknown",
        }
    ]
