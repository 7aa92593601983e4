"""What `kafka-consumer-groups --describe` shows of a group: no commit is not zero, and its lag is no proof."""

from __future__ import annotations

import pytest

from rules.exceptions.meaning import Records
from rules.facts.identity import TopicPartition
from rules.facts.tool_output import GroupMemberRow, GroupOffsetRow, GroupSentence, GroupStateRow
from rules.tool_output.groups import GroupOutput, judge_groups
from rules.tool_output.reasons import Reason
from rules.verdict import Verdict


def row(
    committed: int | None, end: int | None, *, partition: int = 0, member: str | None = "c-1"
) -> GroupOffsetRow:
    lag = None if committed is None or end is None else end - committed
    return GroupOffsetRow(
        line=2, group="g", topic="orders", partition=partition, committed_offset=committed, log_end_offset=end, lag=lag,
        consumer_id=member, host=member and "/10.0.0.1", client_id=member,
    )  # fmt: skip


def state(name: str) -> GroupStateRow:
    return GroupStateRow(line=2, group="g", state=name, members=0)


def output(*rows: GroupOffsetRow) -> GroupOutput:
    return GroupOutput(offsets=rows)


CASES = {
    "all is read": (output(row(7, 7)), {Reason.READ_TO_THE_END}),
    "no commit": (output(row(None, 7)), {Reason.NO_COMMIT}),
    "no commit, and nobody reads": (output(row(None, 7, member=None)), {Reason.NO_COMMIT}),
    "above the end": (output(row(9, 7)), {Reason.COMMITTED_BEYOND_END}),
    "above the end, and nobody reads": (output(row(9, 7, member=None)), {Reason.COMMITTED_BEYOND_END}),
    "one offset, as the last marker": (output(row(6, 7)), {Reason.LAG_OF_A_MARKER}),
    "one offset, and nobody reads": (output(row(6, 7, member=None)), {Reason.LAG_OF_A_MARKER}),
    "behind": (output(row(3, 7)), {Reason.LAG}),
    "behind, and nobody reads": (output(row(3, 7, member=None)), {Reason.GROUP_WITHOUT_MEMBERS}),
    "a partition that no member reads": (
        output(row(7, 7), row(3, 7, partition=1, member=None)), {Reason.READ_TO_THE_END, Reason.PARTITION_WITHOUT_MEMBER},
    ),
    "where a transaction is open": (output(row(5, 8)), {Reason.HELD_BY_TRANSACTION}),
    "no end": (output(row(3, None)), {Reason.END_NOT_SHOWN}),
    "no members": (GroupOutput(states=[state("Empty")]), {Reason.GROUP_EMPTY}),
    "rebalancing": (GroupOutput(states=[state("PreparingRebalance")]), {Reason.GROUP_REBALANCING}),
    "rebalancing, so that nobody reads": (
        GroupOutput(offsets=[row(3, 7, member=None)], states=[state("PreparingRebalance")]), {Reason.LAG, Reason.GROUP_REBALANCING},
    ),
    "dead": (GroupOutput(states=[state("Dead")]), {Reason.GROUP_DOES_NOT_EXIST}),
    "stable": (GroupOutput(states=[state("Stable")]), {Reason.MEMBERS}),
    "members": (
        GroupOutput(members=[GroupMemberRow(line=2, group="g", consumer_id="c-1", client_id="c", partitions=3)]), {Reason.MEMBERS},
    ),
    "no members, in words": (GroupOutput(sentences=[GroupSentence(line=1, group="g", state="Empty")]), {Reason.GROUP_EMPTY}),
    "no such group, in words": (GroupOutput(sentences=[GroupSentence(line=1, group="g", state="Dead")]), {Reason.GROUP_DOES_NOT_EXIST}),
    "words above rows": (
        GroupOutput(offsets=[row(3, 7, member=None)], sentences=[GroupSentence(line=1, group="g", state="Empty")]),
        {Reason.GROUP_WITHOUT_MEMBERS},
    ),
}  # fmt: skip
OPEN = {TopicPartition("orders", 0): frozenset({5})}


@pytest.mark.parametrize(("rows", "reasons"), CASES.values(), ids=CASES)
def test_reasons(rows: GroupOutput, reasons: set[Reason]) -> None:
    assert {each.reason for each in judge_groups(rows, OPEN)} == reasons


def test_a_commit_above_the_end_is_no_proof_of_loss() -> None:
    (finding,) = judge_groups(output(row(9, 7)), {})
    assert (finding.meaning.verdict, finding.meaning.records) == (Verdict.UNKNOWN, Records.LOST)
    assert finding.items[0].words == "g: orders-0, committed 9, end 7, 2 above it, read by c-1"
