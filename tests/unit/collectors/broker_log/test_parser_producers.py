"""Coordinators' lines about producers, and requests of producers in a broker's request log."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from rules.facts.broker_log import (
    ClientInstance,
    LogEvent,
    ProducerInitialised,
    ProducerRequest,
    TransactionTimedOut,
)
from tests.log_lines import events_of, origin, parser, stamped

COORDINATOR = "[TransactionCoordinator id=1]"
LOGGER = "kafka.coordinator.transaction.TransactionCoordinator"
WRITER = ClientInstance(
    client_id="payments-1",
    host="10.0.0.7",
    port=56482,
    listener="PLAINTEXT",
    software="librdkafka 2.16.0",
)
INITIALISED = ProducerRequest(
    origin=origin(broker_id=None),
    request="InitProducerId",
    error=None,
    transactional_id="payments",
    producer_id=7,
    producer_epoch=2,
    instance=WRITER,
)


def said(message: str) -> str:
    return stamped(f"{COORDINATOR} {message}", logger=LOGGER)


@pytest.mark.parametrize(
    ("line", "event"),
    [
        pytest.param(
            said(
                "Initialized transactionalId payments with producerId 7 and producer epoch 2 on "
                "partition __transaction_state-8"
            ),
            ProducerInitialised(
                origin=origin(), transactional_id="payments", producer_id=7, producer_epoch=2
            ),
            id="initialised",
        ),
        pytest.param(
            said(
                "Initialized transactionalId a with producerId 1 with producerId 7 and producer epoch 2 "
                "on partition __transaction_state-8"
            ),
            ProducerInitialised(
                origin=origin(),
                transactional_id="a with producerId 1",
                producer_id=7,
                producer_epoch=2,
            ),
            id="an-id-that-looks-like-the-words-behind-it",
        ),
        pytest.param(
            said(
                "Completed rollback of ongoing transaction for transactionalId payments due to timeout"
            ),
            TransactionTimedOut(origin=origin(), transactional_id="payments"),
            id="timed-out",
        ),
    ],
)
def test_a_coordinators_line_is_read(line: str, event: LogEvent) -> None:
    assert events_of(line, broker_id=1) == [event]


def test_a_line_that_is_cut_short_is_counted() -> None:
    reading = parser()
    assert reading.feed([said("Initialized transactionalId payments with prod").encode()]) == []
    assert reading.unparsed == 1


def completed(name: str, request: dict[str, Any], response: dict[str, Any], **more: Any) -> str:
    document = {
        "isForwarded": False,
        "requestHeader": {
            "requestApiKey": 22,
            "requestApiVersion": 4,
            "correlationId": 48,
            "clientId": "payments-1",
            "requestApiKeyName": name,
        },
        "request": request,
        "response": response,
        "connection": "10.0.0.1:9092-10.0.0.7:56482-0-8",
        "totalTimeMs": 5.3,
        "listener": "PLAINTEXT",
        "clientInformation": {"softwareName": "librdkafka", "softwareVersion": "2.16.0"},
        **more,
    }
    text = json.dumps(document, separators=(",", ":"))
    return stamped(f"Completed request:{text}", level="DEBUG", logger="kafka.request.logger")


def init(code: int = 0, **request: Any) -> str:
    given = (7, 2) if code == 0 else (-1, -1)
    return completed(
        "INIT_PRODUCER_ID",
        {"transactionalId": "payments", "producerId": -1, "producerEpoch": -1, **request},
        {"throttleTimeMs": 0, "errorCode": code, "producerId": given[0], "producerEpoch": given[1]},
    )


def end(code: int, *, commit: bool) -> str:
    request = {
        "transactionalId": "payments",
        "producerId": 7,
        "producerEpoch": 0,
        "committed": commit,
    }
    return completed("END_TXN", request, {"throttleTimeMs": 0, "errorCode": code})


def produce(code: int, name: str | None = "payments") -> str:
    part = {"index": 0, "errorCode": code, "baseOffset": -1, "errorMessage": None}
    return completed(
        "PRODUCE",
        {"transactionalId": name, "acks": -1, "topicData": []},
        {"responses": [{"name": "orders", "partitionResponses": [part]}]},
    )


def add(code: int) -> str:
    request = {
        "v3AndBelowTransactionalId": "payments",
        "v3AndBelowProducerId": 7,
        "v3AndBelowProducerEpoch": 0,
    }
    results = [{"partitionIndex": 0, "partitionErrorCode": code}]
    topics = [{"name": "orders", "resultsByPartition": results}]
    return completed("ADD_PARTITIONS_TO_TXN", request, {"resultsByTopicV3AndBelow": topics})


OLD = replace(INITIALISED, producer_epoch=0)


@pytest.mark.parametrize(
    ("line", "event"),
    [
        pytest.param(init(), INITIALISED, id="initialised"),
        pytest.param(
            init(producerId=7, producerEpoch=1),
            replace(INITIALISED, is_own_epoch=True),
            id="raised-its-own-epoch",
        ),
        pytest.param(
            init(90, producerId=7, producerEpoch=1),
            replace(INITIALISED, error="PRODUCER_FENCED", producer_epoch=1, is_own_epoch=True),
            id="rejected-while-raising-its-epoch",
        ),
        pytest.param(
            end(0, commit=False), replace(OLD, request="EndTxn", is_commit=False), id="aborted"
        ),
        pytest.param(
            end(90, commit=True),
            replace(OLD, request="EndTxn", error="PRODUCER_FENCED", is_commit=True),
            id="fenced-commit",
        ),
        pytest.param(
            add(90),
            replace(OLD, request="AddPartitionsToTxn", error="PRODUCER_FENCED"),
            id="fenced-partition",
        ),
        pytest.param(
            produce(47),
            replace(
                INITIALISED,
                request="Produce",
                error="INVALID_PRODUCER_EPOCH",
                producer_id=None,
                producer_epoch=None,
            ),
            id="a-produce-request-names-no-epoch",
        ),
    ],
)
def test_a_producers_request_is_read(line: str, event: ProducerRequest) -> None:
    assert events_of(line) == [event]


@pytest.mark.parametrize(
    "line",
    [
        pytest.param(init(51), id="another-error"),
        pytest.param(init(transactionalId=None), id="of-an-idempotent-producer"),
        pytest.param(end(0, commit=True), id="a-commit"),
        pytest.param(end(48, commit=True), id="an-end-in-the-wrong-state"),
        pytest.param(produce(45), id="another-rejection"),
        pytest.param(produce(47)[:200], id="cut-short"),
        pytest.param(
            completed(
                "ADD_PARTITIONS_TO_TXN",
                {"transactions": [{"transactionalId": "payments", "verifyOnly": True}]},
                {"resultsByTransaction": [{"topicResults": [{"partitionErrorCode": 90}]}]},
            ),
            id="of-a-broker-that-verifies",
        ),
    ],
)
def test_other_requests_are_no_events(line: str) -> None:
    assert events_of(line) == []


def test_a_client_id_cannot_pretend_to_be_a_request() -> None:
    forged = init(51).replace("payments-1", r"Initialized transactionalId x \"errorCode\":47,")
    assert events_of(forged) == []
