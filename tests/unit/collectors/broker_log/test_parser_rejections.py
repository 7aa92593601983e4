"""Every text with which brokers from 1.1 to 4.x refuse a batch for its sequence or its epoch."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rules.facts.broker_log import EpochRejected, LogEvent, SequenceForm, SequenceRejected
from rules.facts.identity import TopicId
from tests.log_lines import AT, append_failed, events_of, origin, parser, stamped, thrown

TOPIC_ID = TopicId("10MutW2kQReRXczn4GtumQ")
GREATEST = 2**31 - 1

REJECTED = SequenceRejected(
    origin=origin(),
    form=SequenceForm.OUT_OF_ORDER,
    producer_id=2001,
    topic="orders-a",
    partition=0,
    offset=3,
    incoming_sequence=27,
    current_sequence=2,
)
ZERO = replace(REJECTED, form=SequenceForm.EXPECTED_ZERO, current_sequence=None)
NEW_EPOCH = replace(
    REJECTED,
    form=SequenceForm.NEW_EPOCH,
    current_sequence=None,
    incoming_sequence=5,
    producer_epoch=1,
    current_epoch=0,
)
OLD_EPOCH = EpochRejected(
    origin=origin(),
    producer_id=2007,
    topic="orders-a",
    partition=0,
    offset=3,
    producer_epoch=0,
    current_epoch=1,
)

# id, what follows "partition" on the first line, the message of the second, what it tells
SEQUENCES: list[tuple[str, str, str, SequenceRejected]] = [
    (
        "1.1 to 2.2.0: the first line alone tells the partition",
        "orders-a-0",
        "Out of order sequence number for producerId 2001: 27 (incoming seq. number), 2 (current end sequence number)",
        replace(REJECTED, offset=None),
    ),
    (
        "1.1 to 2.0.0: the epoch has no batch yet",
        "orders-a-0",
        "Out of order sequence number for producerId 2001: found 27 (incoming seq. number), but expected 0",
        replace(ZERO, offset=None),
    ),
    (
        "2.2.1 to 2.7",
        "orders-a-0",
        "Out of order sequence number for producerId 2001 at offset 3 in partition orders-a-0: 27 (incoming seq. number), 2 (current end sequence number)",
        REJECTED,
    ),
    (
        "2.8 to 4.0",
        "orders-a-0",
        "Out of order sequence number for producer 2001 at offset 3 in partition orders-a-0: 27 (incoming seq. number), 2 (current end sequence number)",
        REJECTED,
    ),
    (
        "4.1 and later: the first line tells the topic id",
        "10MutW2kQReRXczn4GtumQ:orders-a-0",
        "Out of order sequence number for producer 2001 at offset 3 in partition orders-a-0: 27 (incoming seq. number), 2 (current end sequence number)",
        replace(REJECTED, topic_id=TOPIC_ID),
    ),
    (
        "a topic id may hold dashes and underscores",
        "_-MutW2kQReRXczn4Gtu-_:orders-a-0",
        "Out of order sequence number for producer 2001 at offset 3 in partition orders-a-0: 27 (incoming seq. number), 2 (current end sequence number)",
        replace(REJECTED, topic_id=TopicId("_-MutW2kQReRXczn4Gtu-_")),
    ),
    (
        "sixteen zero bytes are no topic id",
        "AAAAAAAAAAAAAAAAAAAAAA:orders-a-0",
        "Out of order sequence number for producer 2001 at offset 3 in partition orders-a-0: 27 (incoming seq. number), 2 (current end sequence number)",
        REJECTED,
    ),
    (
        "the epoch is known and has no batch: -1 is a number here",
        "orders-a-0",
        "Out of order sequence number for producer 2001 at offset 3 in partition orders-a-0: 27 (incoming seq. number), -1 (current end sequence number)",
        replace(REJECTED, current_sequence=-1),
    ),
    (
        "the greatest numbers",
        "orders-a-2147483647",
        "Out of order sequence number for producer 9223372036854775807 at offset 9223372036854775807 in partition orders-a-2147483647: 2147483647 (incoming seq. number), 2147483647 (current end sequence number)",
        replace(
            REJECTED,
            producer_id=2**63 - 1,
            offset=2**63 - 1,
            partition=GREATEST,
            incoming_sequence=GREATEST,
            current_sequence=GREATEST,
        ),
    ),
    (
        "3.6 and later: an earlier one waits for its verification",
        "10MutW2kQReRXczn4GtumQ:orders-a-0",
        "Out of order sequence number for producer 2001 at offset 3 in partition orders-a-0: 3 (incoming seq. number), 0 (earliest seen sequence)",
        replace(
            REJECTED,
            form=SequenceForm.EARLIEST_SEEN,
            incoming_sequence=3,
            current_sequence=0,
            topic_id=TOPIC_ID,
        ),
    ),
    (
        "4.1 and later: transactions v2 without a state",
        "10MutW2kQReRXczn4GtumQ:orders-a-0",
        "Invalid sequence number for producer 2001 at offset 3 in partition orders-a-0: 27 (incoming seq. number). Expected sequence 0 for transactions v2 idempotent producer with no existing state.",
        replace(ZERO, topic_id=TOPIC_ID),
    ),
    (
        "1.1 to 2.2.0: a new epoch, and the producer is not told",
        "orders-a-0",
        "Invalid sequence number for new epoch: 1 (request epoch), 5 (seq. number)",
        replace(NEW_EPOCH, producer_id=None, offset=None, current_epoch=None),
    ),
    (
        "2.2.1 to 2.7: a new epoch",
        "orders-a-0",
        "Invalid sequence number for new epoch at offset 3 in partition orders-a-0: 1 (request epoch), 5 (seq. number)",
        replace(NEW_EPOCH, producer_id=None, current_epoch=None),
    ),
    (
        "2.8 to 3.4, and from 4.4 on: a new epoch",
        "orders-a-0",
        "Invalid sequence number for new epoch of producer 2001 at offset 3 in partition orders-a-0: 1 (request epoch), 5 (seq. number), 0 (current producer epoch)",
        NEW_EPOCH,
    ),
    (
        "3.5 to 4.3: a new epoch, and a space is missing",
        "10MutW2kQReRXczn4GtumQ:orders-a-0",
        "Invalid sequence number for new epoch of producer 2001at offset 3 in partition orders-a-0: 1 (request epoch), 5 (seq. number), 0 (current producer epoch)",
        replace(NEW_EPOCH, topic_id=TOPIC_ID),
    ),
]
NO_WHERE = replace(OLD_EPOCH, producer_id=None, offset=None)
EPOCHS: list[tuple[str, str, EpochRejected]] = [
    (
        "1.1 to 2.2.0",
        "Producer's epoch is no longer valid. There is probably another producer with a newer epoch. 0 (request epoch), 1 (server epoch)",
        NO_WHERE,
    ),
    (
        "2.2.1 to 2.4.0",
        "Producer's epoch at offset 3 is no longer valid in partition orders-a-0: 0 (request epoch), 1 (current epoch)",
        replace(OLD_EPOCH, producer_id=None),
    ),
    (
        "2.4.1 to 2.7",
        "Producer's epoch at offset 3 in orders-a-0 is 0, which is smaller than the last seen epoch 1",
        replace(OLD_EPOCH, producer_id=None),
    ),
    (
        "2.8 to 4.1",
        "Epoch of producer 2007 at offset 3 in orders-a-0 is 0, which is smaller than the last seen epoch 1",
        OLD_EPOCH,
    ),
    (
        "3.9.1 and later: a transactional batch, before it has an offset",
        "Epoch of producer 2007 is 0, which is smaller than the last seen epoch 1",
        replace(OLD_EPOCH, offset=None),
    ),
    (
        "4.2 and later: a batch has the transaction version -1",
        "Epoch of producer 2007 at offset 3 in orders-a-0 is 0, which is < the last seen epoch 1 (TV-1)",
        OLD_EPOCH,
    ),
    (
        "the greatest epochs",
        "Epoch of producer 2007 at offset 3 in orders-a-0 is 32766, which is smaller than the last seen epoch 32767",
        replace(OLD_EPOCH, producer_epoch=32_766, current_epoch=32_767),
    ),
]


@pytest.mark.parametrize(
    ("target", "message", "expected"),
    [pytest.param(*case[1:], id=case[0]) for case in SEQUENCES],
)
def test_a_rejected_sequence_is_read(target: str, message: str, expected: SequenceRejected) -> None:
    assert events_of(append_failed(target), thrown(message)) == [expected]


@pytest.mark.parametrize(
    ("message", "expected"), [pytest.param(*case[1:], id=case[0]) for case in EPOCHS]
)
@pytest.mark.parametrize("exception", ["ProducerFencedException", "InvalidProducerEpochException"])
def test_a_rejected_epoch_is_read(message: str, expected: EpochRejected, exception: str) -> None:
    assert events_of(append_failed("orders-a-0"), thrown(message, exception)) == [expected]


@pytest.mark.parametrize(
    ("target", "message", "expected"),
    [pytest.param(*case[1:], id=case[0]) for case in SEQUENCES],
)
def test_a_second_line_alone_tells_all_but_its_time_and_what_only_the_first_has(
    target: str, message: str, expected: SequenceRejected
) -> None:
    has_name = " in partition " in message
    alone = replace(
        expected,
        origin=origin(at=None, broker_id=7),
        topic=expected.topic if has_name else None,
        partition=expected.partition if has_name else None,
        topic_id=None,
    )
    assert events_of(thrown(message), broker_id=7) == [alone]
    assert events_of(message, broker_id=7) == [alone]  # pasted without the exception's name


@pytest.mark.parametrize(
    "topic",
    [
        "a",
        "orders-7",
        "-",
        "-0",
        "1-2-3",
        "dots.and_underscores",
        "10MutW2kQReRXczn4GtumQ",
        "producer-1-at-offset-3",
        "x" * 249,
    ],
)
def test_any_legal_name_of_a_topic_is_read(topic: str) -> None:
    told = SEQUENCES[4][2].replace("orders-a", topic)
    target = f"{TOPIC_ID}:{topic}-0"
    assert events_of(append_failed(target), thrown(told)) == [
        replace(REJECTED, topic=topic, topic_id=TOPIC_ID)
    ]


@pytest.mark.parametrize(
    ("message", "why"),
    [
        (SEQUENCES[3][2].replace("27 (", "2147483648 ("), "int32 of the incoming sequence"),
        (SEQUENCES[3][2].replace("27 (", "-27 ("), "a sequence is not negative"),
        (SEQUENCES[3][2].replace(" 2 (", " 2147483648 ("), "int32 of the current sequence"),
        (SEQUENCES[3][2].replace(" 2 (", " -2 ("), "-1 is the one that is negative"),
        (SEQUENCES[3][2].replace("2001", "9223372036854775808"), "int64 of the producer"),
        (SEQUENCES[3][2].replace("2001", "-1"), "a batch without a producer is not checked"),
        (SEQUENCES[3][2].replace("offset 3", "offset 9223372036854775808"), "int64 of the offset"),
        (SEQUENCES[3][2].replace("offset 3", "offset " + "9" * 30), "longer than any number"),
        (SEQUENCES[3][2].replace("orders-a-0:", "orders-a-2147483648:"), "int32 of the partition"),
        (SEQUENCES[3][2].replace("orders-a-0:", "orders:a-0:"), "no legal name of a topic"),
        (SEQUENCES[3][2].replace("orders-a-0:", "x" * 250 + "-0:"), "too long a name"),
        (SEQUENCES[14][2].replace(" 1 (", " 32768 ("), "int16 of the epoch"),
        (SEQUENCES[3][2].replace("27 (", "٢٧ ("), "digits of another script"),
    ],
)
def test_numbers_and_names_beyond_their_types_are_no_event_and_counted(
    message: str, why: str
) -> None:
    made = parser()
    assert made.feed([append_failed("orders-a-0").encode(), thrown(message).encode()]) == [], why
    assert made.unparsed == 1
    assert made.unreadable == (thrown(message)[:300],)


def test_an_epoch_beyond_its_type_is_no_event_and_counted() -> None:
    made = parser()
    line = thrown(EPOCHS[3][1].replace("epoch 1", "epoch 32768"), "InvalidProducerEpochException")
    assert made.feed([line.encode()]) == []
    assert made.unparsed == 1


@pytest.mark.parametrize("message", [case[2] for case in SEQUENCES])
def test_a_message_cut_anywhere_is_the_same_event_or_counted(message: str) -> None:
    whole = thrown(message)
    (event,) = events_of(whole)
    begins_at = len(thrown(""))
    for length in range(begins_at, len(whole)):
        made = parser()
        told = made.feed([whole[:length].encode()])
        assert (told, made.unparsed) in (([], 1), ([_without_what_was_cut(event, message)], 0)), (
            length
        )
        assert told == [] or "(seq. number)" in whole[:length] or "xpected" in whole[:length]


def _without_what_was_cut(event: LogEvent, message: str) -> LogEvent:
    """Return a rejection without the epoch that is last in the form of a new one."""
    assert isinstance(event, SequenceRejected)
    return replace(event, current_epoch=None) if "new epoch" in message else event


@pytest.mark.parametrize(
    "line",
    [
        thrown("The broker received an out of order sequence number."),
        thrown("The server disconnected before a response was received.", "NetworkException"),
        thrown("Producer attempted to produce with an old epoch.", "InvalidProducerEpochException"),
        thrown(
            "There is a newer producer with the same transactionalId.", "ProducerFencedException"
        ),
        "Caused by: " + thrown("The broker received an out of order sequence number."),
        stamped(
            "[Producer clientId=a] ProducerId: 7; Set last ack'd sequence number for topic-partition a-0 to 5",
            level="DEBUG",
        ),
        stamped(
            "[Producer clientId=a] Resetting the last seen epoch of partition a-0 to 3 since the associated topicId changed from x to y"
        ),
    ],
)
def test_what_clients_say_of_the_same_errors_is_no_event_and_not_counted(line: str) -> None:
    assert events_of(line) == []


def test_a_follower_that_remarks_on_an_epoch_refuses_nothing() -> None:
    line = stamped(EPOCHS[3][1], level="WARN", logger="kafka.log.ProducerAppendInfo")
    assert events_of(line) == []


@pytest.mark.parametrize(
    "message",
    [
        "Epoch of producer 7 at offset 3 in a-0 is 1, which is <= the last seen epoch 1 (TV2)",
        "Epoch of producer 7 at offset 3 in a-0 is 0, which is < the last seen epoch 1 (TV0)",
    ],
)
def test_a_rejected_marker_is_none_of_a_producer(message: str) -> None:
    line = thrown(message, "InvalidProducerEpochException")
    assert events_of(append_failed("a-0"), line) == []


def test_an_epoch_that_was_rejected_is_logged_as_information_from_kafka_3_9_on() -> None:
    first = append_failed("orders-a-0").replace("ERROR", "INFO")
    assert events_of(first, thrown(EPOCHS[3][1], "InvalidProducerEpochException")) == [OLD_EPOCH]


def test_another_error_of_an_append_is_no_event() -> None:
    told = (
        "The size of the current ISR : 1 is insufficient to satisfy the min.isr requirement of 2"
        " for partition orders-a-0, live replica(s) broker.id are : Set(1)"
    )
    assert events_of(append_failed("orders-a-0"), thrown(told, "NotEnoughReplicasException")) == []


def test_broker_0_is_a_broker() -> None:
    (event,) = events_of(
        append_failed("orders-a-0", broker_id=0), thrown(SEQUENCES[3][2]), broker_id=9
    )
    assert event.origin == origin(AT, broker_id=0)
