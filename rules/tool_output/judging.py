"""Judges all that a text has of Kafka's tools: rows of one output together, outputs of different tools with each other."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from rules.facts.identity import TopicPartition
from rules.facts.tool_output import (
    CommandLine,
    DumpedAbort,
    DumpedBatch,
    DumpedCommit,
    DumpedProducer,
    DumpedRecord,
    GroupMemberRow,
    GroupOffsetRow,
    GroupSentence,
    GroupStateRow,
    HangingRow,
    PartitionRow,
    ProducerRow,
    Table,
    TableHead,
    Tool,
    ToolFact,
    TopicRow,
    TransactionRow,
)
from rules.tool_output.findings import Findings, ToolFinding, in_order
from rules.tool_output.groups import GroupOutput, judge_groups
from rules.tool_output.reasons import Reason
from rules.tool_output.topics import judge_topics
from rules.tool_output.transactions import (
    HangingSearch,
    ProducersOf,
    TransactionOutput,
    judge_transactions,
    open_offsets,
)


@dataclass(slots=True)
class _Outputs:
    """The rows of a text by the output that they are of."""

    topics: list[TopicRow] = field(default_factory=list)
    partitions: list[PartitionRow] = field(default_factory=list)
    topics_command: CommandLine | None = None
    offsets: list[GroupOffsetRow] = field(default_factory=list)
    states: list[GroupStateRow] = field(default_factory=list)
    members: list[GroupMemberRow] = field(default_factory=list)
    sentences: list[GroupSentence] = field(default_factory=list)
    transactions: list[TransactionRow] = field(default_factory=list)
    producers: list[ProducersOf] = field(default_factory=list)
    searches: list[HangingSearch] = field(default_factory=list)
    empty: list[TableHead] = field(default_factory=list)  # tables without a row, as far as is known


def judge_tools(facts: Sequence[ToolFact]) -> list[ToolFinding]:
    """Return what the outputs in a text mean, breaches first."""
    outputs = _sort(facts)
    open_from = open_offsets(outputs.producers, outputs.searches)
    groups = GroupOutput(
        offsets=_latest(outputs.offsets),
        states=outputs.states,
        members=outputs.members,
        sentences=outputs.sentences,
    )
    transactions = TransactionOutput(
        transactions=outputs.transactions, producers=outputs.producers, searches=outputs.searches
    )
    return in_order(
        [
            *judge_topics(outputs.topics, outputs.partitions, outputs.topics_command),
            *judge_groups(groups, open_from),
            *judge_transactions(transactions),
            *_judge_empty(outputs.empty),
            *_judge_silent(facts),
            *_judge_dumps(facts),
        ]
    )


def _judge_dumps(facts: Sequence[ToolFact]) -> Sequence[ToolFinding]:
    if not any(isinstance(fact, DUMPED) for fact in facts):
        return ()
    from rules.tool_output.dumps import judge_dumps  # noqa: PLC0415 - with NumPy, and seldom needed

    return judge_dumps(facts)


DUMPED: Final = (DumpedBatch, DumpedRecord, DumpedProducer, DumpedAbort, DumpedCommit)


def _without_rows(facts: Sequence[ToolFact]) -> list[TableHead]:
    """Return the headings below which no row comes, but for those whose emptiness is an answer."""
    following = [*facts[1:], None]
    return [
        fact
        for fact, after in zip(facts, following, strict=True)
        if isinstance(fact, TableHead)
        and fact.table not in ANSWERS
        and (after is None or isinstance(after, TableHead | CommandLine | GroupSentence))
    ]


def _without_output(facts: Sequence[ToolFact]) -> Iterator[CommandLine]:
    """Yield the commands that were typed and below which nothing of a tool comes."""
    for fact, after in zip(facts, [*facts[1:], None], strict=True):
        is_typed = isinstance(fact, CommandLine) and fact.is_typed and QUERIES & {*fact.words}
        if (
            isinstance(fact, CommandLine)
            and is_typed
            and (after is None or isinstance(after, CommandLine))
        ):
            yield fact


def _judge_silent(facts: Sequence[ToolFact]) -> Iterator[ToolFinding]:
    for command in _without_output(facts):
        findings = Findings(command.tool)
        findings.add(Reason.NO_ROWS, command.line, f"{command.tool} {' '.join(command.words[:8])}")
        yield from findings.all()


def _judge_empty(heads: Sequence[TableHead]) -> Iterator[ToolFinding]:
    for tool in (Tool.TRANSACTIONS, Tool.CONSUMER_GROUPS):
        findings = Findings(tool)
        for head in heads:
            if (head.table in OF_TRANSACTIONS) is (tool is Tool.TRANSACTIONS):
                findings.add(Reason.NO_ROWS, head.line, f"{tool} {head.table}")
        yield from findings.all()


QUERIES: Final = frozenset({"--describe", "list", "find-hanging", "describe-producers"})
ANSWERS: Final = frozenset({Table.PRODUCERS, Table.HANGING})
OF_TRANSACTIONS: Final = frozenset({Table.LISTED_TRANSACTIONS, Table.DESCRIBED_TRANSACTIONS})


def _latest(rows: Iterable[GroupOffsetRow]) -> list[GroupOffsetRow]:
    """Return the last row of each partition of a group: the text may have several outputs."""
    latest = {(row.group, row.topic, row.partition, row.consumer_id if row.topic is None else None): row for row in rows}  # fmt: skip
    return list(latest.values())


def _sort(facts: Sequence[ToolFact]) -> _Outputs:
    outputs = _Outputs(empty=_without_rows(facts))
    command: CommandLine | None = None
    for fact in facts:
        if isinstance(fact, CommandLine):
            command = fact
        elif isinstance(fact, TableHead):
            _begin_table(fact, _of_tool(command, Tool.TRANSACTIONS), outputs)
        else:
            _add(fact, _of_tool(command, Tool.TOPICS), outputs)
    return outputs


def _of_tool(command: CommandLine | None, tool: Tool) -> CommandLine | None:
    """Return the command if it is one of a tool: what it names holds for that tool's output alone."""
    return command if command is not None and command.tool is tool else None


def _begin_table(head: TableHead, command: CommandLine | None, outputs: _Outputs) -> None:
    if head.table is Table.PRODUCERS:
        place = None
        if command is not None and command.topic is not None and command.partition is not None:
            place = TopicPartition(command.topic, command.partition)
        outputs.producers.append(ProducersOf(line=head.line, place=place, rows=[]))
    elif head.table is Table.HANGING:
        minutes = None if command is None else command.max_timeout_minutes
        outputs.searches.append(HangingSearch(line=head.line, rows=[], minutes=minutes))


def _add(fact: ToolFact, command: CommandLine | None, outputs: _Outputs) -> None:
    match fact:
        case TopicRow():
            outputs.topics.append(fact)
        case PartitionRow():
            outputs.partitions.append(fact)
            outputs.topics_command = command or outputs.topics_command
        case GroupOffsetRow():
            outputs.offsets.append(fact)
        case GroupStateRow():
            outputs.states.append(fact)
        case GroupMemberRow():
            outputs.members.append(fact)
        case GroupSentence():
            outputs.sentences.append(fact)
        case TransactionRow():
            outputs.transactions.append(fact)
        case ProducerRow() if outputs.producers:
            answer = outputs.producers[-1]
            outputs.producers[-1] = replace(answer, rows=[*answer.rows, fact])
        case HangingRow() if outputs.searches:
            search = outputs.searches[-1]
            outputs.searches[-1] = replace(search, rows=[*search.rows, fact])
        case _:
            pass
