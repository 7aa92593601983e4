"""How the truth of a fault reads what brokers wrote of rejected batches."""

from __future__ import annotations

import pytest

from rules.facts.broker_log import SequenceForm
from rules.facts.identity import BrokerId, TopicPartition
from service.sandbox.faults.sequence_lines import Rejection, old_epoch_in, rejection_in

WHERE = TopicPartition("orders-a", 0)
BROKER = BrokerId(2)
OUT_OF_ORDER = "org.apache.kafka.common.errors.OutOfOrderSequenceException: "
TEXTBOOK = (
    OUT_OF_ORDER + "Out of order sequence number for producer 2001 at offset 13 in partition "
    "orders-a-0: 27 (incoming seq. number), 2 (current end sequence number)"
)


def rejection(**changes: object) -> Rejection:
    values: dict[str, object] = {
        "broker_id": BROKER,
        "form": SequenceForm.OUT_OF_ORDER,
        "producer_id": 2001,
        "offset": 13,
        "incoming_sequence": 27,
        "current_sequence": 2,
        "producer_epoch": None,
    }
    return Rejection(**{**values, **changes})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        pytest.param(TEXTBOOK, rejection(), id="out of order"),
        pytest.param(
            TEXTBOOK.replace(", 2 (", ", -1 ("),
            rejection(current_sequence=-1),
            id="none of the epoch",
        ),
        pytest.param(
            TEXTBOOK.replace("27 (incoming", "3 (incoming").replace(
                "2 (current end sequence number)", "0 (earliest seen sequence)"
            ),
            rejection(form=SequenceForm.EARLIEST_SEEN, incoming_sequence=3, current_sequence=0),
            id="an earlier one waits",
        ),
        pytest.param(
            OUT_OF_ORDER + "Invalid sequence number for new epoch of producer 2001at offset 13 in "
            "partition orders-a-0: 1 (request epoch), 5 (seq. number), 0 (current producer epoch)",
            rejection(
                form=SequenceForm.NEW_EPOCH,
                incoming_sequence=5,
                current_sequence=None,
                producer_epoch=1,
            ),
            id="a new epoch, without a space",
        ),
        pytest.param(
            OUT_OF_ORDER + "Invalid sequence number for new epoch of producer 2001 at offset 13 in "
            "partition orders-a-0: 1 (request epoch), 5 (seq. number), 0 (current producer epoch)",
            rejection(
                form=SequenceForm.NEW_EPOCH,
                incoming_sequence=5,
                current_sequence=None,
                producer_epoch=1,
            ),
            id="a new epoch, with a space",
        ),
        pytest.param(
            OUT_OF_ORDER + "Invalid sequence number for producer 2001 at offset 13 in partition "
            "orders-a-0: 7 (incoming seq. number). Expected sequence 0 for transactions v2 idempotent "
            "producer with no existing state.",
            rejection(form=SequenceForm.EXPECTED_ZERO, incoming_sequence=7, current_sequence=None),
            id="no state",
        ),
        pytest.param(TEXTBOOK.replace("orders-a-0", "orders-a-01"), None, id="another partition"),
        pytest.param(TEXTBOOK.replace("orders-a-0", "x.orders-a-0"), None, id="another topic"),
        pytest.param(
            "[2026-11-21 11:56:40,159] ERROR [ReplicaManager broker=1] Error processing append "
            "operation on partition 10MutW2kQReRXczn4GtumQ:orders-a-0 (kafka.server.ReplicaManager)",
            None,
            id="the line before it",
        ),
    ],
)
def test_a_line_tells_of_a_rejected_batch_of_its_partition(
    line: str, expected: Rejection | None
) -> None:
    assert rejection_in(line, BROKER, WHERE) == expected


def test_a_batch_of_an_older_epoch_is_no_gap() -> None:
    line = (
        "org.apache.kafka.common.errors.InvalidProducerEpochException: Epoch of producer 2007 at "
        "offset 3 in orders-a-0 is 0, which is smaller than the last seen epoch 1"
    )
    assert old_epoch_in(line, WHERE) == 2007
    assert old_epoch_in(line, TopicPartition("orders-a", 1)) is None
    assert rejection_in(line, BROKER, WHERE) is None
