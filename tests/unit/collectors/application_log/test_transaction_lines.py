"""Lines of Kafka's formatter of the transaction log, in the forms of its releases."""

import json
from datetime import UTC, datetime

import pytest

from collectors.application_log.reader import Reader
from rules.facts.application_log import TransactionLogged

VALUE = {
    "producerId": 9, "producerEpoch": 4, "transactionTimeoutMs": 60000, "transactionStatus": 2,
    "transactionPartitions": [{"topic": "orders", "partitionIds": [0, 3]}],
    "transactionLastUpdateTimestampMs": 1767323045006, "transactionStartTimestampMs": 1767323045000,
}  # fmt: skip
OLD = (
    "pay-1::TransactionMetadata(transactionalId=pay-1, producerId=9, producerEpoch=4, txnTimeoutMs=60000, "
    "state={state}, pendingState=None, topicPartitions=HashSet(orders-0, orders-3), "
    "txnStartTimestamp=1767323045000, txnLastUpdateTimestamp=1767323045006)"
)
NEW = (
    "pay-1::TransactionMetadata(producerId=9, producerEpoch=4, transactionTimeoutMs=60000, "
    "transactionStatus={state}, transactionPartitions=[PartitionsSchema(topic='orders', partitionIds=[0, 3])], "
    "transactionLastUpdateTimestampMs=1767323045006, transactionStartTimestampMs=1767323045000)"
)
DUMPED = (
    "| offset: 8 key: transaction_metadata::transactionalId=pay-1 payload: producerId:9,producerEpoch:4,"
    "state={state},partitions=[orders-0, orders-3],txnLastUpdateTimestamp=1767323045006,txnTimeoutMs=60000"
)


def as_json(**value: object) -> str:
    key = {"type": 0, "data": {"transactionalId": "pay-1"}}
    return json.dumps({"key": key, "value": {"version": 1, "data": {**VALUE, **value}}})


@pytest.mark.parametrize(
    "line",
    [
        OLD.format(state="PrepareCommit"),
        NEW.format(state=2),
        NEW.format(state="PREPARE_COMMIT"),
        as_json(),
        as_json(transactionStatus="PrepareCommit"),
        DUMPED.format(state="PrepareCommit"),
    ],
    ids=["to 4.0", "a number", "a name", "JSON", "JSON with a name", "dumped"],
)
def test_forms(line: str) -> None:
    (logged,) = Reader("a").feed(line.encode())
    assert isinstance(logged, TransactionLogged)
    assert (logged.transactional_id, logged.state) == ("pay-1", "PrepareCommit")
    assert (logged.producer_id, logged.producer_epoch, logged.timeout_ms) == (9, 4, 60000)
    assert logged.partitions == ("orders-0", "orders-3")
    assert logged.updated_at == datetime(2026, 1, 2, 3, 4, 5, 6000, UTC)


def test_a_tombstone_has_no_state() -> None:
    line = {"key": {"type": 0, "data": {"transactionalId": "pay-1"}}, "value": None}
    (logged,) = Reader("a").feed(json.dumps(line).encode())
    assert isinstance(logged, TransactionLogged)
    assert (logged.transactional_id, logged.state) == ("pay-1", None)


@pytest.mark.parametrize(
    "line",
    [
        OLD.format(state="Ongoing")[:60],
        "pay-1::TransactionMetadata(",
        '{"transactionStatus":',
        "a lecture about TransactionMetadata(",
    ],
)
def test_a_line_that_is_cut_is_no_event(line: str) -> None:
    assert Reader("a").feed(line.encode()) == []
