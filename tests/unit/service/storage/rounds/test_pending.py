"""What waits for the database: bounded, in order, and what is lost is counted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from uuid import UUID

import pytest

from rules.open_findings import Change, Step
from rules.verdict import Verdict
from service.storage.formats.checkpoint import Checkpoint
from service.storage.rounds.clusters import ClusterKey, RoundId
from service.storage.rounds.pending import PART_CHANGES, WAITING_EVENTS, Pending
from service.storage.rounds.rounds import Round
from tests.factories import at, change_event

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


def test_a_buffer_for_nothing_is_rejected() -> None:
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


def flapping(number: int, changes: int, *, tells: bool = True, cluster: str = "one") -> Round:
    """Return a round with changes of which none is like another round's."""
    step, before = (Step.OPENED, None) if tells else (Step.STILL, BREACH)
    names = (f"{number}-{topic}" for topic in range(changes))
    return saying(number, *(change(step, before, BREACH, name) for name in names), cluster=cluster)


def bounded(max_changes: int, *rounds: Round) -> Pending:
    pending = Pending(max_changes=max_changes)
    for one in rounds:
        pending = pending.add(one)
    return pending


def test_too_many_changes_drop_the_oldest_rounds_and_count_what_they_told() -> None:
    pending = bounded(10, *(flapping(number, 4) for number in range(6)))
    assert numbers(pending) == [4, 5]
    assert (pending.lost_rounds, pending.lost_transitions) == (4, 16)


def test_of_too_many_changes_those_that_tell_nobody_go_first() -> None:
    pending = bounded(10, flapping(1, 4), flapping(2, 4, tells=False), flapping(3, 4))
    assert numbers(pending) == [1, 3]
    assert (pending.lost_rounds, pending.lost_transitions) == (1, 0)


def test_a_round_without_changes_does_not_go_for_the_changes_of_others() -> None:
    remembered = saying(1, cluster="two")
    pending = bounded(10, remembered, flapping(2, 8), flapping(3, 8))
    assert numbers(pending) == [1, 3]


def test_the_newest_round_waits_however_large_it_is() -> None:
    pending = bounded(10, flapping(1, 4), flapping(2, 50))
    assert numbers(pending) == [2]
    assert numbers(pending.add(flapping(3, 4))) == [3]


def test_what_can_no_longer_be_said_again_is_not_observed_through_every_round() -> None:
    class Untouched(tuple[Change, ...]):
        __slots__ = ()

        def __iter__(self) -> Iterator[Change]:
            pytest.fail("it was scanned")

    pending = filled(9, flapping(1, 3), flapping(2, 3), flapping(3, 3))
    for old in pending.rounds[:-1]:
        object.__setattr__(old, "changes", Untouched(old.changes))
    assert numbers(pending.add(flapping(4, 3))) == [1, 2, 3, 4]


def test_a_part_is_what_one_transaction_stores() -> None:
    many = filled(200, *(waiting(number, tells=True) for number in range(120)))
    parts = []
    while many.rounds:
        part, many = many.first_part()
        parts.append(len(part))
    assert parts == [50, 50, 20]


def test_a_part_has_few_changes_but_at_least_one_round() -> None:
    sizes = [PART_CHANGES // 2, PART_CHANGES // 2, 1, PART_CHANGES + 1, 1]
    large = filled(9, *(flapping(number, size) for number, size in enumerate(sizes)))
    parts: list[list[int]] = []
    while large.rounds:
        part, large = large.first_part()
        parts.append([len(one.changes) for one in part])
    most = PART_CHANGES
    assert parts == [[most // 2, most // 2], [1], [most], [1, 1]], "the last piece is a round"


def with_events(round_: Round, *topics: str) -> Round:
    return replace(round_, change_events=tuple(change_event(topic) for topic in topics))


def test_change_events_outlive_a_round_that_is_dropped() -> None:
    first, second = with_events(waiting(1), "a", "b"), with_events(waiting(2), "c")
    pending = filled(2, first, second, waiting(3), waiting(4, cluster="two"))
    assert [[event.topics for event in one.change_events] for one in pending.rounds] == [
        [("a",), ("b",), ("c",)],
        [],
    ]


def test_change_events_are_bounded_and_the_oldest_go_first() -> None:
    many = [str(number) for number in range(WAITING_EVENTS)]
    pending = filled(2, with_events(waiting(1), *many), with_events(waiting(2), "new"))
    [_, newest] = pending.rounds
    assert [event.topics for event in newest.change_events] == [
        (name,) for name in [*many[1:], "new"]
    ]


def test_change_events_are_stored_with_the_checkpoint_that_contains_them() -> None:
    large = saying(100, *(change(Step.OPENED, None, BREACH, str(n)) for n in range(6)))
    part, rest = filled(1, with_events(large, "a")).first_part(most=4)
    [last], _ = rest.first_part(most=4)
    assert [len(one.change_events) for one in (*part, last)] == [0, 1]
    assert [one.checkpoint is None for one in (*part, last)] == [True, False]
