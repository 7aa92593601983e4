"""A client's own lines tell that a batch was rejected: it is said whose log tells by which numbers."""

from __future__ import annotations

import pytest

from service.cli.sequence.client_lines import is_clients
from service.cli.sequence.explaining import remarks
from service.terminal.exit_codes import ExitCode
from tests.unit.service.cli.sequence.given import OUT_OF_ORDER, reading, rejected

JAVA_RETRY = (
    "[2026-11-21 12:00:00,159] WARN [Producer clientId=p] Got error produce response with correlation "
    "id 14 on topic-partition my.orders-0, retrying (2147483646 attempts left). Error: "
    "OUT_OF_ORDER_SEQUENCE_NUMBER (org.apache.kafka.clients.producer.internals.Sender)"
)
JAVA_THROWN = f"{OUT_OF_ORDER}: The broker received an out of order sequence number."
LIBRDKAFKA = (
    "%0|1700000000.0|FATAL|p#producer-1| [thrd:main]: Fatal error: Broker: Broker received an out of "
    "order sequence number: ProduceRequest for orders [3] with 5 message(s) failed due to sequence "
    "desynchronization with broker 2 (PID{Id:2,Epoch:0}, base seq 27, idemp state change 9511ms ago)"
)
LIBRDKAFKA_TRANSACTION = (
    "%3|1700000000.0|TXNERR|p#producer-1| Current transaction failed in state InTransaction: skipped "
    "sequence numbers (OUT_OF_ORDER_SEQUENCE_NUMBER, requires epoch bump)"
)
GO = "kafka server: The broker received an out of order sequence number"


@pytest.mark.parametrize(
    "line", [JAVA_RETRY, JAVA_THROWN, LIBRDKAFKA, LIBRDKAFKA_TRANSACTION, GO], ids=range(5)
)
def test_a_client_s_line_is_known(line: str) -> None:
    assert is_clients(line.encode())


@pytest.mark.parametrize(
    "line",
    [
        *rejected(27, 2),
        OUT_OF_ORDER + ":",
        f"{OUT_OF_ORDER}: Out of order seq",
        f"{OUT_OF_ORDER}: Out of order sequence number for producer 2001 at",
        f"{OUT_OF_ORDER}: Invalid sequence number for",
        "an ordinary line",
    ],
)
def test_a_broker_s_line_is_none(line: str) -> None:
    assert not is_clients(line.encode())


def test_it_is_said_which_log_tells_more() -> None:
    found = reading([JAVA_RETRY, JAVA_THROWN, LIBRDKAFKA])
    assert (found.events, found.exit_code) == ((), ExitCode.NOTHING_TO_EXPLAIN)
    assert list(remarks(found)) == [
        "no line about sequences among 3 lines",
        (
            "3 lines are a client's: the sequence numbers are in the log of the broker that led the "
            "partition then, as"
        ),
        (
            '  "Out of order sequence number for producer ..." or "Invalid sequence number for ...", '
            "with the line before it"
        ),
        (
            "  my.orders-0: grep -B1 'sequence number for .*my.orders-0' server.log on the broker that "
            "led it"
        ),
        "  orders-3: grep -B1 'sequence number for .*orders-3' server.log on broker 2",
    ]


def test_beside_a_broker_s_lines_it_is_only_counted() -> None:
    found = reading([*rejected(27, 2), GO])
    assert found.exit_code == ExitCode.OK
    assert any(line.startswith("1 line is a client's") for line in remarks(found))
