"""Lines of applications' logs as events: records, what shippers put around them, and bad input."""

import json
from datetime import UTC, datetime

import pytest

from collectors.application_log.reader import MOST_OPEN, Reader
from rules.facts.application_log import (
    ApplicationError,
    ApplicationEvent,
    Client,
    Framework,
    Operation,
    Outcome,
    Part,
)

ERRORS = "org.apache.kafka.common.errors."
FENCED = f"{ERRORS}ProducerFencedException: words"
HEAD = "2026-01-02 03:04:05,006 ERROR [main] a.B - commit failed"


def read(text: str | bytes, *, source: str = "a") -> list[ApplicationEvent]:
    reader = Reader(source)
    raw = text.encode() if isinstance(text, str) else text
    return [*reader.feed_all(raw.split(b"\n")), *reader.close()]


def errors(text: str | bytes) -> list[ApplicationError]:
    return [event for event in read(text) if isinstance(event, ApplicationError)]


def names(text: str | bytes) -> list[list[str]]:
    return [[thrown.error for thrown in event.chain] for event in errors(text)]


def test_a_trace_is_one_event_with_the_time_of_its_first_line() -> None:
    text = (
        f"{HEAD}\norg.apache.kafka.common.KafkaException: outer\n"
        "\tat org.apache.kafka.clients.producer.KafkaProducer.commitTransaction(KafkaProducer.java:1)\n"
        f"\tat a.B.c(B.java:1)\nCaused by: {FENCED}\n\t... 3 more"
    )
    (event,) = errors(text)
    assert [thrown.error for thrown in event.chain] == ["KAFKA", "PRODUCER_FENCED"]
    assert event.at == datetime(2026, 1, 2, 3, 4, 5, 6000, UTC)
    assert (event.client, event.part, event.operation) == (
        Client.JAVA,
        Part.PRODUCER,
        Operation.COMMIT,
    )
    assert event.names.thread == "main"


def test_two_traces_below_each_other_are_two_events() -> None:
    frame = "\tat a.B.c(B.java:1)"
    assert names(f"{FENCED}\n{frame}\n{FENCED}\n{frame}") == [["PRODUCER_FENCED"]] * 2


def test_a_message_that_was_broken_over_lines_is_put_together() -> None:
    text = f"{ERRORS}TimeoutException: Expiring 3 record(s) for orders-3:120000 ms\nhas passed since batch\ncreation"
    (event,) = errors(text)
    assert event.chain[0].operation is Operation.BATCH_EXPIRED
    assert (event.names.topic, event.names.partition) == ("orders", 3)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("[Producer clientId=p-1, transactionalId=pay-1] " + FENCED, {"client_id": "p-1", "transactional_id": "pay-1"}),
        (f"[kafka-producer-network-thread | p-2] {FENCED}", {"client_id": "p-2"}),
        (f"[Consumer instanceId=i, clientId=c, groupId=g] {FENCED}", {"client_id": "c", "group": "g"}),
        (f"%1|1700000000.1|TXNERR|rd#producer-1| [thrd:main]: {FENCED}", {"client_id": "rd", "handle": "rd#producer-1"}),
        (f"for topic-partition a-b.c_d-12 {FENCED}", {"topic": "a-b.c_d", "partition": 12}),
        (f"ProduceRequest for orders [3] {FENCED}", {"topic": "orders", "partition": 3}),
        (f"PID{{Id:9,Epoch:4}} {FENCED}", {"producer_id": 9, "producer_epoch": 4}),
        ("There is a newer producer with the same transactionalId which fences it: " + FENCED, {"transactional_id": None}),
    ],
)  # fmt: skip
def test_names_are_taken_from_the_line(line: str, expected: dict[str, object]) -> None:
    (event,) = errors(line)
    assert {key: getattr(event.names, key) for key in expected} == expected


@pytest.mark.parametrize(
    "document",
    [
        {"@timestamp": "2026-01-02T03:04:05.006Z", "level": "ERROR", "message": "failed", "stack_trace": f"{FENCED}\n\tat a.B.c(B.java:1)"},
        {"@timestamp": "2026-01-02T03:04:05.006Z", "log.level": "ERROR", "message": "failed", "error.type": f"{ERRORS}ProducerFencedException", "error.message": "words"},
        {"@timestamp": "2026-01-02T03:04:05.006Z", "message": "failed", "error": {"stack_trace": FENCED}},
        {"version": "1.1", "short_message": "failed", "full_message": f"failed\n{FENCED}", "timestamp": 1767323045.006},
        {"log": f"2026-01-02 03:04:05,006 {FENCED}\n", "stream": "stderr", "time": "2026-01-02T03:04:06Z"},
        {"time": "2026-01-02T03:04:05.006Z", "jsonPayload": {"message": FENCED}},
    ],
    ids=["logstash", "ECS", "ECS nested", "GELF", "docker", "in a payload"],
)  # fmt: skip
def test_json_around_a_line_is_taken_off(document: dict[str, object]) -> None:
    (event,) = errors(json.dumps(document))
    assert "PRODUCER_FENCED" in [thrown.error for thrown in event.chain]
    assert event.at == datetime(2026, 1, 2, 3, 4, 5, 6000, UTC)


@pytest.mark.parametrize(
    ("line", "application"),
    [
        (f"orders-app-1  | {FENCED}", "orders-app-1"),
        (f"[pod/orders-7d4/app] {FENCED}", "orders-7d4/app"),
        (f"2026-01-02T03:04:05.006Z stderr F {FENCED}", None),
        (f"Jan  2 03:04:05 host orders[12]: {FENCED}", "orders"),
    ],
)
def test_what_a_shipper_puts_first_is_the_application(line: str, application: str | None) -> None:
    (event,) = errors(line)
    assert event.names.application == application


def test_interleaved_containers_are_kept_apart() -> None:
    first = [
        f"one  | {ERRORS}TimeoutException: words",
        "one  | \tat a.B.c(B.java:1)",
        f"one  | Caused by: {FENCED}",
    ]
    second = [
        f"two  | {ERRORS}NetworkException: words",
        "two  | \tat a.B.c(B.java:1)",
        "two  | \t... 3 more",
    ]
    lines = [line for pair in zip(first, second, strict=True) for line in pair]
    assert names("\n".join(lines)) == [["TIMEOUT", "PRODUCER_FENCED"], ["NETWORK_EXCEPTION"]]


@pytest.mark.parametrize(
    "raw",
    [
        f"\x1b[31m{FENCED}\x1b[0m".encode(),
        f"{FENCED}\r".encode(),
        FENCED.encode("utf-16"),
        FENCED.encode("utf-16-be"),
        b"\xff\xfe\x00" + FENCED.encode() + b"\xc3\x28",
    ],
    ids=["colours", "CRLF", "UTF-16", "UTF-16 without a mark", "not UTF-8"],
)
def test_bytes_around_a_line_do_not_hide_it(raw: bytes) -> None:
    assert names(raw) == [["PRODUCER_FENCED"]]


@pytest.mark.parametrize(
    "text",
    [
        "psycopg2.errors.SerializationFailure: could not serialize access",
        "java.util.concurrent.TimeoutException: Did not observe any item within 5000ms",
        "org.springframework.transaction.UnexpectedRollbackException: Transaction rolled back",
        "java.net.ConnectException: Connection refused",
        "ERROR org.postgresql.util.PSQLException: FATAL: terminating connection",
        "INFO kafka is fine, and so is [Producer clientId=p-1] Instantiated an idempotent producer.",
    ],
)
def test_what_is_not_an_error_of_kafka_is_no_event(text: str) -> None:
    assert read(f"{text}\n\tat a.B.c(B.java:1)") == []


def test_kafkas_words_without_a_known_error_are_an_event_without_an_error() -> None:
    (event,) = errors("WARN [Producer clientId=p-1] something that no table has")
    assert event.chain == ()
    assert event.names.client_id == "p-1"


def test_librdkafkas_flags_and_levels_are_outcomes() -> None:
    line = 'KafkaError{FATAL,code=_FENCED,val=-144,str="Local: This instance has been fenced"}'
    (event,) = errors(f"cimpl.KafkaException: {line}")
    assert (event.client, event.outcome) == (Client.LIBRDKAFKA, Outcome.FATAL)
    (event,) = errors("%4|1.1|GETPID|rd#producer-1| Failed to acquire idempotence PID: Broker: Coordinator load in progress: retrying")  # fmt: skip
    assert event.outcome is Outcome.RETRYING


def test_frames_name_the_framework() -> None:
    (event,) = errors(
        f"{FENCED}\n\tat org.apache.flink.connector.kafka.sink.KafkaWriter.a(K.java:1)"
    )
    assert event.framework is Framework.FLINK


def test_applications_beyond_the_limit_lose_no_event() -> None:
    count = MOST_OPEN + 6
    text = "\n".join(f"app-{number}  | {FENCED}" for number in range(count))
    assert len(errors(text)) == count


def test_a_line_of_many_megabytes_is_read_in_part() -> None:
    reader = Reader("a")
    reader.feed(FENCED.encode() + b"x" * 3_000_000)
    (event,) = reader.close()
    assert isinstance(event, ApplicationError)
    assert len(event.text) < 1_000
