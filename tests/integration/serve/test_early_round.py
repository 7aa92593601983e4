"""A leader change is observed again a second later, however long the interval is."""

from __future__ import annotations

from itertools import pairwise

import pytest

from service.runtime.clock import wait_until
from service.sandbox.cluster.cluster import Sandbox
from tests.integration.serve.conftest import Serve
from tests.integration.serve.kafka import Kafka
from tests.integration.serve.served import Served, round_began

pytestmark = pytest.mark.integration

INTERVAL_SECONDS = 10.0  # above the 4 s after which the controller misses a broker


def pauses(served: Served) -> list[float]:
    """Return the seconds from the end of each round to the begin of the next."""
    return [
        (round_began(after) - round_began(before)).total_seconds() - before["took_seconds"]
        for before, after in pairwise(served.rounds())
    ]


def leader_of(served: Served, topic: str) -> int:
    [row] = served.document(f"/api/v1/partitions?topic={topic}")["items"]
    return int(row["leader"])


@pytest.mark.smoke
def test_the_round_after_a_leader_change_is_a_second_later(
    serve: Serve, kafka: Kafka, faults: Sandbox
) -> None:
    served = serve(interval=INTERVAL_SECONDS).wait_ready()
    leader = leader_of(served, kafka.topic)
    faults.kill(leader)
    early: list[float] = []

    def was_early() -> bool:
        early[:] = [pause for pause in pauses(served) if pause < INTERVAL_SECONDS / 2]
        return bool(early)

    # The round that sees the new leader is a regular one: the first or the second after the kill.
    assert wait_until(was_early, timeout_seconds=90), served.reported()
    assert [pause > 0.3 for pause in early] == [True], "soon, but not at once"
    assert pauses(served)[0] > INTERVAL_SECONDS / 2, "without a leader change it is not early"
    assert leader_of(served, kafka.topic) != leader
    assert served.stop() == 0
