"""Commits in and outside of transactions: which mixtures of a group are named."""

from __future__ import annotations

import pytest

from rules.facts.batch_samples import CommitSample
from rules.facts.groups import Group
from rules.posture.checks.client_auto_commit import judge
from rules.posture.line import Unseen
from rules.verdict import Severity
from tests.factories import group
from tests.unit.rules.posture.client_rounds import (
    commit,
    named,
    rounds,
    sampled,
    unknown,
    view_after,
)

MEMBERS = (group("billing"),)
NOBODY = (group("billing", member_count=0, state="Empty"),)


def mixed(*kinds: str) -> tuple[CommitSample, ...]:
    """Return commits in order, `t` in a transaction and `p` outside of any."""
    return tuple(
        commit(offset, 7 if kind == "t" else None) for offset, kind in enumerate("".join(kinds))
    )


def test_a_group_that_mixes_them_is_named_with_its_partition_and_times() -> None:
    samples = [sampled(commits=mixed("tptpt")), sampled(commits=tuple(map(shifted, mixed("ptpt"))))]
    [line] = named(judge, view_after(rounds(*samples, groups=MEMBERS)))
    assert (line.name, line.severity) == ("group billing", Severity.WARNING)
    assert line.evidence == {
        "group": "billing",
        "topic": "orders",
        "partition": 0,
        "producer_id": 7,
        "times": 4,
        "last_record_time": "2025-06-02T12:00:12.000+00:00",
        "first_observed_at": "2025-06-02T12:00:00.000+00:00",
        "last_observed_at": "2025-06-02T12:00:10.000+00:00",
    }


def shifted(of: CommitSample) -> CommitSample:
    return commit(of.offset + 10, of.producer_id)


@pytest.mark.parametrize(
    ("kinds", "groups"),
    [
        pytest.param("tttttt", MEMBERS, id="all-in-transactions"),
        pytest.param("pppppp", MEMBERS, id="none-in-transactions"),
        pytest.param("pppttt", MEMBERS, id="it-went-over-to-transactions"),
        pytest.param("tttppp", MEMBERS, id="it-went-back"),
        pytest.param("tttttptpt", MEMBERS, id="twice-may-be-chance"),
        pytest.param("tptptptpt", NOBODY, id="a-group-without-members-is-reset-by-people"),
        pytest.param("tptptptpt", (), id="members-not-known"),
    ],
)
def test_what_proves_nothing_is_not_named(kinds: str, groups: tuple[Group, ...]) -> None:
    view = view_after(rounds(sampled(commits=mixed(kinds)), groups=groups))
    assert named(judge, view) == []


@pytest.mark.parametrize(
    ("denied", "reasons"),
    [(("__consumer_offsets", "orders"), [Unseen.NOT_AUTHORIZED]), (("orders",), [])],
)
def test_it_needs_the_topic_of_commits(denied: tuple[str, ...], reasons: list[Unseen]) -> None:
    lines = unknown(judge, view_after(rounds(sampled(denied_topics=denied))))
    assert [line.reason for line in lines] == reasons
