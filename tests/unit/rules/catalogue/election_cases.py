"""Cases of elections that lost records or may have: what was seen, and what has to be said.

Broker 1 led in epoch 5 with all three offsets at 100; soon broker 2 leads.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

from rules.facts.broker_log import LogSource
from rules.facts.identity import BrokerId
from tests.factories import at, offsets
from tests.unit.rules.catalogue.loss_observations import (
    ALONE,
    UNCLEAN_ALLOWED,
    controlled_by,
    controller_wrote,
    led_by_1,
    led_by_2,
    log_of_controller,
)
from tests.unit.rules.loss.replica_lines import elected, written


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """What was seen, and what each rule has to say that says more than OK."""

    because: str
    observations: tuple[dict[str, Any], ...]
    breaches: dict[str, str] = field(default_factory=dict)  # rule -> reason


ELECTIONS: Final = {
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
            *(ALONE, ALONE),
            led_by_2(100, unclean_election_enabled=UNCLEAN_ALLOWED) | controller_wrote(24),
        ),
    ),
    "its-controller-wrote-before": Case(
        because="what the active controller wrote since the last observation is not read yet",
        observations=(
            *(ALONE, ALONE),
            led_by_2(100, unclean_election_enabled=UNCLEAN_ALLOWED) | controller_wrote(6),
        ),
        breaches={"possibly": "election_not_known"},
    ),
    "its-controller-wrote-of-none-while-it-was-read": Case(
        because="it wrote after the last observation; in this round its log could not be read",
        observations=(
            *(ALONE, ALONE | controller_wrote(16)),
            led_by_2(100, unclean_election_enabled=UNCLEAN_ALLOWED)
            | log_of_controller(error="it is gone"),
        ),
        breaches={"possibly": "election_not_known"},
    ),
    "a-line-of-its-controller-was-not-understood": Case(
        because="it may be the one about this election",
        observations=(
            *(ALONE, ALONE),
            led_by_2(100, unclean_election_enabled=UNCLEAN_ALLOWED)
            | controller_wrote(24, unparsed=1),
        ),
        breaches={"possibly": "election_not_known"},
    ),
    "the-log-of-a-broker-is-gone-and-not-that-of-its-controller": Case(
        because="the controller's own is read",
        observations=(
            *(ALONE, ALONE),
            led_by_2(100, unclean_election_enabled=UNCLEAN_ALLOWED)
            | log_of_controller(
                LogSource(name="broker-1", error="it is gone"),
                controllers=((BrokerId(1), at(24)),),
            ),
        ),
    ),
    "another-controller-may-have-decided": Case(
        because="the present one was first active in the round that observed the leader last",
        observations=(
            *(ALONE | controlled_by(101, epoch=3), ALONE),
            led_by_2(100, unclean_election_enabled=UNCLEAN_ALLOWED) | controller_wrote(24),
        ),
        breaches={"possibly": "election_not_known"},
    ),
    "nobody-knows-who-decided": Case(
        because="the last round had no time left for the quorum",
        observations=(
            *(ALONE, ALONE),
            led_by_2(100, unclean_election_enabled=UNCLEAN_ALLOWED)
            | controller_wrote(24)
            | controlled_by(None),
        ),
        breaches={"possibly": "election_not_known"},
    ),
    "another-controller-wrote": Case(
        because="the log of the active controller is not read",
        observations=(
            *(ALONE, ALONE),
            led_by_2(100, unclean_election_enabled=UNCLEAN_ALLOWED)
            | controller_wrote(24, node=101),
        ),
        breaches={"possibly": "election_not_known"},
    ),
    "its-controller-wrote-of-none-and-records-are-gone": Case(
        because="what is missing is missing, whatever nobody wrote",
        observations=(
            *(ALONE, ALONE),
            led_by_2(73, unclean_election_enabled=UNCLEAN_ALLOWED) | controller_wrote(24),
        ),
        breaches={"committed": "lost", "unclean": "lost"},
    ),
}
