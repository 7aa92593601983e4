"""A case per class: what the rounds saw, and what has to be said of the episode.

Producer 7 writes to orders-0. Its last accepted sequence is at offset 99 or below, and the
rejected batch would have got offset 100.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from rules.facts.broker_log import (
    LogEvent,
)
from rules.facts.sequence_verdicts import Phase, SequenceClass
from rules.sequence.explained import explain_episode
from tests.factories import unseen_offsets
from tests.unit.rules.sequence.case_observations import (
    ALONE,
    OLD_BATCH,
    REORDERED,
    RETURNED,
    Case,
    line_of_2,
    of_2,
)
from tests.unit.rules.sequence.cases import CASES
from tests.unit.rules.sequence.lines import (
    rejected,
)
from tests.unit.rules.sequence.stage import (
    Observation,
    batch,
    found,
    play,
    verdict,
    watched,
)


@pytest.mark.parametrize("case", CASES.values(), ids=list(CASES))
def test_case(case: Case) -> None:
    assert verdict(*case.observations) == case.says, case.because


@pytest.mark.parametrize("name", CASES)
def test_a_loss_is_bounded_by_its_gap_and_nothing_else_is(name: str) -> None:
    for view in play(CASES[name].observations):
        for episode in view.memory.sequences.episodes:
            is_loss = episode.verdict.class_ is SequenceClass.LOSS
            assert (episode.verdict.at_most_records is not None) == is_loss


def test_the_textbook_case_says_24() -> None:
    episode = watched(ALONE, line_of_2(), of_2(12, found=[found(OLD_BATCH)]))
    said = episode.verdict
    assert (said.lost_from, said.lost_to, said.lost_offsets) == (100, 124, 24)
    assert said.at_most_records == 24
    assert not episode.is_querying


def test_a_former_leader_that_returns_shows_the_exact_range() -> None:
    said = watched(*CASES["seemingly-clean-and-the-old-leader-returns"].observations).verdict
    assert (said.lost_from, said.lost_to, said.lost_offsets) == (100, 124, 24)
    observations = [*CASES["textbook"].observations, of_2(60, lines=_returned_with(130))]
    said = watched(*observations).verdict
    assert (said.lost_from, said.lost_to) == (100, 130)


def _returned_with(end: int) -> tuple[LogEvent, ...]:
    return replace(RETURNED[0], log_end_offset=end), *RETURNED[1:]


def test_an_unclean_change_bounds_a_loss_by_the_gap_alone() -> None:
    said = watched(*CASES["unclean-and-unhealed"].observations).verdict
    assert (said.lost_offsets, said.at_most_records) == (None, 1)


def test_a_loss_and_a_later_reordering_are_a_loss() -> None:
    """Java raises its epoch after a true loss, goes on, and then a batch overtakes another."""
    later = rejected(12, 8, broker=2, second=30, offset=120)
    again = batch(100, 0, 9, leader_epoch=6, epoch=1)
    observations = (
        ALONE,
        line_of_2(),
        of_2(12, found=[found(OLD_BATCH)]),
        of_2(31, lines=(later,)),
        of_2(32, found=[found(OLD_BATCH, again)]),
    )
    episode = watched(*observations)
    assert episode.verdict.class_ is SequenceClass.LOSS
    assert [rejection.proof for rejection in episode.rejections] == [None, "same_leader_epoch"]


def test_exactly_one_failing_producer_makes_it_the_client_s() -> None:
    for name in ("same-leader-epoch", "clean-changes"):
        [episode] = play(CASES[name].observations, lambda *_: "producer-1")[
            -1
        ].memory.sequences.episodes
        assert episode.verdict.class_ is SequenceClass.CLIENT_FAILURE
        assert episode.verdict.phase is Phase.CONFIRMED
    for name in (
        "filled",
        "textbook",
        "seemingly-clean-and-a-small-gap",
        "stale-retry",
        "epochs-above-zero",
        "just-seen",
    ):
        [episode] = play(CASES[name].observations, lambda *_: "producer-1")[
            -1
        ].memory.sequences.episodes
        assert (episode.verdict.class_, episode.verdict.reason) == (
            CASES[name].says[0],
            CASES[name].says[2],
        )


def test_two_producers_on_one_partition_are_two_episodes() -> None:
    lines = (rejected(27, 2), rejected(6, 2, producer_id=8))
    views = play(
        [
            Observation(second=0),
            Observation(second=11, lines=lines),
            Observation(second=12, found=[found(batch(97, 0, 3), producer_id=8)]),
        ]
    )
    said = {
        episode.producer_id: episode.verdict.reason
        for episode in views[-1].memory.sequences.episodes
    }
    assert said == {7: "large_gap", 8: "same_leader_epoch"}


def test_batches_of_a_hundred_make_a_gap_of_300_small() -> None:
    late = batch(0, 0, 100, leader_epoch=4)
    episode = watched(
        Observation(second=0),
        Observation(second=11, lines=(rejected(400, 99),)),
        Observation(second=12, found=[found(late, largest=100)]),
    )
    assert episode.largest_batch == 100
    assert episode.verdict.class_ is SequenceClass.REORDERING


def test_what_is_unseen_is_never_confirmed() -> None:
    unseen = Observation(second=12, leader=None, epoch=None, more={"offsets": unseen_offsets(1)})
    said = watched(
        Observation(second=0), REORDERED, replace(unseen, found=[found(batch(97, 0, 3))])
    )
    assert not said.verdict.is_confirmed


@pytest.mark.parametrize(
    ("name", "is_reported"),
    [
        pytest.param("filled", False, id="it never changed"),
        pytest.param("filled-after-a-change-of-leader", True, id="it changed, and the gap healed"),
        pytest.param("textbook", True, id="it changed"),
        pytest.param("stale-retry", False, id="behind"),
    ],
)
def test_a_leader_is_said_to_have_changed_only_if_it_has(name: str, *, is_reported: bool) -> None:
    said = str(explain_episode(watched(*CASES[name].observations)).evidence)
    assert ("the leader has changed since" in said) == is_reported
