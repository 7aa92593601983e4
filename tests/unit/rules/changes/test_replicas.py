"""A reassignment is one event when it begins and one when it ends, and a broker's absence is none."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from rules.facts.partitions import Partitions
from tests.unit.rules.changes.rounds import Told, observed, placed, play, replicas, told

FROM, TO = "1,2,3", "4,5,6"
GROWN = (4, 5, 6, 1, 2, 3)
BEGAN = ("reassignment_began", "orders-0", FROM, "4,5,6,1,2,3")


class Case(NamedTuple):
    """What the rounds of a case see of one partition, and the change events that they show."""

    name: str
    why: str
    rounds: list[Partitions]
    expected: list[Told]


CASES = [
    Case(
        "begins_and_ends",
        "the controller adds replicas, and removes the others once they are in sync",
        [replicas((1, 2, 3)), *[replicas(GROWN, (1, 2, 3, 4))] * 3, replicas((4, 5, 6))],
        [BEGAN, ("replicas_reassigned", "orders-0", FROM, TO)],
    ),
    Case(
        "between_two_rounds",
        "no round saw it in progress",
        [replicas((1, 2, 3)), replicas((4, 5, 6))],
        [("replicas_reassigned", "orders-0", FROM, TO)],
    ),
    Case(
        "cancelled",
        "the replicas are those before it began",
        [replicas((1, 2, 3)), replicas(GROWN, (1, 2, 3)), replicas((1, 2, 3))],
        [BEGAN, ("reassignment_cancelled", "orders-0", "4,5,6,1,2,3", FROM)],
    ),
    Case(
        "another_target",
        "a reassignment that gets another target while it is in progress goes on",
        [
            replicas((1, 2, 3)),
            replicas(GROWN, (1, 2, 3)),
            replicas((7, *GROWN), (1, 2, 3)),
            replicas((4, 5, 7)),
        ],
        [BEGAN, ("replicas_reassigned", "orders-0", FROM, "4,5,7")],
    ),
    Case(
        "more_replicas",
        "a higher replication factor ends when the added replica is in sync, not the others",
        [
            replicas((1, 2)),
            replicas((1, 2, 3), (1, 2)),
            replicas((1, 2, 3), (1, 3)),
            replicas((1, 2, 3)),
        ],
        [
            ("reassignment_began", "orders-0", "1,2", "1,2,3"),
            ("replicas_reassigned", "orders-0", "1,2", "1,2,3"),
        ],
    ),
    Case(
        "more_replicas_at_once",
        "the added replica was in sync before a round saw it",
        [replicas((1, 2)), replicas((1, 2, 3))],
        [("replicas_reassigned", "orders-0", "1,2", "1,2,3")],
    ),
    Case(
        "fewer_replicas",
        "a lower replication factor ends at once",
        [replicas((1, 2, 3)), replicas((1, 2))],
        [("replicas_reassigned", "orders-0", FROM, "1,2")],
    ),
    Case(
        "another_order",
        "another preferred leader is a reassignment, too",
        [replicas((1, 2, 3)), replicas((2, 1, 3))],
        [("replicas_reassigned", "orders-0", FROM, "2,1,3")],
    ),
    Case(
        "out_of_sync",
        "a broker that is down leaves the ISR; its replicas are the same",
        [replicas((1, 2, 3)), replicas((1, 2, 3), (1, 2)), replicas((1, 2, 3))],
        [],
    ),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_cases(case: Case) -> None:
    rounds = [observed(15 * number, partitions=each) for number, each in enumerate(case.rounds)]
    events, _ = play(rounds)
    assert told(events) == case.expected, case.why


def test_a_reassignment_in_progress_ends_with_its_topic() -> None:
    created_again = placed({"orders": 1}, orders=1)
    rounds = [replicas((1, 2, 3)), replicas(GROWN, (1, 2, 3)), created_again, created_again]
    events, memory = play([observed(15 * n, partitions=each) for n, each in enumerate(rounds)])
    assert [event.kind for event in events] == ["reassignment_began", "topic_recreated"]
    assert not memory.changes.state.reassigned_from
