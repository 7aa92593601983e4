"""Records of two lines, whatever came between them and whatever shippers put around them."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from collectors.broker_log.parser import LineParser
from rules.facts.broker_log import SequenceForm, SequenceRejected
from rules.facts.identity import BrokerId, TopicId
from tests.log_lines import (
    AT,
    SOURCE,
    append_failed,
    events_of,
    origin,
    parser,
    stamped,
    thrown,
)

FIRST = append_failed("10MutW2kQReRXczn4GtumQ:orders-a-0")
SECOND = thrown(
    "Out of order sequence number for producer 2001 at offset 3 in partition orders-a-0:"
    " 27 (incoming seq. number), 2 (current end sequence number)"
)
OLD_SECOND = thrown(
    "Out of order sequence number for producerId 2001: 27 (incoming seq. number),"
    " 2 (current end sequence number)"
)
REJECTED = SequenceRejected(
    origin=origin(),
    form=SequenceForm.OUT_OF_ORDER,
    producer_id=2001,
    topic="orders-a",
    partition=0,
    topic_id=TopicId("10MutW2kQReRXczn4GtumQ"),
    offset=3,
    incoming_sequence=27,
    current_sequence=2,
)
ALONE = replace(REJECTED, origin=origin(at=None, broker_id=None), topic_id=None)
ORDINARY = stamped("[GroupCoordinator 1]: Preparing to rebalance group g in state Empty")
BROKEN = thrown("Out of order sequence number for producer 2001 at offset")


def read(*lines: str) -> list[bytes]:
    return [line.encode() for line in lines]


def test_a_second_line_takes_time_broker_and_topic_id_of_the_first() -> None:
    assert events_of(ORDINARY, FIRST, SECOND, ORDINARY) == [REJECTED]


def test_records_that_follow_each_other_keep_their_own_times() -> None:
    later = append_failed("10MutW2kQReRXczn4GtumQ:orders-a-0", time="2026-11-21 11:56:41,000")
    after = datetime(2026, 11, 21, 11, 56, 41, tzinfo=UTC)
    assert events_of(FIRST, SECOND, later, SECOND) == [
        REJECTED,
        replace(REJECTED, origin=origin(after)),
    ]


def test_lines_that_come_in_different_calls_belong_together() -> None:
    made = parser()
    assert made.feed(read(FIRST)) == []
    assert made.feed([]) == []
    assert made.feed(read(SECOND)) == [REJECTED]


def test_a_first_line_is_forgotten_with_the_next_line_whatever_it_is() -> None:
    for other in (ORDINARY, "", "\tat kafka.Any", BROKEN):
        made = parser()
        assert made.feed(read(FIRST, other, SECOND)) == [ALONE]
        assert made.feed(read(FIRST)) == []
        assert made.feed(read(other)) == []
        assert made.feed(read(SECOND)) == [ALONE]


def test_a_first_line_lends_nothing_to_a_line_with_a_time_of_its_own() -> None:
    other = stamped(
        "[Partition b-1 broker=2] Shrinking ISR from 1,2 to 2", time="2026-11-21 12:00:00,000"
    )
    (event,) = events_of(FIRST, other)
    assert event.origin == origin(datetime(2026, 11, 21, 12, tzinfo=UTC), broker_id=2)


def test_a_first_line_of_another_partition_lends_no_topic_id() -> None:
    (event,) = events_of(FIRST.replace("orders-a-0", "orders-b-0"), SECOND)
    assert event == replace(REJECTED, topic_id=None)


def test_a_first_line_that_is_cut_still_tells_its_time() -> None:
    (event,) = events_of(FIRST[: FIRST.index("10Mut")], SECOND)
    assert event == replace(REJECTED, topic_id=None)


def test_a_parser_that_is_resumed_goes_on_between_the_lines_of_a_record() -> None:
    for second, expected in ((SECOND, REJECTED), (OLD_SECOND, replace(REJECTED, offset=None))):
        made = parser()
        made.feed(read(FIRST))
        resumed = LineParser.resumed(SOURCE, None, UTC, made.state())
        assert resumed.feed(read(second)) == [expected]
        assert (resumed.lines, resumed.unparsed) == (1, 0)


def test_a_parser_that_waits_for_nothing_has_the_state_of_a_new_one() -> None:
    made = parser()
    made.feed(read(FIRST, SECOND))
    assert made.state() == parser().state()
    assert LineParser.resumed(SOURCE, None, UTC, made.state()).feed(read(SECOND)) == [ALONE]


def test_a_state_stays_small() -> None:
    made = parser(2**31 - 1)
    made.feed(read(append_failed("10MutW2kQReRXczn4GtumQ:" + "x" * 249 + "-2147483647", 2**31 - 1)))
    assert 300 < len(made.state()) < 500


@pytest.mark.parametrize(
    "state",
    [
        "",
        "{}",
        "[]",
        "null",
        "7",
        '"at"',
        "not JSON",
        '{"at": 7, "broker_id": 1, "name": null, "topic_id": null}',
        '{"at": "noon", "broker_id": 1, "name": null, "topic_id": null}',
        '{"at": "0001-01-01T00:00:00+14:00", "broker_id": 1, "name": null, "topic_id": null}',
        '{"at": null, "broker_id": [], "name": null, "topic_id": null}',
        '{"at": null, "broker_id": 1e999, "name": null, "topic_id": null}',
        '{"at": null, "broker_id": 1, "name": "x", "topic_id": null}',
    ],
)
def test_a_state_that_no_parser_wrote_is_none(state: str) -> None:
    assert LineParser.resumed(SOURCE, None, UTC, state).feed(read(SECOND)) == [ALONE]


@pytest.mark.parametrize(
    ("lines", "what"),
    [
        ((f"{FIRST}\n{SECOND}",), "joined in one record"),
        ((f"{FIRST}\n{SECOND}\n",), "joined, with its last newline"),
        ((f"{ORDINARY}\n{FIRST}", SECOND), "partly joined"),
        ((f"{FIRST}\r", f"{SECOND}\r"), "CRLF"),
        ((f"{FIRST}\r\n{SECOND}\r\n",), "joined with CRLF"),
        ((f"\t{FIRST}", f"\t{SECOND}"), "indented by tabs"),
        ((f"\x1b[31m{FIRST}\x1b[0m", f"\x1b[1;31m{SECOND}\x1b[m"), "coloured"),
        ((FIRST.replace("ERROR", "\x1b[31mERROR\x1b[0m"), SECOND), "a coloured level"),
        ((FIRST, SECOND.replace("27 (", "\x1b[1m27\x1b[0m (")), "a coloured number"),
        (
            (
                f"2026-11-21T11:56:40.161000001Z {FIRST}",
                f"2026-11-21T11:56:40.161000002Z {SECOND}",
            ),
            "times of kubectl logs --timestamps and of docker logs --timestamps",
        ),
        (
            (
                f"2026-11-21T11:56:40.161000001+00:00 stdout F {FIRST}",
                f"2026-11-21T11:56:40.161000002+00:00 stdout F {SECOND}",
            ),
            "as a container runtime keeps them on disk",
        ),
        ((f"[pod/kafka-1/kafka] {FIRST}", f"[pod/kafka-1/kafka] {SECOND}"), "kubectl --prefix"),
        ((f"kafka-1  | {FIRST}", f"kafka-1  | {SECOND}"), "docker compose logs"),
        ((f"Nov 21 11:56:40 host kafka[7]: {FIRST}", f"Nov 21 host kafka[7]: {SECOND}"), "syslog"),
        ((FIRST, f"{SECOND}\tat kafka.Any"), "with what follows it"),
        ((FIRST, f"\ufeff{SECOND}"), "a byte order mark"),
    ],
)
def test_what_shippers_put_around_lines_changes_nothing(lines: tuple[str, ...], what: str) -> None:
    assert events_of(*lines) == [REJECTED], what


def test_a_second_line_alone_takes_the_time_that_a_container_runtime_put_before_it() -> None:
    (event,) = events_of(f"2026-11-21T11:56:40.159000001Z {SECOND}")
    assert event == replace(ALONE, origin=origin(AT, broker_id=None))


def test_bytes_that_are_no_text_around_a_line_change_nothing() -> None:
    made = parser()
    assert made.feed([b"\xff\x00" + FIRST.encode(), SECOND.encode() + b"\xfe\xff"]) == [REJECTED]


def test_lines_are_counted_as_they_come() -> None:
    made = parser()
    made.feed(read(FIRST, SECOND, ORDINARY, ""))
    made.feed(line for line in read(ORDINARY))
    assert (made.lines, made.unparsed) == (5, 0)


def test_of_lines_that_cannot_be_read_the_last_five_are_kept_and_cut() -> None:
    made = parser()
    broken = [f"\t{BROKEN} {number} " + "x" * 400 for number in range(7)]
    assert made.feed(read(*broken)) == []
    assert made.unparsed == 7
    assert made.unreadable == tuple(line.strip()[:300] for line in broken[2:])


def test_a_line_that_cannot_be_read_does_not_keep_the_next_from_being_read() -> None:
    made = parser()
    assert made.feed(read(BROKEN, FIRST, SECOND, BROKEN)) == [REJECTED]
    assert made.unparsed == 2


def test_events_come_in_the_order_of_their_lines() -> None:
    lines = [
        stamped(f"[Partition a-{number} broker=1] Shrinking ISR from 1,2 to 1")
        if number % 2
        else thrown(
            f"Out of order sequence number for producer {number} at offset 3 in partition a-{number}:"
            " 27 (incoming seq. number), 2 (current end sequence number)"
        )
        for number in range(3_000)
    ]
    partitions = [event.partition for event in parser().feed(read(*lines))]
    assert partitions == list(range(3_000))


def test_an_event_far_inside_a_long_line_is_found_without_its_time() -> None:
    (event,) = events_of(f"{ORDINARY} {'x' * 1_000_000} {SECOND} {'y' * 1_000_000}")
    assert event == ALONE


def test_a_record_is_found_wherever_the_text_that_is_looked_through_at_once_ends() -> None:
    for length in range(199_700, 200_300, 7):
        made = parser()
        filler = "x" * length
        assert made.feed(read(filler, FIRST, SECOND, filler)) == [REJECTED]


def test_the_last_time_that_a_line_told_is_known() -> None:
    made = parser()
    assert made.last_line_at is None
    times = [f"2026-11-21 11:56:{second:02}" for second in range(3)]
    made.feed(read(*(stamped("x", time=time) for time in times), "\tat kafka.Any", ""))
    assert made.last_line_at == datetime(2026, 11, 21, 11, 56, 2, tzinfo=UTC)
    made.feed(read("nothing told"))
    assert made.last_line_at == datetime(2026, 11, 21, 11, 56, 2, tzinfo=UTC)
    made.feed([])
    assert made.last_line_at == datetime(2026, 11, 21, 11, 56, 2, tzinfo=UTC)


@pytest.mark.parametrize(
    ("message", "node"),
    [
        pytest.param(
            "[QuorumController id=100] Fencing broker 2 at epoch 14", 100, id="from-3.5-on"
        ),
        pytest.param("[Controller 3000] Unfenced broker: 2", 3000, id="to-3.4"),
        pytest.param("[Controller id=1] Starting new leader election", None, id="with-zookeeper"),
        pytest.param("[Partition a-1 broker=2] Shrinking", None, id="a-broker"),
        pytest.param("[QuorumController id=12345678901] Fencing", None, id="too-long"),
    ],
)
def test_it_is_known_when_a_controller_of_a_quorum_wrote_last(
    message: str, node: int | None
) -> None:
    made = parser()
    for second in (1, 2):
        made.feed(read(stamped(message, time=f"2026-11-21 11:56:{second:02}"), stamped("other")))
    at = datetime(2026, 11, 21, 11, 56, 2, tzinfo=UTC)
    assert made.controllers == (() if node is None else ((BrokerId(node), at),))


def test_a_controllers_line_without_a_time_tells_nothing_of_when() -> None:
    made = parser()
    made.feed(read("[QuorumController id=100] Fencing broker 2"))
    assert made.controllers == ()


def test_what_a_line_tells_of_the_broker_goes_before_what_was_declared() -> None:
    declared = parser(7).feed(read(SECOND, FIRST, SECOND))
    assert [event.origin.broker_id for event in declared] == [BrokerId(7), BrokerId(1)]


def test_a_log_of_another_program_tells_nothing() -> None:
    foreign = [
        '127.0.0.1 - - [21/Nov/2026:11:56:40 +0000] "GET / HTTP/1.1" 200 5',
        "Nov 21 11:56:40 host sshd[7]: Accepted publickey",
        '{"level": "info", "message": "Follower count", "ts": 1795262742.8}',
        "\x1f\x8b\x08\x00\x00",
    ]
    assert events_of(*foreign) == []


def test_text_of_two_bytes_a_letter_is_not_taken_for_lines() -> None:
    made = parser()
    assert made.feed(f"{FIRST}\n{SECOND}".encode("utf-16").split(b"\n")) == []
    assert (made.unparsed, made.last_line_at) == (0, None)


def test_parsers_share_nothing() -> None:
    one, other = parser(), parser()
    one.feed(read(FIRST))
    assert other.feed(read(SECOND)) == [ALONE]
    assert (one.lines, other.lines) == (1, 1)


LATER = append_failed("10MutW2kQReRXczn4GtumQ:orders-a-0", time="2026-11-21 11:56:41,000")
AFTER = replace(REJECTED, origin=origin(datetime(2026, 11, 21, 11, 56, 41, tzinfo=UTC)))


@pytest.mark.parametrize(
    ("lines", "events", "joined"),
    [
        ([FIRST + " " + SECOND], [REJECTED], 1),
        ([FIRST + SECOND], [REJECTED], 1),
        ([FIRST + "\\n" + SECOND], [REJECTED], 1),
        ([f"{FIRST} {SECOND} {LATER} {SECOND}"], [REJECTED, AFTER], 3),
        ([FIRST, SECOND + " " + LATER, SECOND], [REJECTED, AFTER], 1),
        ([SECOND + SECOND], [ALONE, ALONE], 1),
        ([ORDINARY + " " + FIRST, SECOND], [REJECTED], 0),
        ([f"2026-11-21T11:56:40Z stderr F {FIRST}", f"broker-1 {SECOND}"], [REJECTED], 0),
        ([FIRST, f"ERROR x: {SECOND} and more of org.apache.kafka.common.errors."], [REJECTED], 0),
    ],
    ids=str,
)
def test_records_that_have_come_onto_one_line_are_read_apart(
    lines: list[str], events: list[SequenceRejected], joined: int
) -> None:
    made = parser()
    assert made.feed(read(*lines)) == events
    assert (made.joined, made.unparsed) == (joined, 0)


def test_a_megabyte_of_joined_records_takes_no_longer_than_their_lines() -> None:
    made = parser()
    assert len(made.feed([(FIRST + SECOND).encode() * 3_000])) == 3_000
    assert made.feed([b"Truncating " * 90_000]) == []
