"""Lines about batches that a leader rejected: their sequence does not follow, or their epoch is old.

The message is that of an exception, on a line of its own after "Error processing append operation on
partition T-N". Source: ProducerAppendInfo (before Kafka 2.0 ProducerStateManager) and UnifiedLog of
Kafka 1.1 to 4.4; to 2.2.0 the message names neither offset nor partition.
"""

from __future__ import annotations

import re
from typing import Final

from collectors.broker_log.wording.fields import (
    NUMBER,
    TOPIC_ID,
    TOPIC_PARTITION,
    LineUnreadableError,
    compile_pattern,
    int16,
    int32,
    int64,
    int64_if_any,
    match_start,
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

_FIRST: Final = compile_pattern(rf"{FIRST} (?:{TOPIC_ID}:)?{TOPIC_PARTITION}")
_OUT_OF_ORDER: Final = compile_pattern(
    rf"{OUT_OF_ORDER}{_PRODUCER}(?:{_WHERE})?: {_INCOMING}, (?P<current>{NUMBER}) "
    r"\((?P<what>current end sequence number|earliest seen sequence)\)"
)
_BUT_EXPECTED_ZERO: Final = compile_pattern(
    rf"{OUT_OF_ORDER}{_PRODUCER}: found {_INCOMING}, but expected 0"
)
_EXPECTED_ZERO: Final = compile_pattern(
    rf"{INVALID}{_PRODUCER}(?:{_WHERE})?: {_INCOMING}\. Expected sequence 0"
)
_NEW_EPOCH: Final = compile_pattern(
    rf"{INVALID}new epoch(?: of {_PRODUCER})?(?:{_WHERE})?: (?P<epoch>{NUMBER}) \(request epoch\), "
    rf"(?P<incoming>{NUMBER}) \(seq\. number\)"
    rf"(?:, (?P<current_epoch>{NUMBER}) \(current producer epoch\))?"
)
_NO_LONGER_VALID: Final = compile_pattern(
    rf"{FENCED}(?:at offset (?P<offset>{NUMBER}) )?is no longer valid"
    rf"(?: in partition {TOPIC_PARTITION}:"
    r"|\. There is probably another producer with a newer epoch\.)"
    rf" (?P<epoch>{NUMBER}) \(request epoch\),"
    rf" (?P<current_epoch>{NUMBER}) \((?:server|current) epoch\)"
)
_LAST_SEEN: Final = compile_pattern(
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
    """Return the fields of the line before an exception; of a line that is cut short only the time."""
    match = _FIRST.match(line.message)
    return FirstLine(
        at=line.origin.at,
        broker_id=line.origin.broker_id,
        name=None if match is None else partition_of(match),
        topic_id=None if match is None else topic_id_if_any(match["topic_id"]),
    )


def out_of_order(line: Line) -> SequenceRejected:
    """Read "Out of order sequence number"."""
    match = _BUT_EXPECTED_ZERO.match(line.message)
    if match is not None:  # to Kafka 2.0.0: the broker has no batch of this epoch
        return _sequence(line, match, SequenceForm.EXPECTED_ZERO)
    match = match_start(_OUT_OF_ORDER, line.message)
    earliest = match["what"].startswith("earliest")
    form = SequenceForm.EARLIEST_SEEN if earliest else SequenceForm.OUT_OF_ORDER
    # -1, in this form alone, is no absence: the epoch is known and has no batch.
    current = -1 if match["current"] == "-1" else int32(match["current"])
    return _sequence(line, match, form, current)


def invalid(line: Line) -> SequenceRejected:
    """Read "Invalid sequence number": of a new epoch, or of a producer without a state."""
    if line.message.startswith(f"{INVALID}producer"):
        return _sequence(
            line, match_start(_EXPECTED_ZERO, line.message), SequenceForm.EXPECTED_ZERO
        )
    return _sequence(line, match_start(_NEW_EPOCH, line.message), SequenceForm.NEW_EPOCH)


def epoch(line: Line) -> EpochRejected | None:
    """Read that an epoch is an older one; None: nothing that a producer sent was rejected."""
    if not _is_thrown(line.head):
        return None  # a follower only remarks on what it takes over from its leader
    match = _NO_LONGER_VALID.match(line.message) or match_start(_LAST_SEEN, line.message)
    fields = match.groupdict()
    if fields.get("version") not in (None, _NO_MARKER):
        return None  # a marker, which the coordinator sends
    name, _ = _where(line, match)
    return EpochRejected(
        origin=line.origin,
        producer_id=int64_if_any(fields.get("producer")),
        topic=None if name is None else name.topic,
        partition=None if name is None else name.partition,
        offset=int64_if_any(fields["offset"]),
        producer_epoch=int16(fields["epoch"]),
        current_epoch=int16(fields["current_epoch"]),
    )


def cut(line: Line) -> None:
    """Read the name of an exception that no known message follows: clients log others with it.

    Raises:
        LineUnreadableError: the line ends before its message can be distinguished from others.
    """
    name, _, text = line.message.partition(":")
    rest = text.strip()
    if any(start.startswith(rest) for start in _EXCEPTIONS[name]):
        raise LineUnreadableError(line.message)


def _sequence(
    line: Line, match: re.Match[str], form: SequenceForm, current: int | None = None
) -> SequenceRejected:
    fields = match.groupdict()
    name, topic_id = _where(line, match)
    request, current_epoch = fields.get("epoch"), fields.get("current_epoch")
    producer_id = fields["producer"]
    return SequenceRejected(
        origin=line.origin,
        form=form,
        producer_id=None if producer_id is None else int64(producer_id),
        topic=None if name is None else name.topic,
        partition=None if name is None else name.partition,
        topic_id=topic_id,
        offset=int64_if_any(fields.get("offset")),
        incoming_sequence=int32(fields["incoming"]),
        current_sequence=current,
        producer_epoch=None if request is None else int16(request),
        current_epoch=None if current_epoch is None else int16(current_epoch),
    )


def _where(line: Line, match: re.Match[str]) -> tuple[TopicPartition | None, TopicId | None]:
    """Return the partition of the message, else that of the line before it."""
    own = partition_of(match) if match.groupdict().get("topic") is not None else None
    before = line.before
    if before is None or (own is not None and own != before.name):
        return own, None
    return before.name, before.topic_id


def _is_thrown(head: str) -> bool:
    """Whether a message is that of an exception, or is alone on its line."""
    before = head.rstrip()
    return not before or before.endswith("Exception:")
