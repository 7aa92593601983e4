"""Lines about batches that a leader rejected: their sequence does not follow, or their epoch is old.

The message is that of an exception, on a line of its own after "Error processing append operation on
partition T-N". Source: ProducerAppendInfo (before Kafka 2.0 ProducerStateManager) and UnifiedLog of
Kafka 1.1 to 4.4; to 2.2.0 the message tells neither offset nor partition.
"""

from __future__ import annotations

import re
from typing import Final

from collectors.broker_log.wording.fields import (
    NUMBER,
    TOPIC_ID,
    TOPIC_PARTITION,
    LineUnreadableError,
    compiled,
    int16,
    int32,
    int64,
    int64_if_any,
    matched,
    partition_of,
    topic_id_if_any,
)
from collectors.broker_log.wording.line import FirstLine, Line
from rules.facts.broker_log import EpochRejected, SequenceForm, SequenceRejected
from rules.facts.identity import TopicId, TopicPartition

_PRODUCER: Final = rf"producer(?:Id)? (?P<producer>{NUMBER})"
# Kafka 3.5 to 4.3 forgot the space after the producer id in one of the forms.
_WHERE: Final = rf" ?at offset (?P<offset>{NUMBER}) in partition {TOPIC_PARTITION}"
_INCOMING: Final = rf"(?P<incoming>{NUMBER}) \(incoming seq\. number\)"

FIRST: Final = "Error processing append operation on partition"
OUT_OF_ORDER: Final = "Out of order sequence number for "
INVALID: Final = "Invalid sequence number for "
FENCED: Final = "Producer's epoch "
EPOCH: Final = "Epoch of producer "

_FIRST: Final = compiled(rf"{FIRST} (?:{TOPIC_ID}:)?{TOPIC_PARTITION}")
_OUT_OF_ORDER: Final = compiled(
    rf"{OUT_OF_ORDER}{_PRODUCER}(?:{_WHERE})?: {_INCOMING}, (?P<current>{NUMBER}) "
    r"\((?P<what>current end sequence number|earliest seen sequence)\)"
)
_BUT_EXPECTED_ZERO: Final = compiled(
    rf"{OUT_OF_ORDER}{_PRODUCER}: found {_INCOMING}, but expected 0"
)
_EXPECTED_ZERO: Final = compiled(
    rf"{INVALID}{_PRODUCER}(?:{_WHERE})?: {_INCOMING}\. Expected sequence 0"
)
_NEW_EPOCH: Final = compiled(
    rf"{INVALID}new epoch(?: of {_PRODUCER})?(?:{_WHERE})?: (?P<epoch>{NUMBER}) \(request epoch\), "
    rf"(?P<incoming>{NUMBER}) \(seq\. number\)"
    rf"(?:, (?P<current_epoch>{NUMBER}) \(current producer epoch\))?"
)
_NO_LONGER_VALID: Final = compiled(
    rf"{FENCED}(?:at offset (?P<offset>{NUMBER}) )?is no longer valid"
    rf"(?: in partition {TOPIC_PARTITION}:"
    r"|\. There is probably another producer with a newer epoch\.)"
    rf" (?P<epoch>{NUMBER}) \(request epoch\),"
    rf" (?P<current_epoch>{NUMBER}) \((?:server|current) epoch\)"
)
_LAST_SEEN: Final = compiled(
    rf"(?:{FENCED[:-1]}|{EPOCH}(?P<producer>{NUMBER}))"
    rf"(?: at offset (?P<offset>{NUMBER}) in {TOPIC_PARTITION})?"
    rf" is (?P<epoch>{NUMBER}), which is (?:smaller than|<=?)"
    rf" the last seen epoch (?P<current_epoch>{NUMBER})(?: \(TV(?P<version>{NUMBER})\))?"
)
_EXCEPTIONS: Final = {
    "OutOfOrderSequenceException": (OUT_OF_ORDER, INVALID),
    "InvalidProducerEpochException": (EPOCH, FENCED),
}
_NO_MARKER: Final = "-1"  # the transaction version of what is no marker


def first_line(line: Line) -> FirstLine:
    """Return what the line before an exception tells; cut short, it tells the time alone."""
    found = _FIRST.match(line.said)
    return FirstLine(
        at=line.origin.at,
        broker_id=line.origin.broker_id,
        name=None if found is None else partition_of(found),
        topic_id=None if found is None else topic_id_if_any(found["topic_id"]),
    )


def out_of_order(line: Line) -> SequenceRejected:
    """Read "Out of order sequence number"."""
    found = _BUT_EXPECTED_ZERO.match(line.said)
    if found is not None:  # to Kafka 2.0.0: the broker has no batch of this epoch
        return _sequence(line, found, SequenceForm.EXPECTED_ZERO)
    found = matched(_OUT_OF_ORDER, line.said)
    earliest = found["what"].startswith("earliest")
    form = SequenceForm.EARLIEST_SEEN if earliest else SequenceForm.OUT_OF_ORDER
    # -1, in this form alone, is no absence: the epoch is known and has no batch.
    current = -1 if found["current"] == "-1" else int32(found["current"])
    return _sequence(line, found, form, current)


def invalid(line: Line) -> SequenceRejected:
    """Read "Invalid sequence number": of a new epoch, or of a producer without a state."""
    if line.said.startswith(f"{INVALID}producer"):
        return _sequence(line, matched(_EXPECTED_ZERO, line.said), SequenceForm.EXPECTED_ZERO)
    return _sequence(line, matched(_NEW_EPOCH, line.said), SequenceForm.NEW_EPOCH)


def epoch(line: Line) -> EpochRejected | None:
    """Read that an epoch is an older one; None: nothing that a producer sent was rejected."""
    if not _is_thrown(line.head):
        return None  # a follower only remarks on what it takes over from its leader
    found = _NO_LONGER_VALID.match(line.said) or matched(_LAST_SEEN, line.said)
    told = found.groupdict()
    if told.get("version") not in (None, _NO_MARKER):
        return None  # a marker, which the coordinator sends
    name, _ = _where(line, found)
    return EpochRejected(
        origin=line.origin,
        producer_id=int64_if_any(told.get("producer")),
        topic=None if name is None else name.topic,
        partition=None if name is None else name.partition,
        offset=int64_if_any(told["offset"]),
        producer_epoch=int16(told["epoch"]),
        current_epoch=int16(told["current_epoch"]),
    )


def cut(line: Line) -> None:
    """Read the name of an exception that no known message follows: clients log others with it.

    Raises:
        LineUnreadableError: the line ends before its message is told from others.
    """
    name, _, message = line.said.partition(":")
    rest = message.strip()
    if any(start.startswith(rest) for start in _EXCEPTIONS[name]):
        raise LineUnreadableError(line.said)


def _sequence(
    line: Line, found: re.Match[str], form: SequenceForm, current: int | None = None
) -> SequenceRejected:
    told = found.groupdict()
    name, topic_id = _where(line, found)
    request, known = told.get("epoch"), told.get("current_epoch")
    producer_id = told["producer"]
    return SequenceRejected(
        origin=line.origin,
        form=form,
        producer_id=None if producer_id is None else int64(producer_id),
        topic=None if name is None else name.topic,
        partition=None if name is None else name.partition,
        topic_id=topic_id,
        offset=int64_if_any(told.get("offset")),
        incoming_sequence=int32(told["incoming"]),
        current_sequence=current,
        producer_epoch=None if request is None else int16(request),
        current_epoch=None if known is None else int16(known),
    )


def _where(line: Line, found: re.Match[str]) -> tuple[TopicPartition | None, TopicId | None]:
    """Return the partition as the message tells it, else as the line before does."""
    own = partition_of(found) if found.groupdict().get("topic") is not None else None
    before = line.before
    if before is None or (own is not None and own != before.name):
        return own, None
    return before.name, before.topic_id


def _is_thrown(head: str) -> bool:
    """Tell whether a message is that of an exception, or was pasted without anything around it."""
    before = head.rstrip()
    return not before or before.endswith("Exception:")
