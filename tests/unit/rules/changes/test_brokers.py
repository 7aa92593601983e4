"""What lists of registered brokers and the quorum prove."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from rules.facts.broker_log import BrokerLog, BrokerStarted, Origin
from rules.facts.identity import BrokerId
from rules.facts.snapshot import Snapshot
from tests.factories import at, broker, quorum
from tests.unit.rules.changes.rounds import Told, observed, play, told

THREE = (broker(1), broker(2), broker(3))


def started(seconds: float | None, broker_id: int = 3) -> BrokerLog:
    """Return the log lines of a round: a broker began to start."""
    origin = Origin(source="kafka", at=None if seconds is None else at(seconds))
    event = BrokerStarted(origin=origin, broker_id=BrokerId(broker_id))
    return BrokerLog(is_read=True, events=(event,))


class Case(NamedTuple):
    """The rounds of a case, and the change events that they show."""

    name: str
    why: str
    rounds: list[Snapshot]
    expected: list[Told]


CASES = [
    Case(
        "left_and_joined",
        "it was not registered for a while; that its process ended is not known",
        [observed(0), observed(15, brokers=THREE[:2]), observed(30)],
        [
            ("broker_left", "broker 3", "127.0.0.1:9093", None),
            ("broker_joined", "broker 3", None, "127.0.0.1:9093"),
        ],
    ),
    Case(
        "restarted",
        "a line of its own log proves it, once",
        [
            observed(0),
            observed(15, broker_log=started(10)),
            observed(30, broker_log=started(10)),
        ],
        [("broker_restarted", "broker 3", None, "started 2025-06-02T12:00:10+00:00")],
    ),
    Case(
        "started_before_it_was_observed",
        "an old line of a log that is read from its beginning is no change",
        [observed(0), observed(15, broker_log=started(-3600))],
        [],
    ),
    Case(
        "started_for_the_first_time",
        "a broker that was not known before joined, and did not start again",
        [observed(0), observed(15, brokers=(*THREE, broker(4)), broker_log=started(10, 4))],
        [("broker_joined", "broker 4", None, "127.0.0.1:9094")],
    ),
    Case(
        "started_at_an_unknown_time",
        "a line without a time may be an old one",
        [observed(0), observed(15, broker_log=started(None))],
        [],
    ),
    Case(
        "no_list",
        "a list without any broker is none",
        [observed(0), observed(15, brokers=()), observed(30)],
        [],
    ),
    Case(
        "moved",
        "the same id advertises another address",
        [observed(0), observed(15, brokers=(*THREE[:2], broker(3, host="10.0.0.3", rack="b")))],
        [("broker_moved", "broker 3", "127.0.0.1:9093", "10.0.0.3:9093 (rack b)")],
    ),
    Case(
        "controller_moved",
        "another controller in a later epoch; while there is none, the one before is known",
        [
            observed(0, quorum=quorum(101, leader_epoch=4)),
            observed(15, quorum=quorum(None)),
            observed(30, quorum=quorum(102, leader_epoch=5)),
        ],
        [("controller_moved", "cluster", "101", "102")],
    ),
    Case(
        "older_controller",
        "a lower epoch is an older answer",
        [
            observed(0, quorum=quorum(102, leader_epoch=5)),
            observed(15, quorum=quorum(101, leader_epoch=4)),
        ],
        [],
    ),
    Case(
        "elected_again",
        "the same controller in a later epoch has not moved",
        [
            observed(0, quorum=quorum(101, leader_epoch=4)),
            observed(15, quorum=quorum(101, leader_epoch=6)),
        ],
        [],
    ),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_cases(case: Case) -> None:
    events, _ = play(case.rounds)
    assert told(events) == case.expected, case.why


def test_a_line_that_came_late_says_when_and_not_between_which_rounds() -> None:
    late = [observed(0), observed(60), observed(75, broker_log=started(10))]
    [event], _ = play(late)
    assert (event.since_us, event.evidence) == (None, "log_line")
