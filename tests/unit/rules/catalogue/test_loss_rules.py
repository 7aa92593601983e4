"""Cases of lost records: what the last observation saw, what the new leader has, what has to be said.

Broker 1 led in epoch 5 with all three offsets at 100; soon broker 2 leads.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

import pytest

from rules.facts.broker_log import LogSource
from rules.facts.column import Ragged
from rules.facts.identity import BrokerId
from tests.factories import (
    at,
    epoch_ends,
    offsets,
    topic_id,
)
from tests.unit.rules.catalogue.loss_observations import (
    AHEAD,
    ALONE,
    BREACH,
    RULES,
    UNCLEAN_ALLOWED,
    controller_wrote,
    led_by_1,
    led_by_2,
    log_of_controller,
    on,
    said,
    unanswered,
)
from tests.unit.rules.loss.replica_lines import elected, written


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """What was seen, and what each rule has to say that says more than OK."""

    because: str
    observations: tuple[dict[str, Any], ...]
    breaches: dict[str, str] = field(default_factory=dict)  # rule -> reason


CASES: Final = {
    "clean": Case(
        because="the epoch ended where its log had ended when last seen",
        observations=(led_by_1(), led_by_2(100)),
    ),
    "clean-and-grown": Case(
        because="what was appended after the observation and before the change is there",
        observations=(led_by_1(), led_by_2(150)),
    ),
    "committed-loss": Case(
        because="27 committed records are not in the new leader's log",
        observations=(ALONE, led_by_2(73, epoch=7, unclean_election_enabled=UNCLEAN_ALLOWED)),
        breaches={"committed": "lost", "unclean": "lost"},
    ),
    "committed-loss-in-a-log-that-grew": Case(
        because="how long the log is by now says nothing",
        observations=(ALONE, led_by_2(73, now=500, unclean_election_enabled=UNCLEAN_ALLOWED)),
        breaches={"committed": "lost", "unclean": "lost"},
    ),
    "forced-although-not-allowed": Case(
        because="an operator can elect uncleanly whatever the topic says",
        observations=(led_by_1(isr=(1,)), led_by_2(73)),
        breaches={"committed": "lost", "unclean": "lost"},
    ),
    "deleted-records": Case(
        because="deleted records do not change where an epoch ended",
        observations=(
            led_by_1(),
            {**led_by_2(100), "offsets": offsets(1, leader_epoch=[6], log_start_offset=[80])},
        ),
    ),
    "acks-1-loss": Case(
        because="the winner was in sync: what was above the high watermark was never committed",
        observations=(led_by_1(end=117), led_by_2(100)),
        breaches={"unreplicated": "never_committed"},
    ),
    "acks-1-loss-in-part": Case(
        because="some of it had been replicated",
        observations=(led_by_1(end=117), led_by_2(110)),
        breaches={"unreplicated": "never_committed"},
    ),
    "a-tail-of-a-time": Case(
        because="every load has one, and nothing tells that the election was unclean",
        observations=(
            led_by_1(isr=(1,), end=120, unclean_election_enabled=UNCLEAN_ALLOWED),
            led_by_2(100, unclean_election_enabled=UNCLEAN_ALLOWED),
        ),
        breaches={"possibly": "election_not_known"},
    ),
    "possibly-committed": Case(
        because="the high watermark had stood, and jumps to the log end when the ISR shrinks",
        observations=(
            led_by_1(isr=(1,), end=120, unclean_election_enabled=UNCLEAN_ALLOWED),
            led_by_1(isr=(1,), end=120, unclean_election_enabled=UNCLEAN_ALLOWED),
            led_by_2(100, unclean_election_enabled=UNCLEAN_ALLOWED),
        ),
        breaches={"possibly": "possible"},
    ),
    "unclean-and-nothing-seen-is-missing": Case(
        because="what was appended after the last observation is not known",
        observations=(ALONE, led_by_2(100, unclean_election_enabled=UNCLEAN_ALLOWED)),
        breaches={"possibly": "election_not_known"},
    ),
    "unclean-as-its-controller-wrote": Case(
        because="it wrote of the election, and what was appended after the last observation is not known",
        observations=(
            ALONE,
            led_by_2(100, unclean_election_enabled=UNCLEAN_ALLOWED) | written(elected()),
        ),
        breaches={"possibly": "unseen", "unclean": "nothing_seen_is_missing"},
    ),
    "unclean-as-its-controller-wrote-with-a-tail": Case(
        because="it wrote of the election, and what was seen above the high watermark is gone",
        observations=(
            led_by_1(isr=(1,), end=120, unclean_election_enabled=UNCLEAN_ALLOWED),
            led_by_2(100, unclean_election_enabled=UNCLEAN_ALLOWED) | written(elected()),
        ),
        breaches={"possibly": "possible", "unclean": "possibly_lost"},
    ),
    "its-controller-wrote-of-none": Case(
        because="the active controller's log is read, and tells of no unclean election",
        observations=(
            ALONE,
            led_by_2(100, unclean_election_enabled=UNCLEAN_ALLOWED) | controller_wrote(9),
        ),
    ),
    "its-controller-wrote-before": Case(
        because="what the active controller wrote since the last observation is not read yet",
        observations=(
            ALONE,
            led_by_2(100, unclean_election_enabled=UNCLEAN_ALLOWED) | controller_wrote(-9),
        ),
        breaches={"possibly": "election_not_known"},
    ),
    "its-controller-wrote-of-none-while-it-was-read": Case(
        because="it wrote after the last observation; in this round its log could not be read",
        observations=(
            ALONE | controller_wrote(1),
            led_by_2(100, unclean_election_enabled=UNCLEAN_ALLOWED)
            | log_of_controller(error="it is gone"),
        ),
        breaches={"possibly": "election_not_known"},
    ),
    "a-line-of-its-controller-was-not-understood": Case(
        because="it may be the one about this election",
        observations=(
            ALONE,
            led_by_2(100, unclean_election_enabled=UNCLEAN_ALLOWED)
            | controller_wrote(9, unparsed=1),
        ),
        breaches={"possibly": "election_not_known"},
    ),
    "the-log-of-a-broker-is-gone-and-not-that-of-its-controller": Case(
        because="the controller's own is read",
        observations=(
            ALONE,
            led_by_2(100, unclean_election_enabled=UNCLEAN_ALLOWED)
            | log_of_controller(
                LogSource(name="broker-1", error="it is gone"),
                controllers=((BrokerId(100), at(9)),),
            ),
        ),
    ),
    "another-controller-wrote": Case(
        because="the log of the active controller is not read",
        observations=(
            ALONE,
            led_by_2(100, unclean_election_enabled=UNCLEAN_ALLOWED) | controller_wrote(9, node=101),
        ),
        breaches={"possibly": "election_not_known"},
    ),
    "its-controller-wrote-of-none-and-records-are-gone": Case(
        because="what is missing is missing, whatever nobody wrote",
        observations=(
            ALONE,
            led_by_2(73, unclean_election_enabled=UNCLEAN_ALLOWED) | controller_wrote(9),
        ),
        breaches={"committed": "lost", "unclean": "lost"},
    ),
    "rolling-restart": Case(
        because="it came back into the ISR, and another one was in sync before and is so now",
        observations=(
            led_by_1(isr=(1, 3), unclean_election_enabled=UNCLEAN_ALLOWED),
            led_by_2(130, unclean_election_enabled=UNCLEAN_ALLOWED),
        ),
    ),
    "rolling-restart-that-was-not-seen-for-long": Case(
        because="within minutes the others may have died, and come back",
        observations=(
            led_by_1(isr=(1, 3), unclean_election_enabled=UNCLEAN_ALLOWED),
            *(unanswered(1, isr=(1, 3)) for _ in range(5)),
            led_by_2(130, unclean_election_enabled=UNCLEAN_ALLOWED),
        ),
        breaches={"possibly": "election_not_known"},
    ),
    "rolling-restart-of-two": Case(
        because="nobody else tells whether it came back into the ISR: that is not known",
        observations=(
            led_by_1(isr=(1,), unclean_election_enabled=UNCLEAN_ALLOWED),
            led_by_2(130, isr=(2,), unclean_election_enabled=UNCLEAN_ALLOWED),
        ),
        breaches={"possibly": "election_not_known"},
    ),
    "old-leader-is-no-company": Case(
        because="the old leader may have died, and come back since",
        observations=(
            led_by_1(isr=(1,), unclean_election_enabled=UNCLEAN_ALLOWED),
            led_by_2(130, isr=(2, 1), unclean_election_enabled=UNCLEAN_ALLOWED),
        ),
        breaches={"possibly": "election_not_known"},
    ),
    "reassigned": Case(
        because="a reassignment is over when all that are to stay are in sync",
        observations=(
            led_by_1(isr=(1, 2), unclean_election_enabled=UNCLEAN_ALLOWED, **on(1, 2)),
            led_by_2(
                130, leader=4, isr=(4, 3), unclean_election_enabled=UNCLEAN_ALLOWED, **on(4, 3)
            ),
        ),
    ),
    "reassigned-in-part": Case(
        because="the old leader is in sync with the new one, which was not there before",
        observations=(
            led_by_1(isr=(1, 2), unclean_election_enabled=UNCLEAN_ALLOWED, **on(1, 2)),
            led_by_2(
                130, leader=3, isr=(3, 1), unclean_election_enabled=UNCLEAN_ALLOWED, **on(3, 1)
            ),
        ),
    ),
    "reassigned-to-who-did-not-have-all": Case(
        because="what is missing is missing",
        observations=(
            led_by_1(isr=(1, 2), unclean_election_enabled=UNCLEAN_ALLOWED, **on(1, 2)),
            led_by_2(
                73, leader=4, isr=(4, 3), unclean_election_enabled=UNCLEAN_ALLOWED, **on(4, 3)
            ),
        ),
        breaches={"committed": "lost", "unclean": "lost"},
    ),
    "its-own-log": Case(
        because="the leader was restarted and leads again",
        observations=(ALONE, led_by_2(100, leader=1, unclean_election_enabled=UNCLEAN_ALLOWED)),
    ),
    "another-one-led-between": Case(
        because="the same leader two elections later may have followed an unclean one in between",
        observations=(
            ALONE,
            led_by_2(100, leader=1, epoch=7, unclean_election_enabled=UNCLEAN_ALLOWED),
        ),
        breaches={"possibly": "election_not_known"},
    ),
    "restarted-where-it-is-forbidden": Case(
        because="nobody else could lead between",
        observations=(led_by_1(isr=(1,)), led_by_2(100, leader=1, epoch=7)),
    ),
    "only-replica": Case(
        because="its only replica was silent, and leads again: nobody else can have led",
        observations=(
            led_by_1(isr=(1,), end=103, unclean_election_enabled=UNCLEAN_ALLOWED, **on(1)),
            unanswered(1, isr=(1,)),
            led_by_2(
                103, leader=1, epoch=9, isr=(1,), unclean_election_enabled=UNCLEAN_ALLOWED, **on(1)
            ),
        ),
    ),
    "only-replica-silent-for-long": Case(
        because="it makes no difference for how long",
        observations=(
            led_by_1(isr=(1,), unclean_election_enabled=UNCLEAN_ALLOWED, **on(1)),
            *(unanswered(1, isr=(1,)) for _ in range(9)),
            led_by_2(
                100, leader=1, epoch=7, isr=(1,), unclean_election_enabled=UNCLEAN_ALLOWED, **on(1)
            ),
        ),
    ),
    "only-replica-that-lost-its-disk": Case(
        because="what was committed is not in its log any more, and nobody else was elected",
        observations=(
            led_by_1(isr=(1,), unclean_election_enabled=UNCLEAN_ALLOWED, **on(1)),
            led_by_2(
                0, leader=1, epoch=7, isr=(1,), unclean_election_enabled=UNCLEAN_ALLOWED, **on(1)
            ),
        ),
        breaches={"committed": "lost"},
    ),
    "leader-that-lost-its-disk": Case(
        because="it leads on: nobody else was elected",
        observations=(
            ALONE,
            led_by_2(0, leader=1, isr=(1,), unclean_election_enabled=UNCLEAN_ALLOWED),
        ),
        breaches={"committed": "lost"},
    ),
    "another-one-led-between-and-records-are-gone": Case(
        because="it has followed one that lacked them",
        observations=(
            ALONE,
            led_by_2(73, leader=1, epoch=7, unclean_election_enabled=UNCLEAN_ALLOWED),
        ),
        breaches={"committed": "lost", "unclean": "lost"},
    ),
    "jumped-before": Case(
        because="a high watermark that jumped after it had stood still tells of an ISR that shrank",
        observations=(
            AHEAD,
            led_by_1(watermark=118, end=120, unclean_election_enabled=UNCLEAN_ALLOWED),
            led_by_2(118, unclean_election_enabled=UNCLEAN_ALLOWED),
        ),
        breaches={"unreplicated": "never_committed"},
    ),
    "eligible": Case(
        because="a replica of the ELR has all that was committed",
        observations=(
            led_by_1(isr=(1,), elr=Ragged.of([(2,)])),
            led_by_2(100),
        ),
    ),
    "came-back-unseen": Case(
        because="where unclean elections are forbidden a direct change had its winner in sync",
        observations=(led_by_1(isr=(1, 3)), led_by_2(100)),
    ),
    "too-much-unseen": Case(
        because="there was no leader for a while, and the winner was not in sync when last seen",
        observations=(led_by_1(isr=(1, 3)), led_by_2(100, epoch=7, isr=(2,))),
        breaches={"possibly": "election_not_known"},
    ),
    "stood-still-where-it-is-forbidden": Case(
        because="a standstill alone makes no election unclean that may not be",
        observations=(
            led_by_1(isr=(1, 3), end=120),
            led_by_1(isr=(1, 3), end=120),
            led_by_2(100, epoch=7, isr=(2,)),
        ),
        breaches={"possibly": "election_not_known"},
    ),
    "two-steps-with-company": Case(
        because="two brokers were restarted between two rounds; an unclean leader would be alone",
        observations=(led_by_1(isr=(1, 3)), led_by_2(100, epoch=7)),
    ),
    "stood-still-before": Case(
        because="the ISR may have shrunk to the old leader after the last observation",
        observations=(AHEAD, AHEAD, led_by_2(120, unclean_election_enabled=UNCLEAN_ALLOWED)),
        breaches={"possibly": "election_not_known"},
    ),
    "turned-off-before-the-end-was-told": Case(
        because="unclean elections were allowed when the leader was elected",
        observations=(
            ALONE,
            led_by_2(None),
            led_by_2(None),
            led_by_2(100),
        ),
        breaches={"possibly": "election_not_known"},
    ),
    "busy-before": Case(
        because="a few records on their way are no standstill",
        observations=(AHEAD, led_by_2(120, unclean_election_enabled=UNCLEAN_ALLOWED)),
    ),
    "two-changes": Case(
        because="what the first change lost is still missing after the second",
        observations=(
            ALONE,
            led_by_2(None, unclean_election_enabled=UNCLEAN_ALLOWED),
            led_by_2(73, epoch=9, leader=3),
        ),
        breaches={"committed": "lost", "unclean": "lost"},
    ),
    "not-told-yet": Case(
        because="the new leader has not said where the epoch ended",
        observations=(led_by_1(), led_by_2(None)),
    ),
    "created-again": Case(
        because="another topic of this name has nothing to do with it",
        observations=(
            led_by_1(),
            led_by_2(3, epoch=0, topic_ids=(topic_id("orders", creation=1),)),
        ),
    ),
    "told-once": Case(
        because="an event is said in the round that proves it",
        observations=(ALONE, led_by_2(73), led_by_2(73)),
    ),
    "first-round": Case(because="nothing is remembered", observations=(led_by_2(73),)),
}


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("case", CASES.values(), ids=list(CASES))
def test_case(case: Case, rule: str) -> None:
    found = said(RULES[rule], *case.observations)
    is_breach = found.verdict is BREACH
    assert (found.reason if is_breach else None) == case.breaches.get(rule), case.because


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("case", CASES.values(), ids=list(CASES))
def test_an_end_that_is_told_a_round_later_says_the_same(case: Case, rule: str) -> None:
    """A restart, a request that failed, or too many changes at once: the answer may come late."""
    *before, last = case.observations
    if len(before) > 1 and before[-1] is last:
        return  # it was told before
    found = said(RULES[rule], *before, last | {"epoch_ends": epoch_ends()}, last)
    reason = found.reason if found.verdict is BREACH else None
    assert reason == case.breaches.get(rule), case.because
