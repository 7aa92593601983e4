"""What a script learns from the end of `collect --once`."""

from __future__ import annotations

import re

import pytest

from rules.facts.gap import GapCause
from service.cli.collect.command import verdict
from service.observe.cluster_reader import Scope
from service.terminal.exit_codes import ExitCode
from tests.factories import gap, group, partitions, snapshot

TOPICS, GROUPS = Scope(topics=re.compile("audit")), Scope(groups=re.compile("audit"))
SILENT = gap(what="groups coordinated by broker 2", why="no answer within 5.0 s", broker_id=2)
REJECTED = gap(
    what="topic audit", why="needs DESCRIBE on Topic audit", topic="audit",
    cause=GapCause.NOT_AUTHORIZED, broker_id=None,
)  # fmt: skip


def test_a_complete_round_is_ok() -> None:
    assert verdict(snapshot(), Scope()) is ExitCode.OK


def test_a_round_with_gaps_is_incomplete() -> None:
    assert verdict(snapshot(gaps=(SILENT,)), Scope()) is ExitCode.INCOMPLETE


def test_a_filter_that_matches_something_changes_nothing() -> None:
    scope = Scope(topics=re.compile("orders"), groups=re.compile("billing"))
    assert verdict(snapshot(groups=(group("billing"),)), scope) is ExitCode.OK


@pytest.mark.parametrize(("kind", "scope"), [("topic", TOPICS), ("group", GROUPS)])
def test_nothing_matched_in_a_complete_round_is_told(
    kind: str, scope: Scope, capsys: pytest.CaptureFixture[str]
) -> None:
    assert verdict(snapshot(partitions=partitions({})), scope) is ExitCode.NOTHING_MATCHED
    assert capsys.readouterr().err == f"tidemark: no {kind} matches 'audit'\n"


@pytest.mark.parametrize(("kind", "scope"), [("topic", TOPICS), ("group", GROUPS)])
def test_what_was_not_seen_may_match_so_an_incomplete_round_never_says_nothing_does(
    kind: str, scope: Scope, capsys: pytest.CaptureFixture[str]
) -> None:
    seen = snapshot(partitions=partitions({}), gaps=(SILENT, gap()))
    assert verdict(seen, scope) is ExitCode.INCOMPLETE
    assert capsys.readouterr().err == (
        f"tidemark: no {kind} that matches 'audit' was seen; the round has 2 gaps, the first: "
        "groups coordinated by broker 2: no answer within 5.0 s\n"
    )


def test_a_gap_about_what_was_asked_for_is_the_one_that_is_told(
    capsys: pytest.CaptureFixture[str],
) -> None:
    seen = snapshot(partitions=partitions({}), gaps=(SILENT, REJECTED))
    assert verdict(seen, TOPICS) is ExitCode.INCOMPLETE
    assert "topic audit: needs DESCRIBE on Topic audit" in capsys.readouterr().err


def test_a_single_gap_is_not_called_the_first(capsys: pytest.CaptureFixture[str]) -> None:
    verdict(snapshot(partitions=partitions({}), gaps=(REJECTED,)), TOPICS)
    assert "the round has 1 gap: topic audit: needs" in capsys.readouterr().err
