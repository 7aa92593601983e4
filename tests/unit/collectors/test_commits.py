"""Commits over rounds: what is read by the layout of the last answers is what a new reader reads."""

from __future__ import annotations

from typing import Final

import pytest

from collectors.commits import CommitReader
from collectors.session import Session
from collectors.wire.api import OFFSET_FETCH
from rules.facts.gap import Gap
from rules.facts.groups import Commits
from tests.factories import broker, group, partitions
from tests.unit.collectors.fake_pool import Prepared, session_of
from tests.unit.collectors.wire.messages import CommitEntry, offset_fetch_answer

FIRST, SECOND = broker(1), broker(2)
GROUPS: Final = (group("a"), group("b", coordinator=2), group("c"))
PLACED: Final = partitions({"orders": 3, "audit": 2})
Answered = dict[str, tuple[int, dict[str, list[CommitEntry]]]]


def answered(first: int, *, epoch: int = 1, metadata: str | None = "", error: int = 0) -> Answered:
    """Return what broker 1 answers, the offsets from `first` on; group a committed elsewhere too."""
    return {
        "a": (
            0,
            {
                "gone": [(0, 0, first, epoch, "")],
                "orders": [(2, 0, first + 1, epoch, metadata), (0, error, first + 2, -1, None)],
                "audit": [(1, 0, first + 3, epoch, ""), (1, 0, first + 3, epoch, "")],
            },
        ),
        "c": (0, {"orders": [(1, 0, first + 4, epoch, "")]}),
    }


def read(
    reader: CommitReader, told: Answered, other: Prepared | None = None
) -> tuple[Commits, int, list[Gap]]:
    """Make a round; broker 2 answers for group b."""
    second = offset_fetch_answer({"b": (0, {"audit": [(0, 0, 7, 1, "")]})})
    session: Session = session_of(
        FIRST,
        SECOND,
        answers={
            (FIRST, OFFSET_FETCH): offset_fetch_answer(told),
            (SECOND, OFFSET_FETCH): second if other is None else other,
        },
    )
    collected = reader.collect(session, GROUPS, PLACED, all_topics=True)
    return collected.commits, collected.duplicates, session.gaps


def values(commits: Commits) -> list[tuple[int | None, ...]]:
    columns = (
        commits.group.tolist(),
        commits.row.tolist(),
        commits.committed_offset.tolist(),
        commits.committed_leader_epoch.to_list(),
        commits.nothing_to_read.to_list(),
    )
    return list(zip(*columns, strict=True))


def test_other_offsets_and_epochs_are_read_by_the_layout_of_the_last_answers() -> None:
    reader = CommitReader()
    before, _, _ = read(reader, answered(10))
    after, duplicates, gaps = read(reader, answered(10_000_000_000, epoch=2))
    fresh = read(CommitReader(), answered(10_000_000_000, epoch=2))
    assert after.row is before.row  # not made anew
    assert (values(after), duplicates, gaps) == (values(fresh[0]), 1, fresh[2])
    assert [gap.topic for gap in gaps] == ["gone"]


@pytest.mark.parametrize(
    "other",
    [
        answered(10, metadata="text"),
        answered(10, error=29),
        answered(-1),
        {**answered(10), "c": (0, {"orders": [(2, 0, 14, 1, "")]})},
        {**answered(10), "c": (16, {})},
        {"a": answered(10)["a"]},
    ],
    ids=["metadata", "error", "no-commit", "partition", "group-error", "group-left-out"],
)
def test_what_differs_in_more_is_read_anew(other: Answered) -> None:
    reader = CommitReader()
    read(reader, answered(10))
    for told in (other, answered(20)):
        after, duplicates, gaps = read(reader, told)
        fresh = read(CommitReader(), told)
        assert (values(after), duplicates, gaps) == (values(fresh[0]), *fresh[1:])


def test_commits_of_a_silent_coordinator_are_not_those_of_the_last_round() -> None:
    reader = CommitReader()
    read(reader, answered(10))
    commits, _, gaps = read(reader, answered(10), b"")
    assert 1 not in commits.group
    assert gaps[0].what == "commits of 1 group (b)"
