"""Translates Kafka's error codes into gap causes, and its sentinels and what is left out into absence."""

from __future__ import annotations

import base64
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

from collectors.wire.codec import UnreadableError, error_name
from collectors.wire.failure import Failure
from rules.facts.gap import GapCause
from rules.facts.identity import Broker, TopicId
from rules.facts.times import EPOCH

MAX_LEFT_OUT: Final = 100  # partitions of a topic, beside as many as it has in the answer

# Error codes that are compared with, by Kafka's names.
OFFSET_OUT_OF_RANGE: Final = 1
UNKNOWN_TOPIC_OR_PARTITION: Final = 3
TOPIC_AUTHORIZATION_FAILED: Final = 29

_CAUSES: Final = {
    OFFSET_OUT_OF_RANGE: GapCause.GONE,
    UNKNOWN_TOPIC_OR_PARTITION: GapCause.GONE,
    5: GapCause.NO_LEADER,  # LEADER_NOT_AVAILABLE
    6: GapCause.LEADER_CHANGING,  # NOT_LEADER_OR_FOLLOWER
    7: GapCause.TIMEOUT,  # REQUEST_TIMED_OUT
    14: GapCause.COORDINATOR_MOVING,  # COORDINATOR_LOAD_IN_PROGRESS
    15: GapCause.COORDINATOR_MOVING,  # COORDINATOR_NOT_AVAILABLE
    16: GapCause.COORDINATOR_MOVING,  # NOT_COORDINATOR
    TOPIC_AUTHORIZATION_FAILED: GapCause.NOT_AUTHORIZED,
    30: GapCause.NOT_AUTHORIZED,  # GROUP_AUTHORIZATION_FAILED
    31: GapCause.NOT_AUTHORIZED,  # CLUSTER_AUTHORIZATION_FAILED
    35: GapCause.UNSUPPORTED,  # UNSUPPORTED_VERSION
    53: GapCause.NOT_AUTHORIZED,  # TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    69: GapCause.GONE,  # GROUP_ID_NOT_FOUND
    74: GapCause.LEADER_CHANGING,  # FENCED_LEADER_EPOCH
    75: GapCause.LEADER_CHANGING,  # UNKNOWN_LEADER_EPOCH
    78: GapCause.LEADER_CHANGING,  # OFFSET_NOT_AVAILABLE
    100: GapCause.GONE,  # UNKNOWN_TOPIC_ID
    105: GapCause.GONE,  # TRANSACTIONAL_ID_NOT_FOUND
}

_MEANINGS: Final = {
    3: "it was deleted, or created again, since placement was read",
    6: "leadership moved since placement was read",
    14: "the coordinator is still loading",
    16: "the coordinator moved since its groups or transactions were listed",
    74: "the leader has a newer epoch than the request",
    75: "the broker does not know this leader epoch yet",
    114: "this is a controller: give the address of a broker",
    78: "a new leader that does not know its high watermark yet",
}


def failure_of(
    code: int, source: Broker | str, *, needs: str | None = None, message: str | None = None
) -> Failure:
    """Return the failure for an error code in an answer of `source`.

    `needs` names the missing permission of a rejection; `message` is the broker's own message.
    """
    cause = _CAUSES.get(code, GapCause.BROKER_ERROR)
    meaning = message or _MEANINGS.get(code)
    if cause is GapCause.NOT_AUTHORIZED and needs is not None:
        meaning = f"needs {needs}"
    why = f"{error_name(code)} from {source}" + (f": {meaning}" if meaning else "")
    return Failure(cause, why)


def left_out(source: Broker) -> Failure:
    """Return the failure of what an answer should have held."""
    return Failure(GapCause.UNREADABLE, f"{source} left them out of its answer")


def in_order(topic: str, partitions: Iterable[Any]) -> list[Any]:
    """Put a topic's partitions at their own number; one that the answer leaves out is None.

    Raises:
        UnreadableError: a number is negative, or so high that nearly all others would be left out.
    """
    by_number = {int(entry.partition_index): entry for entry in partitions}
    least, count = min(by_number, default=0), 1 + max(by_number, default=-1)
    if least < 0 or count > 2 * len(by_number) + MAX_LEFT_OUT:
        number = least if least < 0 else count - 1
        why = f"topic {topic} has {len(by_number)} partitions, of which one is number {number}"
        raise UnreadableError(why)
    return [by_number.get(number) for number in range(count)]


def topic_id_of(uuid: UUID | None) -> TopicId | None:
    """Return a topic id in Kafka's own text form; the zero id of old brokers is absent."""
    if uuid is None or not uuid.int:
        return None
    return TopicId(base64.urlsafe_b64encode(uuid.bytes).decode().rstrip("="))


def present(value: int) -> int | None:
    """Return None for the sentinel -1 (and anything below), the value itself otherwise."""
    return value if value >= 0 else None


def timestamp_of(milliseconds: int) -> datetime | None:
    """Return an aware UTC time from milliseconds since 1970; None for the sentinel -1.

    Records carry what their producer wrote: a time that no calendar knows is absent as well.
    """
    if milliseconds < 0:
        return None
    try:
        return EPOCH + timedelta(milliseconds=milliseconds)
    except OverflowError:
        return None
