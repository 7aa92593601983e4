"""Whether a rejected batch came after all, where it is proven that nothing acknowledged is missing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import pytest

from rules.sequence.explained import explain_episode
from rules.sequence.words import NOTHING
from tests.unit.rules.catalogue.sequence_rules import breaches
from tests.unit.rules.sequence.case_observations import NOT_READABLE
from tests.unit.rules.sequence.lines import earliest_seen, expected_zero, new_epoch, rejected
from tests.unit.rules.sequence.stage import (
    PATIENCE,
    Observation,
    batch,
    found,
    marker,
    play,
    remembered,
    watched,
)

BEFORE: Final = batch(97, 0, 3)
REJECTED: Final = (
    Observation(second=0),
    Observation(second=11, lines=[rejected(33, 2, second=4 + n) for n in range(6)]),
)
UNREAD: Final = Observation(second=11 + PATIENCE)
LATE: Final = 12 + PATIENCE


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """What the rounds saw, what is said of the batch, and how many records did not come."""

    because: str
    observations: tuple[Observation, ...]
    arrival: str
    reason: str
    unwritten: int | None = None


CASES: Final = {
    "not-yet": Case(
        because="its client may still send it",
        observations=(*REJECTED, Observation(second=12, found=[found(BEFORE)])),
        arrival="awaited",
        reason="same_leader_epoch",
    ),
    "given-up": Case(
        because="nothing came up to the end of the log, in the time of a client: 30 records and it",
        observations=(
            *REJECTED,
            Observation(second=12, found=[found(BEFORE)]),
            UNREAD,
            Observation(second=LATE, found=[found(BEFORE)]),
        ),
        arrival="not_arrived",
        reason="not_arrived",
        unwritten=31,
    ),
    "given-up-at-the-start-of-an-epoch": Case(
        because="likewise, where the line has the epoch",
        observations=(
            Observation(second=0),
            Observation(second=11, lines=(new_epoch(8, 1),)),
            Observation(second=12, found=[found(BEFORE)]),
            UNREAD,
            Observation(second=LATE, found=[found(BEFORE)]),
        ),
        arrival="not_arrived",
        reason="not_arrived",
        unwritten=9,
    ),
    "healed": Case(
        because="a later entry of the same epoch holds it",
        observations=(
            *REJECTED,
            Observation(second=12, found=[found(BEFORE, batch(100, 3, 30), batch(130, 33, 30))]),
        ),
        arrival="arrived",
        reason="filled",
    ),
    "healed-at-the-second-observation": Case(
        because="continuity was proven before it came",
        observations=(
            *REJECTED,
            Observation(second=12, found=[found(BEFORE)]),
            Observation(second=13, found=[found(BEFORE, batch(100, 3, 30), batch(130, 33, 30))]),
        ),
        arrival="arrived",
        reason="filled",
    ),
    "healed-by-the-state": Case(
        because="the leader remembers a later sequence",
        observations=(
            *REJECTED,
            Observation(second=12, states=remembered(2)),
            Observation(second=13, states=remembered(62)),
        ),
        arrival="arrived",
        reason="filled",
    ),
    "only-what-was-missing": Case(
        because="the batch itself has not come yet",
        observations=(*REJECTED, Observation(second=12, found=[found(BEFORE, batch(100, 3, 30))])),
        arrival="awaited",
        reason="filled",
    ),
    "under-a-newer-epoch": Case(
        because="the log does not show whether the client sent it once more",
        observations=(
            *REJECTED,
            Observation(second=12, found=[found(BEFORE, batch(100, 0, 40, epoch=1))]),
        ),
        arrival="newer_epoch",
        reason="same_leader_epoch",
        unwritten=31,
    ),
    "a-transaction-that-was-aborted": Case(
        because="its marker is the next that the producer has there",
        observations=(
            Observation(second=0),
            Observation(second=11, lines=(expected_zero(8),)),
            Observation(
                second=12,
                found=[
                    found(
                        batch(90, 0),
                        batch(101, 0, 9, epoch=2),
                        markers=(marker(91, epoch=1), marker(100, epoch=2)),
                    )
                ],
                states=remembered(8, epoch=2),
            ),
        ),
        arrival="newer_epoch",
        reason="same_leader_epoch",
        unwritten=9,
    ),
    "a-transaction-of-a-producer-that-wrote-elsewhere": Case(
        because="its epoch is above the one of the last marker here",
        observations=(
            Observation(second=0),
            Observation(second=11, lines=(expected_zero(8),)),
            Observation(
                second=12,
                found=[
                    found(
                        batch(90, 0),
                        batch(100, 0, 8, epoch=7),
                        batch(108, 8, 2, epoch=7),
                        markers=(marker(91, epoch=1),),
                    )
                ],
                states=remembered(9, epoch=7),
            ),
        ),
        arrival="arrived",
        reason="filled",
    ),
    "the-first-transaction-of-a-later-epoch": Case(
        because="likewise, of a producer that never wrote here",
        observations=(
            Observation(second=0),
            Observation(second=11, lines=(expected_zero(8),)),
            Observation(
                second=12,
                found=[found(batch(100, 0, 8, epoch=7), batch(108, 8, 2, epoch=7))],
                states=remembered(9, epoch=7),
            ),
        ),
        arrival="arrived",
        reason="filled",
    ),
    "earliest-seen-of-a-new-instance": Case(
        because="the line has no epoch, and the one before is of an older instance",
        observations=(
            Observation(second=0),
            Observation(second=11, lines=(earliest_seen(3, 0),)),
            Observation(
                second=12,
                found=[found(BEFORE, batch(100, 0, 3, epoch=1), batch(103, 3, 3, epoch=1))],
            ),
        ),
        arrival="arrived",
        reason="earliest_seen",
    ),
    "nobody-may-read": Case(
        because="the lines prove that nothing is lost, and nobody could search for the batch",
        observations=(
            Observation(second=0, epoch=0),
            Observation(second=11, epoch=0, lines=(rejected(33, 2),)),
            *(
                Observation(second=second, epoch=0, gaps=(NOT_READABLE,))
                for second in (12, 13, 14, 15, 150, 151, 152, 400)
            ),
        ),
        arrival="not_known",
        reason="first_leader_epoch",
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=list(CASES))
def test_case(case: Case) -> None:
    said = explain_episode(watched(*case.observations))
    assert (said.phase, said.reason) == ("confirmed", case.reason), case.because
    assert (said.evidence["arrival"], said.evidence["unwritten_records"]) == (
        case.arrival,
        case.unwritten,
    ), case.because


@pytest.mark.parametrize("case", CASES.values(), ids=list(CASES))
def test_nothing_has_to_be_done_only_where_it_is_known_to_have_come(case: Case) -> None:
    said = explain_episode(watched(*case.observations))
    is_in_transaction = said.transaction is not None  # of which the end is not known
    is_said = said.check.startswith(NOTHING)
    assert is_said == (case.arrival == "arrived" and not is_in_transaction)
    if case.unwritten is not None:
        assert f"at least {case.unwritten} records" in said.explanation
    is_open = case.arrival == "awaited" or is_in_transaction
    assert (said.needed_evidence is not None) == is_open


def test_both_are_reported_and_the_second_when_it_is_known() -> None:
    assert breaches(play((*CASES["given-up"].observations, Observation(second=LATE + 1)))) == [
        (2, "reordering", "reordered"),
        (4, "reordering", "not_arrived"),
    ]
    assert breaches(play(CASES["healed-at-the-second-observation"].observations)) == [
        (2, "reordering", "reordered"),
        (3, "reordering", "reordered"),
    ]
    assert breaches(play(CASES["healed"].observations)) == [(2, "reordering", "reordered")]


def test_a_batch_that_is_rejected_once_more_is_awaited_again() -> None:
    again = Observation(second=LATE + 5, lines=(rejected(33, 2, second=LATE + 4),))
    said = explain_episode(watched(*CASES["given-up"].observations, again))
    assert (said.reason, said.evidence["arrival"]) == ("same_leader_epoch", "awaited")
