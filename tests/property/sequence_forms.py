"""Rejected sequences and epochs as brokers of every version write them: each form with its event."""

from __future__ import annotations

from hypothesis import strategies as st

from rules.facts.broker_log import EpochRejected, SequenceForm, SequenceRejected
from tests.log_lines import origin
from tests.property.written_lines import AROUND, INT16, INT32, INT64, Around, Draw, Written


@st.composite
def sequences(draw: Draw) -> Written:
    """Draw "Out of order sequence number", by any version."""
    around = draw(AROUND)
    has_where, has_id = draw(st.sampled_from([(False, False), (True, False), (True, True)]))
    earliest = has_where and draw(st.booleans())
    current = draw(INT32 if earliest else st.integers(-1, 2**31 - 1))
    producer, offset, incoming = draw(INT64), draw(INT64), draw(INT32)
    where = f" at offset {offset} in partition {around.name}" if has_where else ""
    last = "earliest seen sequence" if earliest else "current end sequence number"
    word = draw(st.sampled_from(["producer", "producerId"]))
    message = (
        f"Out of order sequence number for {word} {producer}{where}:"
        f" {incoming} (incoming seq. number), {current} ({last})"
    )
    event = SequenceRejected(
        origin=origin(around.at, around.broker_id),
        form=SequenceForm.EARLIEST_SEEN if earliest else SequenceForm.OUT_OF_ORDER,
        producer_id=producer,
        topic=around.topic,
        partition=around.partition,
        topic_id=around.topic_id if has_id else None,
        offset=offset if has_where else None,
        incoming_sequence=incoming,
        current_sequence=current,
    )
    return around.two(message, event, "OutOfOrderSequenceException", _target(around, has_id))


@st.composite
def new_epochs(draw: Draw) -> Written:
    """Draw "Invalid sequence number for new epoch", by any version."""
    around = draw(AROUND)
    has_producer = draw(st.booleans())
    has_where = has_producer or draw(st.booleans())
    has_id = has_producer and draw(st.booleans())
    space = draw(st.sampled_from([" ", ""])) if has_producer else " "
    producer, offset, incoming = draw(INT64), draw(INT64), draw(INT32)
    request, known = draw(INT16), draw(INT16)
    of_whom = f" of producer {producer}" if has_producer else ""
    where = f"{space}at offset {offset} in partition {around.name}" if has_where else ""
    last = f", {known} (current producer epoch)" if has_producer else ""
    message = (
        f"Invalid sequence number for new epoch{of_whom}{where}:"
        f" {request} (request epoch), {incoming} (seq. number){last}"
    )
    event = SequenceRejected(
        origin=origin(around.at, around.broker_id),
        form=SequenceForm.NEW_EPOCH,
        producer_id=producer if has_producer else None,
        topic=around.topic,
        partition=around.partition,
        topic_id=around.topic_id if has_id else None,
        offset=offset if has_where else None,
        incoming_sequence=incoming,
        current_sequence=None,
        producer_epoch=request,
        current_epoch=known if has_producer else None,
    )
    return around.two(message, event, "OutOfOrderSequenceException", _target(around, has_id))


@st.composite
def expected_zeros(draw: Draw) -> Written:
    """Draw a batch that has to begin at 0, of Kafka 1.1 and of 4.1 and later."""
    around, is_old = draw(AROUND), draw(st.booleans())
    producer, offset, incoming = draw(INT64), draw(INT64), draw(INT32)
    message = (
        f"Out of order sequence number for producerId {producer}: found {incoming}"
        " (incoming seq. number), but expected 0"
        if is_old
        else f"Invalid sequence number for producer {producer} at offset {offset} in partition"
        f" {around.name}: {incoming} (incoming seq. number). Expected sequence 0 for transactions v2"
        " idempotent producer with no existing state."
    )
    event = SequenceRejected(
        origin=origin(around.at, around.broker_id),
        form=SequenceForm.EXPECTED_ZERO,
        producer_id=producer,
        topic=around.topic,
        partition=around.partition,
        topic_id=None if is_old else around.topic_id,
        offset=None if is_old else offset,
        incoming_sequence=incoming,
        current_sequence=None,
    )
    target = _target(around, has_id=not is_old)
    return around.two(message, event, "OutOfOrderSequenceException", target)


@st.composite
def epochs(draw: Draw) -> Written:
    """Draw an epoch that is an older one, by any version."""
    around = draw(AROUND)
    producer, offset, request, known = draw(INT64), draw(INT64), draw(INT16), draw(INT16)
    at = f" at offset {offset} in {around.name}"
    forms = (
        (
            "Producer's epoch is no longer valid. There is probably another producer with a newer"
            f" epoch. {request} (request epoch), {known} (server epoch)"
        ),
        (
            f"Producer's epoch at offset {offset} is no longer valid in partition {around.name}:"
            f" {request} (request epoch), {known} (current epoch)"
        ),
        f"Producer's epoch{at} is {request}, which is smaller than the last seen epoch {known}",
        f"Epoch of producer {producer}{at} is {request}, which is smaller than the last seen epoch {known}",
        f"Epoch of producer {producer} is {request}, which is smaller than the last seen epoch {known}",
        f"Epoch of producer {producer}{at} is {request}, which is < the last seen epoch {known} (TV-1)",
    )
    message = draw(st.sampled_from(forms))
    event = EpochRejected(
        origin=origin(around.at, around.broker_id),
        producer_id=producer if message.startswith("Epoch") else None,
        topic=around.topic,
        partition=around.partition,
        offset=offset if "offset" in message else None,
        producer_epoch=request,
        current_epoch=known,
    )
    exception = draw(st.sampled_from(["ProducerFencedException", "InvalidProducerEpochException"]))
    return around.two(message, event, exception, _target(around, draw(st.booleans())))


def _target(around: Around, has_id: bool) -> str:  # noqa: FBT001 - a field of what is drawn
    return f"{around.topic_id}:{around.name}" if has_id else around.name
