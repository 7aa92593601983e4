"""Cases of leader changes without a failure, and of what was not seen: restarts, reassignments, lost disks.

Broker 1 led in epoch 5 with all three offsets at 100; soon broker 2 leads.
"""

from __future__ import annotations

from typing import Final

from rules.facts.column import Ragged
from tests.factories import topic_id
from tests.unit.rules.catalogue.election_cases import Case
from tests.unit.rules.catalogue.loss_observations import (
    AHEAD,
    ALONE,
    UNCLEAN_ALLOWED,
    led_by_1,
    led_by_2,
    on,
    unanswered,
)

RESTARTS: Final = {
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
