"""Compares the active controller's clock with ours: no broker's own clock is in any answer of Kafka.

The leader of the metadata quorum reports the present time as its own `last_caught_up_timestamp`. It was
read between our request and its answer, which bounds the difference from both sides.
Source: DescribeQuorum v1 (KIP-836), `LeaderState.describeQuorum` of the controller.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from collectors.quorum import quorum_body
from collectors.session import Session
from collectors.translate import failure_of, timestamp_of
from collectors.wire import codec
from collectors.wire.api import DESCRIBE_QUORUM
from collectors.wire.failure import Failure
from rules.facts.clocks import ClockDifference, difference
from rules.facts.gap import GapCause


def read_controller_clock(
    session: Session, utc_now: Callable[[], datetime]
) -> ClockDifference | Failure:
    """Return how the active controller's clock differs from ours, or why that is not known."""
    sent = utc_now()
    answer = session.request_any(DESCRIBE_QUORUM, quorum_body)
    answered = utc_now()
    if isinstance(answer, Failure):
        return answer
    if int(answer.error_code) != codec.NO_ERROR:
        return failure_of(int(answer.error_code), "DescribeQuorum", needs="DESCRIBE on Cluster")
    for partition in (entry for topic in answer.topics for entry in topic.partitions):
        for voter in partition.current_voters:
            time = timestamp_of(int(getattr(voter, "last_caught_up_timestamp", -1)))
            if int(voter.replica_id) == int(partition.leader_id) and time is not None:
                return difference(time, sent, answered)
    return Failure(GapCause.UNSUPPORTED, "DescribeQuorum has no times: it needs Kafka 3.3 or newer")
