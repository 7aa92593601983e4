"""What lists of registered brokers and the quorum prove."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from rules.facts.snapshot import Snapshot
from tests.factories import broker, quorum
from tests.unit.rules.changes.rounds import Told, observed, play, told

THREE = (broker(1), broker(2), broker(3))


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
