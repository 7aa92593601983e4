"""Limits of asking for ends of leader epochs: who comes first, and who waits without a gap."""

from __future__ import annotations

import pytest

from collectors import epoch_ends as epoch_end_collector
from rules.facts.gap import GapCause, GapScope
from tests.factories import commits
from tests.unit.collectors.epoch_rounds import BROKEN, Rounds, about, committed_in, refusing


@pytest.fixture
def two_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(epoch_end_collector, "MAX_PER_LEADER", 2)


@pytest.mark.usefixtures("two_at_once")
def test_beyond_the_limit_questions_come_first_and_commits_wait_without_a_gap() -> None:
    rounds = Rounds()
    older = committed_in(3, 3, 3)
    asked = rounds.read(committed=older, questions=[about((2, 4))])
    assert asked == [(1, [("orders", 0, 3), ("orders", 2, 4)])]
    assert [one[:2] for one in rounds.reported] == [(0, 3), (2, 4)]
    assert rounds.gaps == []
    assert rounds.read(committed=older) == [(1, [("orders", 1, 3), ("orders", 2, 3)])]
    assert [one[:2] for one in rounds.reported] == [(0, 3), (1, 3), (2, 3)]


@pytest.mark.usefixtures("two_at_once")
def test_a_change_that_has_to_wait_is_a_gap_and_asked_about_in_the_next_round() -> None:
    rounds = Rounds()
    rounds.read()
    assert rounds.read((6, 6, 6)) == [(1, [("orders", 0, 5), ("orders", 1, 5)])]
    [gap] = rounds.gaps
    assert (gap.scope, gap.cause) == (GapScope.EPOCHS, GapCause.LIMIT)
    assert "orders-2" in gap.what
    assert rounds.read((6, 6, 6)) == [(1, [("orders", 2, 5)])]
    assert rounds.gaps == []


@pytest.mark.usefixtures("two_at_once")
def test_pairs_that_fail_do_not_take_the_turn_of_others() -> None:
    rounds = Rounds(refusing({0: BROKEN, 1: BROKEN}))
    older = committed_in(3, 3, 3)
    turns = [[number for _, number, _ in rounds.read(committed=older)[0][1]] for _ in range(3)]
    assert turns == [[0, 1], [0, 2], [0, 1]]
    assert rounds.reported == [(2, 3, 3, 2003)]


def test_many_epochs_of_one_partition_have_their_turn_one_after_the_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(epoch_end_collector, "MAX_PER_PARTITION", 2)
    rounds = Rounds()
    many = commits((0, 0, 1), (1, 0, 2), (2, 0, 3), (3, 1, 4), epochs=(1, 2, 3, 4))
    assert rounds.read(committed=many) == [
        (1, [("orders", 0, 1), ("orders", 1, 4)]),
        (1, [("orders", 0, 2)]),
    ]
    assert rounds.read(committed=many) == [(1, [("orders", 0, 3)])]
    assert [one[:2] for one in rounds.reported] == [(0, 1), (0, 2), (0, 3), (1, 4)]


@pytest.mark.usefixtures("two_at_once")
def test_many_epochs_of_one_partition_take_no_turn_of_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(epoch_end_collector, "MAX_PER_PARTITION", 1)
    rounds = Rounds()
    many = commits((0, 0, 1), (1, 0, 2), (2, 0, 3), (3, 1, 4), epochs=(1, 2, 3, 4))
    assert rounds.read(committed=many) == [(1, [("orders", 0, 1), ("orders", 1, 4)])]
