"""Which rounds `tidemark tx` makes, and whom it asks in them."""

from __future__ import annotations

from typing import Any, Final

import pytest

from collectors.producers import HELD_SECONDS
from rules.errors import UnreachableError
from rules.facts.gap import GapCause, GapScope
from rules.facts.snapshot import Snapshot
from rules.question import ProducersQuestion
from service.cli.tx import proof
from service.cli.tx.choosing import Choice, choose, exit_code
from service.cli.tx.command import LEAST_INTERVAL
from service.cli.tx.observing import (
    AT_MOST,
    AT_ONCE,
    ClusterObserver,
    find_hanging,
    observe_at_once,
)
from service.observe.cluster_reader import Scope
from service.terminal.exit_codes import ExitCode
from tests.factories import (
    at,
    gap,
    offsets,
    open_producer,
    partitions,
    producers,
    transactions,
)
from tests.unit.service.cli.tx.given import (
    EMPTY,
    HANGS,
    HELD,
    QUIET,
    RUNS,
    SILENT,
    UNSEEN,
    Rounds,
)


def test_a_quiet_cluster_is_asked_once() -> None:
    source = Rounds(QUIET)
    observe_at_once(ClusterObserver(source))
    assert source.queries == [()]


def test_whoever_holds_an_offset_is_asked_for_in_the_second_round() -> None:
    source = Rounds(HELD, RUNS)
    observe_at_once(ClusterObserver(source))
    [first, [question]] = source.queries
    assert first == ()
    assert isinstance(question, ProducersQuestion)
    assert question.rows.tolist() == [0]


def test_what_nobody_lists_is_confirmed_by_a_third_round() -> None:
    source = Rounds(HELD, HANGS)
    observed = observe_at_once(ClusterObserver(source))
    assert len(source.queries) == 3
    assert [str(one.class_) for one in choose(observed, Choice()).entries] == ["hanging"]


def test_a_list_is_made_even_if_nothing_is_ever_certain() -> None:
    never: dict[str, Any] = {**HANGS, "taken_at": at(0)}  # too soon, again and again
    source = Rounds(never)
    observe_at_once(ClusterObserver(source))
    assert len(source.queries) == AT_ONCE


@pytest.mark.parametrize(
    ("observations", "rounds"),
    [
        ([QUIET], 2),
        ([HELD, RUNS], 2),
        ([HELD, HANGS], 3),
        ([HELD, UNSEEN, UNSEEN, RUNS], 4),
        ([HELD, UNSEEN], AT_MOST),
        ([QUIET, SILENT, SILENT, QUIET], 4),
        ([QUIET, {**QUIET, "gaps": (gap(scope=GapScope.GROUPS),)}], 2),
    ],
)
def test_hanging_makes_the_rounds_that_it_needs(
    observations: list[dict[str, Any]], rounds: int
) -> None:
    begun: list[tuple[int, int]] = []
    source = Rounds(*observations)
    find_hanging(ClusterObserver(source), begin=lambda number, total: begun.append((number, total)))
    assert [questions for questions in source.queries if questions] == []
    assert begun == [(number, max(number, 3)) for number in range(1, rounds + 1)]


NOT_QUERIED: Final[dict[str, Any]] = {**HELD, "producers": producers(rows=4)}
UNSEEN_BEFORE: Final[dict[str, Any]] = {
    **QUIET,
    "offsets": offsets(4, last_stable_offset=[None] * 4),
}


@pytest.mark.parametrize(
    ("first", "rounds"),
    [
        (UNSEEN_BEFORE, 4),  # it may have been held all the time
        ({**QUIET, "partitions": partitions({"__transaction_state": 1}), "offsets": offsets(1)}, 4),
        (QUIET, 2),  # nothing was open then: it has just begun
        # What held the offset has ended, and what comes next was open then too.
        ({**HELD, "offsets": offsets(4, last_stable_offset=[85, 100, 100, 100])}, 4),
    ],
)
def test_whoever_holds_what_was_not_seen_before_is_asked_for(
    first: dict[str, Any], rounds: int
) -> None:
    source = Rounds(first, NOT_QUERIED, HANGS)
    observed = find_hanging(ClusterObserver(source), begin=lambda _number, _total: None)
    assert len(source.queries) == rounds
    if rounds > 2:
        [question] = source.queries[2]
        assert question.rows.tolist() == [0]
        assert proof.conclude(observed).exit_code is ExitCode.HANGING


def moving(number: int, **overrides: Any) -> dict[str, Any]:
    """Return an observation of a busy partition: each one finds another transaction open."""
    stable = offsets(4, last_stable_offset=[90 + number, 100, 100, 100])
    return {**NOT_QUERIED, "offsets": stable, **overrides}


def test_a_busy_partition_is_asked_once_who_holds_it() -> None:
    told = producers(open_producer(start_offset=92), rows=4)
    source = Rounds(
        moving(0), moving(1), moving(2, producers=told, transactions=RUNS["transactions"])
    )
    observed = find_hanging(ClusterObserver(source), begin=lambda _number, _total: None)
    assert [len(questions) for questions in source.queries] == [0, 0, 1]
    assert proof.conclude(observed).exit_code is ExitCode.OK


def test_a_busy_partition_whose_leader_never_tells_is_a_gap() -> None:
    source = Rounds(*(moving(number) for number in range(AT_MOST)))
    observed = find_hanging(ClusterObserver(source), begin=lambda _number, _total: None)
    assert len(source.queries) == AT_MOST
    assert proof.conclude(observed).exit_code is ExitCode.INCOMPLETE


def test_what_hangs_behind_another_transaction_is_asked_for_until_it_is_certain() -> None:
    behind = {
        "producers": producers(open_producer(start_offset=95), rows=4),
        "transactions": transactions(EMPTY, resolved=frozenset({7})),
    }
    source = Rounds(moving(0), moving(1), moving(2, **behind), moving(3, **behind))
    observed = find_hanging(ClusterObserver(source), begin=lambda _number, _total: None)
    assert [len(questions) for questions in source.queries] == [0, 0, 1, 1]
    assert proof.conclude(observed).exit_code is ExitCode.HANGING


def test_what_is_never_told_is_a_gap_and_not_nothing() -> None:
    observed = find_hanging(
        ClusterObserver(Rounds(HELD, NOT_QUERIED)), begin=lambda _number, _total: None
    )
    found = proof.conclude(observed)
    assert found.exit_code is ExitCode.INCOMPLETE
    assert [gap.what for gap in found.gaps] == ["open transactions of 1 partition (orders-0)"]
    at_once = choose(observe_at_once(ClusterObserver(Rounds(NOT_QUERIED))), Choice())
    assert exit_code(observed.view, Choice(), at_once) is ExitCode.INCOMPLETE


def test_what_a_leader_refuses_to_tell_is_not_asked_for_again() -> None:
    rejected = gap(scope=GapScope.PRODUCERS, cause=GapCause.NOT_AUTHORIZED)
    source = Rounds(HELD, {**NOT_QUERIED, "gaps": (rejected,)})
    observed = find_hanging(ClusterObserver(source), begin=lambda _number, _total: None)
    assert (len(source.queries), observed.overlooked) == (2, ())
    assert proof.conclude(observed).exit_code is ExitCode.INCOMPLETE


def test_two_rounds_are_far_enough_apart_to_see_what_is_held() -> None:
    assert LEAST_INTERVAL > HELD_SECONDS


def test_a_cluster_that_is_away_ends_it() -> None:
    class Away(Rounds):
        def read(self, scope: Scope) -> Snapshot:
            del scope
            raise UnreachableError("rejected")

    with pytest.raises(UnreachableError):
        observe_at_once(ClusterObserver(Away()))


def test_another_cluster_id_begins_anew() -> None:
    source = Rounds(HELD, {**HANGS, "cluster_id": "other"}, {**HANGS, "cluster_id": "other"})
    observer = ClusterObserver(source)
    assert [observer.observe().before is None for _ in range(3)] == [True, True, False]
