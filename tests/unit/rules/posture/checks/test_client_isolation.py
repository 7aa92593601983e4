"""Commits above the last stable offset: which prove that a group reads uncommitted records."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from rules.facts.groups import GroupType
from rules.facts.snapshot import Snapshot
from rules.posture.checks.client_isolation import judge
from rules.verdict import Severity
from tests.factories import at, commits, group, offsets, partitions, snapshot, topic_id
from tests.unit.rules.posture.client_rounds import ROUND_SECONDS, named, view_after


def round_(number: int, committed: int, *, stable: int = 50, **overrides: Any) -> Snapshot:
    """Return a round in which a transaction is open from `stable` on, and a group has committed."""
    epoch = overrides.pop("epoch", 5)
    end = overrides.pop("end", 100)
    base = snapshot(
        taken_at=at(ROUND_SECONDS * number),
        groups=(group("audit"),),
        commits=commits((0, 0, committed)),
        offsets=offsets(
            last_stable_offset=[stable, 100, 100],
            high_watermark=[end, 100, 100],
            leader_epoch=[epoch, 5, 5],
        ),
    )
    return replace(base, **overrides)


PROOF = (round_(0, 60), round_(1, 70), round_(2, 80))


def test_a_group_is_named_with_its_partition_and_times() -> None:
    [line] = named(judge, view_after(PROOF))
    assert (line.name, line.severity) == ("group audit", Severity.WARNING)
    assert line.evidence == {
        "group": "audit",
        "topic": "orders",
        "partition": 0,
        "committed_offset": 80,
        "last_stable_offset": 50,
        "high_watermark": 100,
        "rounds": 2,
        "first_observed_at": "2025-06-02T12:00:10.000+00:00",
        "last_observed_at": "2025-06-02T12:00:20.000+00:00",
    }


def test_a_console_consumer_is_only_information() -> None:
    console = (group("console-consumer-12345"),)
    [line] = named(judge, view_after([replace(each, groups=console) for each in PROOF]))
    assert line.severity is Severity.INFO


def anew(number: int, committed: int) -> Snapshot:
    made = partitions(topic_ids=(topic_id("orders", creation=number),))
    return round_(number, committed, partitions=made)


@pytest.mark.parametrize(
    "snapshots",
    [
        pytest.param((round_(0, 40), round_(1, 45), round_(2, 50)), id="up-to-the-lso"),
        pytest.param((round_(0, 60), round_(1, 60), round_(2, 60)), id="reset-by-hand-then-joined"),
        pytest.param(PROOF[:2], id="one-round-is-not-enough"),
        pytest.param(
            tuple(
                replace(each, groups=(group("audit", member_count=0, state="Empty"),))
                for each in PROOF
            ),
            id="no-members",
        ),
        pytest.param(
            tuple(
                replace(each, groups=(group("audit", member_count=None, state=None),))
                for each in PROOF
            ),
            id="members-not-known",
        ),
        pytest.param(
            (round_(0, 60), round_(1, 70, epoch=6), round_(2, 80, epoch=7)),
            id="a-new-leader-begins-below",
        ),
        pytest.param(
            (round_(0, 60, stable=99), round_(1, 70, stable=60), round_(2, 80, stable=55)),
            id="the-lso-went-back",
        ),
        pytest.param(
            (round_(0, 110), round_(1, 120), round_(2, 130)), id="beyond-the-end-is-another-rule"
        ),
        pytest.param(
            tuple(
                replace(each, groups=(group("audit", group_type=GroupType.SHARE),))
                for each in PROOF
            ),
            id="a-share-group-commits-nothing",
        ),
        pytest.param((anew(0, 60), anew(1, 70), anew(2, 80)), id="recreated-topics"),
    ],
)
def test_what_proves_nothing_is_not_named(snapshots: tuple[Snapshot, ...]) -> None:
    assert named(judge, view_after(snapshots)) == []
