"""What `kafka-topics --describe` shows of leaders and replicas, and what it does not."""

from __future__ import annotations

import pytest

from rules.facts.tool_output import CommandLine, PartitionRow, Tool, TopicRow
from rules.tool_output.reasons import Reason
from rules.tool_output.topics import UNDER_MIN, judge_topics
from rules.verdict import Verdict


def topic(configs: str = "", *, partitions: int = 1, factor: int = 3) -> TopicRow:
    settings = tuple((name, value) for name, _, value in (each.partition("=") for each in configs.split(",")) if name)  # fmt: skip
    return TopicRow(line=1, topic="orders", partitions=partitions, replication_factor=factor, configs=settings)  # fmt: skip


def partition(
    isr: tuple[int, ...], *, leader: int | None = 1, replicas: tuple[int, ...] = (1, 2, 3)
) -> PartitionRow:
    return PartitionRow(line=2, topic="orders", partition=0, leader=leader, replicas=replicas, isr=isr, elr=None, last_known_elr=None)  # fmt: skip


UNDER_MIN_COMMAND = CommandLine(line=1, tool=Tool.TOPICS, words=("--describe", UNDER_MIN))

CASES = {
    "all in sync": ([topic()], partition((1, 2, 3)), None, {Reason.FULLY_REPLICATED}),
    "one behind, and enough left": ([topic("min.insync.replicas=2")], partition((1, 2)), None, {Reason.UNDER_REPLICATED}),
    "too few for acks=all": ([topic("min.insync.replicas=2")], partition((1,)), None, {Reason.UNDER_MIN_ISR}),
    "the last one in sync, and min.insync.replicas not shown": ([], partition((1,)), None, {Reason.SOLE_IN_SYNC}),
    "the last one in sync, which min.insync.replicas allows": ([topic("min.insync.replicas=1")], partition((1,)), None, {Reason.SOLE_IN_SYNC}),
    "the command says that they are under min ISR": ([], partition((1, 2)), UNDER_MIN_COMMAND, {Reason.UNDER_MIN_ISR}),
    "no leader": ([topic()], partition((2,), leader=None), None, {Reason.PARTITION_OFFLINE}),
    "one replica": ([topic(factor=1)], partition((1,), replicas=(1,)), None, {Reason.REPLICATION_FACTOR_ONE}),
    "one replica of two that are needed": (
        [topic("min.insync.replicas=2", factor=1)], partition((1,), replicas=(1,)), None,
        {Reason.MIN_ISR_ABOVE_REPLICAS, Reason.REPLICATION_FACTOR_ONE},
    ),
    "two replicas of three that are needed, and one is behind": (
        [topic("min.insync.replicas=3", factor=2)], partition((1,), replicas=(1, 2)), None, {Reason.UNDER_MIN_ISR},
    ),
    "a topic that may elect uncleanly": (
        [topic("unclean.leader.election.enable=true")], partition((1, 2, 3)), None,
        {Reason.UNCLEAN_ELECTION_ENABLED, Reason.FULLY_REPLICATED},
    ),
    "a part of the output": ([topic(partitions=2)], partition((1, 2, 3)), None, {Reason.FULLY_REPLICATED, Reason.PARTITIONS_NOT_SHOWN}),
}  # fmt: skip


@pytest.mark.parametrize(("topics", "row", "command", "reasons"), CASES.values(), ids=CASES)
def test_reasons(
    topics: list[TopicRow], row: PartitionRow, command: CommandLine | None, reasons: set[Reason]
) -> None:
    findings = judge_topics(topics, [row], command)
    assert {each.reason for each in findings} == reasons


def test_what_was_left_out_of_the_text_is_unknown() -> None:
    findings = judge_topics([topic(partitions=2)], [partition((1, 2, 3))], None)
    (missing,) = (each for each in findings if each.reason is Reason.PARTITIONS_NOT_SHOWN)
    assert missing.meaning.verdict is Verdict.UNKNOWN


def test_a_partition_is_shown_with_the_brokers_that_are_missing() -> None:
    (finding,) = judge_topics([], [partition((1, 2))], None)
    assert finding.items[0].words == "orders-0: leader 1, Isr 1,2 of 1,2,3, not in sync: 3"
    assert (finding.names.topic, finding.names.partition) == ("orders", 0)
