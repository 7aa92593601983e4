"""What waits for the database: bounded, in order, and what is lost is counted."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

import pytest

from rules.open_findings import Change, Step
from rules.verdict import Verdict
from service.storage.checkpoint_format import Checkpoint
from service.storage.clusters import ClusterKey, RoundId
from service.storage.pending import Pending
from service.storage.rounds import Round
from tests.factories import at

BREACH, UNKNOWN = Verdict.BREACH, Verdict.UNKNOWN


def change(step: Step, before: Verdict | None, after: Verdict | None, name: str = "a") -> Change:
    return Change(step=step, identity=("some_rule", (("topic", name),)), before=before, after=after)


def waiting(number: int, *, tells: bool = False, cluster: str = "one") -> Round:
    """Return a round about a finding that no other round mentions."""
    step, before = (Step.OPENED, None) if tells else (Step.STILL, BREACH)
    return saying(number, change(step, before, BREACH, str(number)), cluster=cluster)


def saying(number: int, *changes: Change, cluster: str = "one") -> Round:
    return Round(
        cluster=ClusterKey("default", cluster),
        round_id=RoundId(UUID(int=1), number),
        at=at(number),
        changes=changes,
        checkpoint=Checkpoint(),
    )


def filled(limit: int, *rounds: Round) -> Pending:
    pending = Pending(limit=limit)
    for one in rounds:
        pending = pending.add(one)
    return pending


def numbers(pending: Pending) -> list[int]:
    return [one.round_id.number for one in pending.rounds]


def test_order_is_kept() -> None:
    assert numbers(filled(3, waiting(1), waiting(2), waiting(3))) == [1, 2, 3]


def test_only_the_newest_checkpoint_of_a_cluster_waits() -> None:
    pending = filled(4, waiting(1), waiting(2, cluster="two"), waiting(3))
    assert [one.checkpoint is not None for one in pending.rounds] == [False, True, True]
    assert pending.lost_rounds == 0


def test_the_oldest_round_without_a_transition_goes_first() -> None:
    pending = filled(3, waiting(1, tells=True), waiting(2), waiting(3), waiting(4))
    assert numbers(pending) == [1, 3, 4]
    assert (pending.lost_rounds, pending.lost_transitions) == (1, 0)


def test_then_the_oldest_of_all_and_its_transitions_are_counted() -> None:
    pending = filled(2, *(waiting(number, tells=True) for number in (1, 2, 3, 4)))
    assert numbers(pending) == [3, 4]
    assert (pending.lost_rounds, pending.lost_transitions) == (2, 2)


def test_the_newest_never_goes() -> None:
    pending = filled(2, waiting(1, tells=True), waiting(2, tells=True), waiting(3))
    assert numbers(pending) == [2, 3]


def test_a_buffer_for_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="holds nothing"):
        Pending(limit=0)


OPENED = change(Step.OPENED, None, BREACH)
STILL = change(Step.STILL, BREACH, BREACH)
AGAIN = change(Step.AGAIN, BREACH, BREACH)
DARKER = change(Step.UNKNOWN, BREACH, UNKNOWN)
DARK = change(Step.UNKNOWN, UNKNOWN, UNKNOWN)


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        ([[OPENED], [STILL], [STILL], [STILL]], [[OPENED], [STILL]]),
        ([[STILL], [DARKER], [DARK], [DARK]], [[STILL], [DARKER], [DARK]]),
        ([[STILL], []], [[STILL], []]),
        ([[OPENED], [AGAIN], [AGAIN]], [[OPENED], [AGAIN], [AGAIN]]),
        ([[], []], [[]]),
    ],
    ids=["breach-after-breach", "time-of-last-breach", "not-mentioned-again", "events", "nothing"],
)
def test_what_a_later_round_says_again_does_not_wait(
    said: Sequence[Sequence[Change]], kept: Sequence[Sequence[Change]]
) -> None:
    rounds = [saying(number, *changes) for number, changes in enumerate(said)]
    pending = filled(9, *rounds)
    assert [list(one.changes) for one in pending.rounds] == kept
    assert (pending.lost_rounds, pending.lost_transitions) == (0, 0)


def test_a_change_of_the_verdict_is_a_transition() -> None:
    assert DARKER.is_transition
    assert AGAIN.is_transition
    assert waiting(1, tells=True).transitions == 1
    assert waiting(1).transitions == 0
