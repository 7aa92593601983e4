"""What a suspicion asks the leaders, and what their logs show of producers over a change."""

from __future__ import annotations

from typing import Any, Final

import pytest

from rules.catalogue import sequence_gap_loss
from rules.facts.suspicions import BreakKind
from rules.question import BatchesQuestion, ProducersQuestion
from tests.factories import at, transactions
from tests.unit.rules.sequence.stage import batch, found
from tests.unit.rules.suspicion.counted import (
    CHANGED,
    ELSEWHERE,
    LATE,
    QUIET,
    ROSE,
    errors,
    only,
    play,
    seen,
)


def test_nothing_is_queried_before_something_is_suspected() -> None:
    views = play(seen(QUIET, **LATE), seen(QUIET, **LATE), seen(ROSE, **LATE))
    questions = [sequence_gap_loss.judge(view).questions for view in views]
    assert questions[:2] == [(), ()]
    [states] = questions[2]
    assert isinstance(states, ProducersQuestion)
    assert (states.rows.tolist(), states.newest_producers > 0, states.is_urgent) == (
        [0],
        True,
        False,
    )


def test_leaders_are_queried_a_few_times_and_never_again() -> None:
    views = play(seen(QUIET, **LATE), *[seen(ROSE, newest={0: (7,)}, **LATE)] * 9)
    asked = [bool(sequence_gap_loss.judge(view).questions) for view in views]
    assert asked == [False, *[True] * 4, *[False] * 5]
    [_, batches] = sequence_gap_loss.judge(views[2]).questions
    assert isinstance(batches, BatchesQuestion)
    [request] = batches.requests
    assert (request.producer_id, request.offset, request.sequence) == (7, None, None)
    assert request.last_record_at == at(-60)


def test_what_lost_nothing_does_not_use_up_the_queries_of_a_loss() -> None:
    other: dict[str, Any] = {"leaders": [1, 1], "epochs": [7, 0], "isr": (1,), "allowed": True}
    counts = [errors(*((0, 15 * n + 14, n) for n in range(1, m))) for m in range(2, 34)]
    lost = {**other, "epochs": [7, 1], "ends": ((1, 0, 73),)}
    views = play(
        seen(QUIET, **other),
        *(seen(one, second=15.0 * m, **other) for m, one in enumerate(counts[:-1], 1)),
        seen(counts[-1], second=15.0 * len(counts), **lost),
    )
    asked = [only(view).is_querying for view in views[1:]]
    assert (asked[:24], asked[24:]) == ([True] * 24, [*[False] * 7, True])


UNKNOWN_CHANGE: Final = (
    seen(QUIET, isr=(1,), allowed=True, brokers=ELSEWHERE),
    seen(errors((0, 14, 1), address="broker-2:7071"), ends=((0, 0, 100),), end=103, **CHANGED),
)
OLD: Final = batch(97, 0, 3, leader_epoch=0)


def after_change(*batches: Any, **options: Any) -> dict[str, Any]:
    log = [found(*batches, **options)] if batches else []
    return seen(
        errors((0, 14, 1), address="broker-2:7071"),
        newest={0: (7,)},
        found=log,
        end=103,
        **CHANGED,
    )


BREAKS: Final[dict[str, tuple[Any, str, list[BreakKind]]]] = {
    "continued": ((OLD, batch(100, 3, 3, leader_epoch=1)), "nothing_missing", []),
    "new-epoch": (
        (OLD, batch(100, 0, 3, leader_epoch=1, epoch=1)),
        "leader_changed",
        [BreakKind.NEW_EPOCH],
    ),
    "silent": ((OLD,), "leader_changed", [BreakKind.SILENT]),
    "new-producer": ((batch(100, 0, 3, leader_epoch=1),), "nothing_missing", []),
    "starts-late": (
        (batch(100, 24, 3, leader_epoch=1),),
        "leader_changed",
        [BreakKind.STARTS_LATE],
    ),
}


@pytest.mark.parametrize("name", BREAKS)
def test_what_producers_wrote_over_a_change_shows_whether_one_met_a_loss(name: str) -> None:
    batches, outcome, kinds = BREAKS[name]
    views = play(*UNKNOWN_CHANGE, after_change(), after_change(*batches))
    assert [str(only(view).outcome) for view in views[1:]] == [*["leader_changed"] * 2, outcome]
    [partition] = only(views[-1]).partitions
    assert [one.kind for one in partition.breaks] == kinds
    assert all(one.is_over_change for one in partition.breaks)


def test_a_log_that_was_not_scanned_to_its_end_proves_nothing() -> None:
    batches = BREAKS["continued"][0]
    views = play(*UNKNOWN_CHANGE, after_change(), after_change(*batches, observed=(0, 101)))
    assert str(only(views[-1]).outcome) == "leader_changed"


def test_another_epoch_in_one_leader_epoch_is_shown_and_harmless() -> None:
    log = [found(batch(97, 0, 3, leader_epoch=0), batch(100, 0, 3, leader_epoch=0, epoch=1))]
    views = play(seen(QUIET), seen(ROSE), seen(ROSE, newest={0: (7,)}, found=log))
    [partition] = only(views[-1]).partitions
    assert str(only(views[-1]).outcome) == "nothing_missing"
    assert [(one.kind, one.is_over_change) for one in partition.breaks] == [
        (BreakKind.NEW_EPOCH, False)
    ]


def test_a_cluster_with_transactions_proves_nothing_by_its_producers() -> None:
    """With transactions v2 a leader rejects a producer that it does not know: all of it may be lost."""
    batches = BREAKS["continued"][0]
    used = {"transactions": transactions(was_ever_used=True)}
    views = play(*UNKNOWN_CHANGE, after_change() | used, after_change(*batches) | used)
    assert str(only(views[-1]).outcome) == "leader_changed"
