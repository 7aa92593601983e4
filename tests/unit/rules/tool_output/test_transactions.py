"""What `kafka-transactions` shows: a text never proves that a transaction hangs."""

from __future__ import annotations

import pytest

from rules.facts.identity import TopicPartition
from rules.facts.tool_output import HangingRow, ProducerRow, TransactionRow
from rules.tool_output.meanings import MEANINGS, TRANSACTIONS
from rules.tool_output.reasons import Reason
from rules.tool_output.transactions import (
    HangingSearch,
    ProducersOf,
    TransactionOutput,
    judge_transactions,
)
from rules.verdict import Verdict
from service.views.explained_tools import tool_row

PLACE = TopicPartition("orders", 3)


def listed(state: str) -> TransactionRow:
    return TransactionRow(line=1, transactional_id="pay-1", coordinator=1, producer_id=9, state=state)  # fmt: skip


def described(state: str, *, seconds: int = 5, partitions: tuple[str, ...] = ("orders-3",)) -> TransactionRow:  # fmt: skip
    return TransactionRow(
        line=2, transactional_id="pay-1", coordinator=1, producer_id=9, state=state, is_described=True, producer_epoch=0,
        timeout_ms=60_000, started_ms=1, duration_ms=seconds * 1000, partitions=partitions,
    )  # fmt: skip


def producers(start: int | None = 5, place: TopicPartition | None = PLACE) -> ProducersOf:
    row = ProducerRow(line=3, producer_id=9, producer_epoch=0, coordinator_epoch=None, last_sequence=2, last_timestamp_ms=0, transaction_start_offset=start)  # fmt: skip
    return ProducersOf(line=3, place=place, rows=[row])


HANGING = HangingSearch(
    line=4, minutes=None,
    rows=[HangingRow(line=5, topic="orders", partition=3, producer_id=9, producer_epoch=0, coordinator_epoch=None, start_offset=5, last_timestamp_ms=0, duration_minutes=20)],
)  # fmt: skip
NONE_HANG = HangingSearch(line=4, rows=[], minutes=None)


def output(*transactions: TransactionRow, producers: ProducersOf | None = None, search: HangingSearch | None = None) -> TransactionOutput:  # fmt: skip
    return TransactionOutput(
        transactions=transactions,
        producers=[producers] if producers else [],
        searches=[search] if search else [],
    )


CASES = {
    "listed as open": (output(listed("Ongoing")), {Reason.TRANSACTION_OPEN}),
    "listed as ended": (output(listed("CompleteCommit")), {Reason.NO_TRANSACTION_OPEN}),
    "listed as decided": (output(listed("PrepareCommit")), {Reason.MARKERS_PENDING}),
    "described within its timeout": (output(described("Ongoing")), {Reason.OPEN_WITHIN_TIMEOUT}),
    "listed and described": (output(listed("Ongoing"), described("Ongoing")), {Reason.OPEN_WITHIN_TIMEOUT}),
    "past its timeout, and the coordinator may still be about to abort it": (
        output(described("Ongoing", seconds=65)), {Reason.OPEN_WITHIN_TIMEOUT},
    ),
    "past its timeout": (output(described("Ongoing", seconds=75)), {Reason.OPEN_PAST_TIMEOUT}),
    "nothing open in the partition": (output(producers=producers(None)), {Reason.NOTHING_OPEN_IN_PARTITION}),
    "open in the partition": (output(producers=producers()), {Reason.OPEN_IN_PARTITION}),
    "open in both": (output(described("Ongoing"), producers=producers()), {Reason.OPEN_WITHIN_TIMEOUT, Reason.COORDINATOR_KNOWS_IT}),
    "open in the partition, and the coordinator lacks the partition": (
        output(described("Ongoing", partitions=("orders-1",)), producers=producers()),
        {Reason.OPEN_WITHIN_TIMEOUT, Reason.UNKNOWN_TO_COORDINATOR},
    ),
    "open in the partition, and ended at the coordinator": (
        output(listed("Empty"), producers=producers()), {Reason.NO_TRANSACTION_OPEN, Reason.UNKNOWN_TO_COORDINATOR},
    ),
    "open in a partition that is not named": (
        output(described("Ongoing"), producers=producers(place=None)), {Reason.OPEN_WITHIN_TIMEOUT, Reason.OPEN_IN_PARTITION},
    ),
    "reported as hanging": (output(search=HANGING), {Reason.REPORTED_HANGING}),
    "reported as hanging, which the coordinator denies": (
        output(described("Ongoing"), search=HANGING), {Reason.OPEN_WITHIN_TIMEOUT, Reason.COORDINATOR_KNOWS_IT},
    ),
    "none reported": (output(search=NONE_HANG), {Reason.NONE_REPORTED_HANGING}),
}  # fmt: skip


@pytest.mark.parametrize(("answers", "reasons"), CASES.values(), ids=CASES)
def test_reasons(answers: TransactionOutput, reasons: set[Reason]) -> None:
    assert {each.reason for each in judge_transactions(answers)} == reasons


@pytest.mark.parametrize("reason", TRANSACTIONS)
def test_no_text_gives_the_command_that_aborts(reason: Reason) -> None:
    """Aborting a healthy transaction loses its records: the command comes with the proof, from the brokers."""
    meaning = MEANINGS[reason]
    assert not any("abort" in command for kind in meaning.next for command in (kind.value,))
    if reason in (Reason.REPORTED_HANGING, Reason.UNKNOWN_TO_COORDINATOR):
        assert meaning.verdict is Verdict.UNKNOWN


def test_the_next_command_names_the_id() -> None:
    (finding,) = judge_transactions(output(listed("Ongoing")))
    assert tool_row(finding, "-")["next_commands"] == ["tidemark tx show pay-1 --bootstrap-servers HOST:PORT"]  # fmt: skip
