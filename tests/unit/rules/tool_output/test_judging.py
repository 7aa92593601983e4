"""Outputs of different tools in one text, and commands and headings below which nothing comes."""

from __future__ import annotations

import pytest

from collectors.tool_output.reader import ToolReader
from rules.tool_output.judging import judge_tools
from rules.tool_output.meanings import MEANINGS
from rules.tool_output.reasons import Reason

PROMPT = "[ops@broker-1 ~]$ kafka-topics.sh --describe --unavailable-partitions"
PARTITION = "\tTopic: orders\tPartition: 3\tLeader: 1\tReplicas: 1,2\tIsr: 1,2"
LISTED = "TransactionalId\tCoordinator\tProducerId\tTransactionState"
PRODUCERS = "$ kafka-transactions.sh describe-producers --topic orders --partition 3\nProducerId\tProducerEpoch\tLatestCoordinatorEpoch\tLastSequence\tLastTimestamp\tCurrentTransactionStartOffset"
GROUP = "GROUP TOPIC PARTITION CURRENT-OFFSET LOG-END-OFFSET LAG CONSUMER-ID HOST CLIENT-ID"
CASES = {
    "a command without output": (PROMPT, {Reason.NO_ROWS}),
    "a command with output": (f"{PROMPT}\n{PARTITION}", {Reason.FULLY_REPLICATED}),
    "a command in a sentence": ("Run kafka-topics.sh --describe", set()),
    "headings without rows": (LISTED, {Reason.NO_ROWS}),
    "no producer has written to a partition": (PRODUCERS, {Reason.NOTHING_OPEN_IN_PARTITION}),
    "a group below a transaction": (f"{PRODUCERS}\n9 0 -1 2 1795859350361 5\n\n{GROUP}\ng orders 3 5 8 3 - - -", {Reason.OPEN_IN_PARTITION, Reason.HELD_BY_TRANSACTION}),
    "the last of two outputs of a group counts": (f"{GROUP}\ng orders 3 5 8 3 c /h c\n\n{GROUP}\ng orders 3 8 8 0 c /h c", {Reason.READ_TO_THE_END}),
}  # fmt: skip


@pytest.mark.parametrize(("text", "reasons"), CASES.values(), ids=CASES)
def test_reasons(text: str, reasons: set[Reason]) -> None:
    reader = ToolReader("text")
    for number, line in enumerate(text.splitlines(), start=1):
        reader.feed(line.encode(), number)
    reader.close()
    assert {each.reason for each in judge_tools(reader.facts)} == reasons


def test_every_reason_has_a_meaning() -> None:
    assert set(MEANINGS) == set(Reason)
