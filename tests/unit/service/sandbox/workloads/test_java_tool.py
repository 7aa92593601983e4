"""Lines of Kafka's verifiable clients become counts; anything else is text for a person."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from collectors.security import SaslMechanism, Security, SecurityProtocol
from rules.errors import SandboxError
from service.sandbox.workloads.counts import Counts
from service.sandbox.workloads.java_tool import (
    LineReader,
    is_cause_line,
    java_security,
    parse_event,
)

# Lines of kafka-tools 4.1.1, shortened only in their lists of offsets.
EVENTS = {
    "sent": (
        (
            '{"timestamp":1,"name":"producer_send_success","key":"0","value":"3","offset":2,'
            '"topic":"t1","partition":2}'
        ),
        Counts(sent=1, acknowledged=1),
    ),
    "not sent": (
        (
            '{"timestamp":1,"name":"producer_send_error","topic":"t1","key":null,"value":"0",'
            '"exception":"class org.apache.kafka.common.KafkaException",'
            '"message":"Producer closed while send in progress"}'
        ),
        Counts(sent=1, failed=1, last_error="Producer closed while send in progress"),
    ),
    "read": (
        (
            '{"timestamp":1,"name":"records_consumed","count":20,"partitions":[{"topic":"t1",'
            '"partition":2,"count":20,"minOffset":0,"maxOffset":19}]}'
        ),
        Counts(consumed=20),
    ),
    "committed": (
        (
            '{"timestamp":1,"name":"offsets_committed","offsets":[{"topic":"t1","partition":2,'
            '"offset":13}],"success":true}'
        ),
        Counts(),
    ),
    "commit rejected": (
        (
            '{"timestamp":1,"name":"offsets_committed","error":"The group is rebalancing",'
            '"offsets":[],"success":false}'
        ),
        Counts(last_error="The group is rebalancing"),
    ),
    "share group read": (
        (
            '{"timestamp":1,"name":"records_consumed","count":7,"partitions":[{"topic":"t1",'
            '"partition":0,"count":7,"offsets":[0,1,2,3,4,5,6]}]}'
        ),
        Counts(consumed=7),
    ),
    "share group acknowledged": (
        '{"timestamp":1,"name":"offsets_acknowledged","count":7,"partitions":[],"success":true}',
        Counts(),
    ),
    "share group rejected": (
        (
            '{"timestamp":1,"name":"offsets_acknowledged","count":7,"partitions":[],'
            '"success":false,"error":"fenced"}'
        ),
        Counts(last_error="fenced"),
    ),
    "total, counted before": (
        (
            '{"timestamp":1,"name":"tool_data","sent":20,"acked":20,"target_throughput":10,'
            '"avg_throughput":10.1}'
        ),
        Counts(),
    ),
    "start": ('{"timestamp":1,"name":"startup_complete"}', Counts()),
}


@pytest.mark.parametrize(("line", "counts"), EVENTS.values(), ids=EVENTS.keys())
def test_an_event_is_counted(line: str, counts: Counts) -> None:
    assert parse_event(line) == counts


@pytest.mark.parametrize("line", ["", "42", "[1]", "log4j: no appender", '{"timestamp":1,"na'])
def test_other_text_is_no_event(line: str) -> None:
    assert parse_event(line) is None


def test_a_cause_line_is_no_stack_frame() -> None:
    assert is_cause_line("Caused by: org.apache.kafka.common.config.ConfigException: acks")
    frame = "\tat org.apache.kafka.tools.VerifiableProducer.main(VerifiableProducer.java:526)"
    assert not any(is_cause_line(line) for line in (frame, "\t... 12 more", "  "))


def test_no_security_stays_no_security() -> None:
    assert java_security(Security()) == {"security.protocol": "PLAINTEXT"}


def test_scram_becomes_a_login_line_with_escaped_secrets() -> None:
    security = Security(
        protocol=SecurityProtocol.SASL_PLAINTEXT,
        sasl_mechanism=SaslMechanism.SCRAM_SHA_256,
        sasl_username="ada",
        sasl_password='quo"te\\',  # noqa: S106 - made up
    )
    assert java_security(security) == {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "SCRAM-SHA-256",
        "sasl.jaas.config": (
            "org.apache.kafka.common.security.scram.ScramLoginModule required "
            'username="ada" password="quo\\"te\\\\";'
        ),
    }


def test_tls_is_rejected() -> None:
    with pytest.raises(SandboxError, match="PLAINTEXT"):
        java_security(Security(protocol=SecurityProtocol.SSL))


@pytest.fixture
def pipe() -> Iterator[tuple[int, LineReader]]:
    read, write = os.pipe()
    with os.fdopen(read, "rb") as readable, os.fdopen(write, "wb", buffering=0) as writable:
        reader = LineReader(readable)
        yield writable.fileno(), reader
        reader.close()


def test_a_line_in_two_pieces_is_one_line(pipe: tuple[int, LineReader]) -> None:
    write, reader = pipe
    os.write(write, b"one\ntw")
    assert reader.read(1) == ["one"]
    os.write(write, b"o\n")
    assert reader.read(1) == ["two"]


def test_silence_is_no_end(pipe: tuple[int, LineReader]) -> None:
    _, reader = pipe
    assert reader.read(0) == []
    assert not reader.is_at_end


def test_an_unfinished_last_line_is_read_at_the_end() -> None:
    read, write = os.pipe()
    os.write(write, b"half")
    os.close(write)
    with os.fdopen(read, "rb") as readable:
        reader = LineReader(readable)
        assert [reader.read(1), reader.read(1), reader.read(1)] == [[], ["half"], []]
        assert reader.is_at_end
        reader.close()
