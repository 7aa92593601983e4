"""What is made of changes of leader: of their lines, of those that nobody saw, and of many at once."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Final

import pytest

from rules.facts.broker_log import Origin, UncleanChange
from rules.facts.identity import BrokerId
from rules.sequence import changes
from tests.factories import at, offsets, topic_id
from tests.unit.rules.sequence.case_observations import ALONE, LOST, OLD_BATCH, of_2
from tests.unit.rules.sequence.lines import rejected
from tests.unit.rules.sequence.stage import NAME, PATIENCE, Observation, found, play, verdict

CONFIRMED, SUSPECTED = "confirmed", "suspected"
LATE: Final = 12 + PATIENCE


def elected(leader: int, leader_epoch: int, **more: Any) -> UncleanChange:
    """Return the controller's line about an election that it calls unclean."""
    return UncleanChange(
        origin=Origin(source="controller", at=at(5)),
        topic="orders",
        partition=0,
        topic_id=topic_id("orders"),
        leader=BrokerId(leader),
        leader_epoch=leader_epoch,
        **more,
    )


def unhealed(
    before: Observation, change: Observation, *, incoming: int = 6
) -> tuple[Observation, ...]:
    """Return the rounds of a change, a rejection after it, and what did not come in time."""
    later = replace(change, lines=(), ends=())
    rejection = rejected(incoming, 2, broker=change.leader or 1)
    return (
        before,
        change,
        replace(later, second=11, lines=(rejection,)),
        replace(later, second=12, found=[found(OLD_BATCH)]),
        replace(later, second=LATE - 1),
        replace(later, second=LATE, found=[found(OLD_BATCH)]),
    )


ENDS: Final = ((0, 5, 100),)
ONE: Final = (BrokerId(1),)
TWO: Final = (BrokerId(2),)


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """What the rounds saw, and what is said after the last one."""

    because: str
    observations: tuple[Observation, ...]
    says: tuple[str, str, str]  # class, phase, reason


FORBIDDEN: Final = Observation(second=0, isr=(1,), is_unclean_allowed=False)
LINES: Final = {
    "the-last-known-leader": Case(
        because="it is called unclean, and loses nothing that the same broker has on its disk",
        observations=unhealed(
            FORBIDDEN,
            replace(
                FORBIDDEN,
                second=6,
                epoch=7,
                ends=ENDS,
                lines=(elected(1, 7, last_known_elr_before=ONE),),
            ),
        ),
        says=("loss", SUSPECTED, "change_not_known"),
    ),
    "another-last-known-leader": Case(
        because="it led unseen between the observations, and was elected again",
        observations=unhealed(
            Observation(second=0, is_unclean_allowed=False),
            Observation(
                second=6,
                leader=2,
                epoch=8,
                isr=(2,),
                is_unclean_allowed=False,
                ends=ENDS,
                lines=(elected(2, 8, last_known_elr_before=TWO),),
            ),
        ),
        says=("loss", SUSPECTED, "change_not_known"),
    ),
    "an-eligible-one": Case(
        because="a replica of the ELR has all that was committed",
        observations=unhealed(
            Observation(second=0),
            Observation(second=6, leader=2, epoch=7, isr=(2,), ends=ENDS,
                 lines=(elected(2, 7, elr_before=TWO),)),
        ),
        says=("loss", SUSPECTED, "change_not_known"),
    ),
    "who-led-at-the-last-observation": Case(
        because="the line says nothing of who was last known, and the last observation does",
        observations=unhealed(
            FORBIDDEN, replace(FORBIDDEN, second=6, epoch=7, ends=ENDS, lines=(elected(1, 7),))
        ),
        says=("loss", SUSPECTED, "change_not_known"),
    ),
    "another-one-than-the-last-known": Case(
        because="another broker was the last known leader: who was elected may lack what it had",
        observations=unhealed(
            Observation(second=0),
            Observation(second=6, leader=2, epoch=7, isr=(2,), ends=ENDS,
                 lines=(elected(2, 7, last_known_elr_before=ONE),)),
        ),
        says=("loss", CONFIRMED, "unclean_and_unhealed"),
    ),
    "a-line-that-comes-after-the-observation": Case(
        because="an observation of the epoch in the line does not say who led before it",
        observations=(
            Observation(second=0),
            Observation(second=6, leader=2, epoch=7, isr=(2,), ends=ENDS),
            Observation(second=7, leader=2, epoch=7, isr=(2,), lines=(elected(2, 7),)),
            Observation(second=11, leader=2, epoch=7, isr=(2,), lines=(rejected(6, 2, broker=2),)),
            Observation(second=12, leader=2, epoch=7, isr=(2,), found=[found(OLD_BATCH)]),
            Observation(second=LATE - 1, leader=2, epoch=7, isr=(2,)),
            Observation(second=LATE, leader=2, epoch=7, isr=(2,), found=[found(OLD_BATCH)]),
        ),
        says=("loss", CONFIRMED, "unclean_and_unhealed"),
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", LINES.values(), ids=LINES)
def test_a_controller_s_line_is_taken_for_what_it_says(case: Case) -> None:
    assert verdict(*case.observations) == case.says, case.because


def unstable(end: int) -> dict[str, Any]:
    """Return offsets of which the last stable one is missing: no observation to compare with."""
    return {
        "offsets": offsets(
            1,
            leader_epoch=[5],
            last_stable_offset=[None],
            high_watermark=[end],
            log_end_offset=[end],
        )
    }


def moved(second: float, **more: Any) -> Observation:
    """Return a round in which broker 2 leads; unclean elections are forbidden by default."""
    return Observation(
        **{"second": second, "leader": 2, "epoch": 6, "is_unclean_allowed": False} | more
    )


SAME_PLACES: Final = {"partitions": moved(11).snapshot().partitions}
REJECTED_BY_2: Final = (rejected(27, 2, broker=2),)
FOUND_BY_2: Final = moved(12, found=[found(OLD_BATCH)])
WATCHED: Final = {
    "compared": Case(
        because="the last observation, and the new leader's answer, show that nothing is gone",
        observations=(
            replace(FORBIDDEN, isr=(1, 2)),
            moved(11, ends=ENDS, lines=REJECTED_BY_2),
            FOUND_BY_2,
        ),
        says=("client_failure", SUSPECTED, "clean_changes"),
    ),
    "no-complete-observation-before": Case(
        because="nobody could compare: the change is as good as unseen",
        observations=(
            replace(FORBIDDEN, more=unstable(124)),
            moved(11, ends=LOST, lines=REJECTED_BY_2),
            FOUND_BY_2,
            moved(LATE),
        ),
        says=("loss", SUSPECTED, "changes_unseen"),
    ),
    "no-complete-observation-before-where-unclean-elections-are-allowed": Case(
        because="broker 1 was alone, broker 2 may lack all that it had acknowledged",
        observations=(
            Observation(second=0, isr=(1,), more=unstable(124)),
            moved(11, isr=(2,), is_unclean_allowed=True, ends=LOST, lines=REJECTED_BY_2),
            replace(FOUND_BY_2, is_unclean_allowed=True),
            moved(LATE, is_unclean_allowed=True),
        ),
        says=("loss", SUSPECTED, "changes_unseen"),
    ),
    "a-leader-that-answers-late-that-it-has-nothing-of-the-epoch": Case(
        because="it may lack all of it, whichever round queried",
        observations=(
            replace(FORBIDDEN, isr=(1, 2)),
            moved(11, lines=REJECTED_BY_2, more=SAME_PLACES),
            moved(12, ends=((0, 5, None),), found=[found(OLD_BATCH)], more=SAME_PLACES),
            moved(LATE, more=SAME_PLACES),
        ),
        says=("loss", SUSPECTED, "changes_unseen"),
    ),
}


@pytest.mark.parametrize("case", WATCHED.values(), ids=WATCHED)
def test_only_a_change_that_was_compared_is_clean(case: Case) -> None:
    assert verdict(*case.observations) == case.says, case.because


OTHERS: Final = tuple(replace(elected(2, 7), topic=f"other-{n}", topic_id=None) for n in range(4))
CROWDED: Final = {
    "rejected-in-the-same-round": (
        Observation(second=0),
        Observation(second=11, leader=2, epoch=7, lines=(*OTHERS, elected(2, 7), *REJECTED_BY_2)),
    ),
    "rejected-before": (
        Observation(second=0),
        Observation(second=11, lines=(rejected(27, 2),)),
        Observation(second=12, leader=2, epoch=7, lines=(*OTHERS, elected(2, 7))),
    ),
    "lost": (ALONE, of_2(11, ends=LOST), of_2(12, lines=OTHERS)),
}


@pytest.mark.parametrize("observations", CROWDED.values(), ids=CROWDED)
def test_of_too_many_changes_those_that_matter_are_kept(
    observations: tuple[Observation, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(changes, "CHANGES_KEPT", 2)
    remembered = play(observations)[-1].memory.sequences.changes
    assert (NAME in remembered, len(remembered)) == (True, 2)
