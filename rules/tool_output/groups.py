"""Judges `kafka-consumer-groups --describe`: how far a group is, and who reads for it.

The tool reads the committed offsets first and the ends afterwards, so that a commit above the end is no race. Its end is
the high watermark: control records, open and aborted transactions count, although no read_committed consumer gets them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rules.facts.application_log import Names
from rules.facts.identity import TopicPartition
from rules.facts.tool_output import (
    GroupMemberRow,
    GroupOffsetRow,
    GroupSentence,
    GroupStateRow,
    Tool,
)
from rules.tool_output.findings import Findings, ToolFinding, counted
from rules.tool_output.reasons import Reason

EMPTY = "Empty"
DEAD = "Dead"
REBALANCING = frozenset({"PreparingRebalance", "CompletingRebalance", "Assigning", "Reconciling"})


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupOutput:
    """The rows of one output of the tool; a group may have several tables."""

    offsets: Sequence[GroupOffsetRow] = ()
    states: Sequence[GroupStateRow] = ()
    members: Sequence[GroupMemberRow] = ()
    sentences: Sequence[GroupSentence] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Context:
    states: Mapping[str, str]  # by group
    with_members: frozenset[str]
    open_from: Mapping[TopicPartition, frozenset[int]]


def judge_groups(
    output: GroupOutput, open_from: Mapping[TopicPartition, frozenset[int]]
) -> list[ToolFinding]:
    """Return what an output means; `open_from`: first offsets of transactions that the text shows as open."""
    findings = Findings(Tool.CONSUMER_GROUPS)
    context = _Context(
        states=_states(output),
        with_members=frozenset(
            {row.group for row in output.offsets if row.consumer_id is not None}
            | {row.group for row in output.members}
        ),
        open_from=open_from,
    )
    for row in output.offsets:
        _judge_offset(row, context, findings)
    for state in output.states:
        _judge_state(state, findings)
    for sentence in output.sentences:
        _judge_sentence(sentence, output, findings)
    _add_members(output.members, findings)
    return findings.all()


def _states(output: GroupOutput) -> dict[str, str]:
    said = {each.group: each.state for each in output.sentences}
    return said | {each.group: each.state for each in output.states}


def _judge_offset(row: GroupOffsetRow, context: _Context, findings: Findings) -> None:
    names = Names(group=row.group, topic=row.topic, partition=row.partition)
    if row.topic is None or row.partition is None:
        words = f"{row.group}: {row.consumer_id or 'a member'} reads no partition"
        findings.add(Reason.MEMBERS, row.line, words, names)
        return
    held_at = context.open_from.get(TopicPartition(row.topic, row.partition), frozenset())
    reason = _by_offsets(row, held_at) or _by_readers(row, context)
    findings.add(reason, row.line, _words(row), names)


def _by_offsets(row: GroupOffsetRow, held_at: frozenset[int]) -> Reason | None:
    """Return what the offsets say; None: the group is behind, and who reads decides."""
    committed, end = row.committed_offset, row.log_end_offset
    if committed is None:
        return Reason.NO_COMMIT
    if end is None:
        return Reason.END_NOT_SHOWN
    if committed >= end:
        return Reason.COMMITTED_BEYOND_END if committed > end else Reason.READ_TO_THE_END
    if committed in held_at:
        return Reason.HELD_BY_TRANSACTION
    return Reason.LAG_OF_A_MARKER if end - committed == 1 else None


def _by_readers(row: GroupOffsetRow, context: _Context) -> Reason:
    if row.consumer_id is not None or context.states.get(row.group) in REBALANCING:
        return Reason.LAG
    has_members = row.group in context.with_members
    return Reason.PARTITION_WITHOUT_MEMBER if has_members else Reason.GROUP_WITHOUT_MEMBERS


def _words(row: GroupOffsetRow) -> str:
    committed, end = row.committed_offset, row.log_end_offset
    place = f"{row.group}: {row.topic}-{row.partition}"
    if committed is None or end is None:
        return f"{place}, committed {_or_none(committed)}, end {_or_none(end)}"
    distance = f"{committed - end} above it" if committed > end else f"lag {end - committed}"
    reader = f", read by {row.client_id}" if row.client_id else ""
    return f"{place}, committed {committed}, end {end}, {distance}{reader}"


def _or_none(value: int | None) -> str:
    return "none" if value is None else str(value)


def _judge_state(row: GroupStateRow, findings: Findings) -> None:
    words = f"{row.group}: state {row.state}, {counted(row.members, 'member')}"
    findings.add(_reason_of_state(row.state), row.line, words, Names(group=row.group))


def _reason_of_state(state: str) -> Reason:
    if state in REBALANCING:
        return Reason.GROUP_REBALANCING
    if state == DEAD:
        return Reason.GROUP_DOES_NOT_EXIST
    return Reason.GROUP_EMPTY if state == EMPTY else Reason.MEMBERS


def _judge_sentence(sentence: GroupSentence, output: GroupOutput, findings: Findings) -> None:
    """Judge what the tool says in words, unless rows of the same group say more."""
    groups = {row.group for row in output.offsets} | {row.group for row in output.states}
    if sentence.group in groups:
        return
    words = f"{sentence.group}: state {sentence.state}"
    names = Names(group=sentence.group)
    findings.add(_reason_of_state(sentence.state), sentence.line, words, names)


def _add_members(members: Sequence[GroupMemberRow], findings: Findings) -> None:
    for row in members:
        words = f"{row.group}: {row.consumer_id}, {counted(row.partitions, 'partition')}"
        findings.add(Reason.MEMBERS, row.line, words, Names(group=row.group))
