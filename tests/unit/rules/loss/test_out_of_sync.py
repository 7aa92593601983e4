"""What the metadata before a change tells of a winner that was out of sync, where no log is read."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Final

import pytest

from rules.facts.column import Column, Ragged
from rules.verdict import Verdict
from tests.factories import epoch_ends, unseen_offsets
from tests.unit.rules.catalogue.loss_observations import (
    RULES,
    UNCLEAN_ALLOWED,
    controller_wrote,
    led_by_1,
    led_by_2,
    on,
    placed,
    said,
)

ALLOWED: Final[dict[str, Any]] = {"unclean_election_enabled": UNCLEAN_ALLOWED}
UNSEEN, POSSIBLE, NOT_KNOWN = "unseen", "possible", "election_not_known"
BOTH: Final = led_by_1(isr=(1, 2), **ALLOWED, **on(1, 2))
BOTH_AND_A_TAIL: Final = led_by_1(isr=(1, 2), end=120, **ALLOWED, **on(1, 2))
ALL: Final = led_by_1(**ALLOWED)


def after(epoch: int = 6, *, isr: tuple[int, ...] = (2,), **more: Any) -> dict[str, Any]:
    return led_by_2(100, epoch=epoch, isr=isr, **ALLOWED | on(1, 2) | more)


def silent(*isr: int, **more: Any) -> dict[str, Any]:
    """Return a round that broker 1 did not answer, as others told of it."""
    return {**placed(1, isr=isr, **ALLOWED | on(1, 2) | more), "offsets": unseen_offsets(1)}


def nobody(*isr: int, epoch: int = 6, **more: Any) -> dict[str, Any]:
    """Return a round in which nobody led."""
    there = silent(*isr, **more)
    without = replace(
        there["partitions"], leader=Column.of([None]), leader_epoch=Column.of([epoch])
    )
    return there | {"partitions": without}


def forbidden(observation: dict[str, Any]) -> dict[str, Any]:
    never = replace(observation["partitions"], unclean_election_enabled=Column.of([0]))
    return observation | {"partitions": never}


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """What was seen, and what has to be said; None: nothing."""

    because: str
    observations: tuple[dict[str, Any], ...]
    reason: str | None


CASES: Final = {
    "nobody-led": Case(
        because="without a leader no ISR grows: broker 1 alone could be elected cleanly",
        observations=(BOTH, nobody(1), after(7)),
        reason=UNSEEN,
    ),
    "nobody-led-and-others-are-back": Case(
        because="whoever joined the new leader says nothing of its election",
        observations=(ALL, nobody(1, **on(1, 2, 3)), after(7, isr=(2, 3), **on(1, 2, 3))),
        reason=UNSEEN,
    ),
    "nobody-led-and-there-was-a-tail": Case(
        because="what was seen above the high watermark is gone",
        observations=(BOTH_AND_A_TAIL, nobody(1), after(7)),
        reason=POSSIBLE,
    ),
    "nobody-led-for-long": Case(
        because="it makes no difference for how long",
        observations=(BOTH, *(nobody(1) for _ in range(9)), after(7)),
        reason=UNSEEN,
    ),
    "nobody-led-and-who-was-in-sync-won": Case(
        because="it was in sync when nobody led",
        observations=(ALL, nobody(2, **on(1, 2, 3)), after(7, isr=(2, 3), **on(1, 2, 3))),
        reason=None,
    ),
    "nobody-led-and-an-eligible-one-won": Case(
        because="a replica of the ELR has all that was committed",
        observations=(BOTH, nobody(elr=Ragged.of([(2,)])), after(7)),
        reason=NOT_KNOWN,
    ),
    "nobody-led-and-the-last-known-one-won": Case(
        because="it lacks nothing while its machine lives",
        observations=(BOTH, nobody(last_known_elr=Ragged.of([(2,)])), after(7)),
        reason=NOT_KNOWN,
    ),
    "nobody-led-and-more-happened-then": Case(
        because="another one may have led between",
        observations=(BOTH, nobody(1), after(8)),
        reason=NOT_KNOWN,
    ),
    "nobody-was-heard-of-in-the-same-epoch": Case(
        because="its address is not known briefly: it leads nevertheless, and its ISR may grow",
        observations=(BOTH, nobody(1, epoch=5), after(6, isr=(2, 1))),
        reason=None,
    ),
    "nobody-led-and-brokers-tell-no-elr": Case(
        because="who was eligible is not known",
        observations=(BOTH, nobody(1, elr=Ragged.of([None])), after(7)),
        reason=NOT_KNOWN,
    ),
    "nobody-led-where-it-is-forbidden": Case(
        because="no unclean election can be",
        observations=tuple(forbidden(observation) for observation in (BOTH, nobody(1), after(7))),
        reason=None,
    ),
    "its-controller-wrote-of-none": Case(
        because="what the active controller did not write did not happen",
        observations=(BOTH, BOTH, nobody(1), after(7) | controller_wrote(55)),
        reason=None,
    ),
    "died-alone": Case(
        because="it gave no answer, alone in sync, and the other one leads: as a killed leader does",
        observations=(BOTH, silent(1), after()),
        reason=UNSEEN,
    ),
    "died-alone-with-a-tail": Case(
        because="what was seen above the high watermark is gone",
        observations=(BOTH_AND_A_TAIL, silent(1), after()),
        reason=UNSEEN,
    ),
    "died-alone-and-was-silent-for-some-rounds": Case(
        because="the last round told it to be alone",
        observations=(BOTH_AND_A_TAIL, silent(1), silent(1), silent(1), after()),
        reason=UNSEEN,
    ),
    "died-alone-and-came-back-before-the-end-was-told": Case(
        because="the round that saw the new leader first tells, as if the end had been told then",
        observations=(BOTH, silent(1), after() | {"epoch_ends": epoch_ends()}, after(isr=(2, 1))),
        reason=UNSEEN,
    ),
    "its-successor-was-seen-before-it-answered": Case(
        because="it was told of with an ISR of its own",
        observations=(BOTH, silent(1), after() | {"offsets": unseen_offsets(1)}, after(isr=(2, 1))),
        reason=UNSEEN,
    ),
    "slow-and-handed-over": Case(
        because="it is in sync with its successor: it was slow for a round, and moved cleanly",
        observations=(BOTH, silent(1), after(isr=(2, 1))),
        reason=NOT_KNOWN,
    ),
    "slow-and-handed-over-and-stopped-before-the-end-was-told": Case(
        because="the round that saw the new leader first tells",
        observations=(BOTH, silent(1), after(isr=(2, 1)) | {"epoch_ends": epoch_ends()}, after()),
        reason=NOT_KNOWN,
    ),
    "alone-and-it-answered": Case(
        because="a rolling restart of two: the other one came back, and this one was stopped then",
        observations=(BOTH, led_by_1(isr=(1,), **ALLOWED, **on(1, 2)), after()),
        reason=NOT_KNOWN,
    ),
    "silent-in-company": Case(
        because="the winner was in sync when last told",
        observations=(BOTH, silent(1, 2), after()),
        reason=None,
    ),
    "silent-and-then-in-company": Case(
        because="the other one came back beside it",
        observations=(BOTH, silent(1), silent(1, 2), after()),
        reason=None,
    ),
    "silent-and-something-happened-between": Case(
        because="nobody led briefly: it may have led again, in company",
        observations=(BOTH, silent(1), after(7)),
        reason=NOT_KNOWN,
    ),
    "died-alone-and-an-eligible-one-won": Case(
        because="a replica of the ELR has all that was committed",
        observations=(BOTH, silent(1, elr=Ragged.of([(2,)])), after()),
        reason=None,
    ),
    "silent-and-moved-elsewhere": Case(
        because="a reassignment is over when all that are to stay are in sync",
        observations=(BOTH, silent(1), after(leader=4, isr=(4, 3), **on(4, 3))),
        reason=None,
    ),
    "died-alone-where-it-is-forbidden": Case(
        because="no unclean election can be",
        observations=tuple(forbidden(observation) for observation in (BOTH, silent(1), after())),
        reason=None,
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=list(CASES))
def test_case(case: Case) -> None:
    found = said(RULES["possibly"], *case.observations)
    assert (found.reason if found.verdict is Verdict.BREACH else None) == case.reason, case.because
    later = (
        *case.observations[:-1],
        case.observations[-1] | {"epoch_ends": epoch_ends()},
        case.observations[-1],
    )
    assert said(RULES["possibly"], *later).reason == found.reason, "told a round later"
