"""Tables of `kafka-transactions` and `kafka-consumer-groups`: headings, and rows of as many cells.

A table is known by its headings alone: those that it must have, and no other than those that Kafka's releases print.
A heading or a row that was wrapped is put together again: as many parts as give the right number of cells.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from collectors.tool_output.pasting import number
from rules.facts.tool_output import (
    GroupMemberRow,
    GroupOffsetRow,
    GroupStateRow,
    HangingRow,
    ProducerRow,
    Table,
    ToolFact,
    TransactionRow,
)

Cells = Mapping[str, str]
TOPIC_PARTITIONS: Final = (
    "TopicPartitions"  # the last one: it is empty where no transaction is open
)
STRATEGY: Final = "ASSIGNMENT-STRATEGY"  # empty before Kafka 4.0 where there is none
COORDINATOR: Final = "COORDINATOR"
PARTITION_COUNT: Final = "#PARTITIONS"
STATES: Final = frozenset({
    "Empty", "Ongoing", "PrepareCommit", "PrepareAbort", "CompleteCommit", "CompleteAbort", "Dead", "PrepareEpochFence",
    "Unknown",
})  # fmt: skip
OPEN: Final = ("Ongoing", "PrepareCommit", "PrepareAbort")
_PARTITIONS: Final = re.compile(r"[\w.-]+-\d+(?:,[\w.-]+-\d+)*")
_SENTENCE_END: Final = re.compile(r"[A-Za-z]{2}[.:!?;]$")
_PART: Final = re.compile(r"[\w./:,@#()\[\]{}\s-]+")
_COORDINATOR_HEAD: Final = re.compile(r"COORDINATOR \(ID\)")
_COORDINATOR_CELL: Final = re.compile(r"(?<=[\w\]]):(\d{1,5})\s{1,4}\((\d{1,9})\)")


@dataclass(frozen=True, slots=True)
class Form:
    """The headings of a table."""

    table: Table
    required: tuple[str, ...]
    others: frozenset[str]
    row: Callable[[Cells, int], ToolFact | None]


def _form(table: Table, required: str, others: str, row: Callable[[Cells, int], ToolFact | None]) -> Form:  # fmt: skip
    return Form(table, tuple(required.split()), frozenset(others.split()), row)


def form_of(heading: str) -> Form | None:
    """Return the form of the table that has these headings; None: no tool's."""
    names = names_of(heading)
    for form in FORMS:
        is_whole = all(name in names for name in form.required)
        if is_whole and names[0] == form.required[0] and form.others.union(form.required) >= set(names):  # fmt: skip
            return form
    return None


def may_begin(text: str) -> bool:
    """Whether a line may be the first part of headings."""
    return text.startswith(FIRST)


def may_go_on(text: str) -> bool:
    """Whether the first headings of a table are there, and the rest may follow."""
    names = names_of(text)
    return any(
        form.required[0] == names[0] and form.others.union(form.required).issuperset(names[:-1])
        for form in FORMS
    )


def are_more_headings(form: Form, names: Sequence[str], text: str) -> bool:
    """Whether a line below headings has only more of them, which not every release prints."""
    more = names_of(text)
    return bool(more) and form.others.issuperset(more) and not set(names) & set(more)


def may_be_part(text: str) -> bool:
    """Whether a line may be a part of a row that was wrapped: it is no sentence."""
    return _SENTENCE_END.search(text) is None and _PART.fullmatch(text) is not None


def names_of(heading: str) -> list[str]:
    """Return the headings."""
    return _COORDINATOR_HEAD.sub(COORDINATOR, heading).split()


def cells_of(names: Sequence[str], text: str) -> Cells | None:
    """Return the cells of a row by their headings; None: it has another number of them."""
    cells = _split(names, text)
    if TOPIC_PARTITIONS in names and len(cells) == len(names) - 1:
        cells.append("")
    if STRATEGY in names and len(cells) == len(names) - 1:
        cells.insert(names.index(STRATEGY), "-")
    if PARTITION_COUNT in names and len(cells) > len(names):
        cells = _without_assignment(names, cells)
    if len(cells) != len(names):
        return None
    return dict(zip(names, cells, strict=True))


def _without_assignment(names: Sequence[str], cells: list[str]) -> list[str]:
    """Return the cells of a member without its assignments, which have spaces where they are of several topics."""
    count = names.index(PARTITION_COUNT) + 1
    return cells[:count] + ["-"] * (len(names) - count)


def is_too_short(names: Sequence[str], text: str) -> bool:
    """Whether cells of a row are missing at its end."""
    return len(_split(names, text)) < len(names)


def _split(names: Sequence[str], text: str) -> list[str]:
    """Return the cells; a coordinator's address and number are one."""
    if COORDINATOR in names:
        text = _COORDINATOR_CELL.sub(r":\1(\2)", text)
    return text.split()


def is_whole(cells: Cells) -> bool:
    """Whether a row has its last cell, which may have been wrapped: the partitions of an open transaction."""
    if TOPIC_PARTITIONS not in cells:
        return True
    names = cells[TOPIC_PARTITIONS]
    return _PARTITIONS.fullmatch(names) is not None or (
        not names and cells["TransactionState"] not in OPEN
    )


def _listed(cells: Cells, line: int) -> TransactionRow | None:
    coordinator, producer_id = number(cells["Coordinator"]), number(cells["ProducerId"])
    if coordinator is None or producer_id is None or cells["TransactionState"] not in STATES:
        return None
    return TransactionRow(
        line=line,
        transactional_id=cells["TransactionalId"],
        coordinator=coordinator,
        producer_id=producer_id,
        state=cells["TransactionState"],
    )


def _described(cells: Cells, line: int) -> TransactionRow | None:
    coordinator, producer_id = number(cells["CoordinatorId"]), number(cells["ProducerId"])
    if coordinator is None or producer_id is None or cells["TransactionState"] not in STATES:
        return None
    return TransactionRow(
        line=line,
        transactional_id=cells["TransactionalId"],
        coordinator=coordinator,
        producer_id=producer_id,
        state=cells["TransactionState"],
        is_described=True,
        producer_epoch=number(cells["ProducerEpoch"]),
        timeout_ms=number(cells["TransactionTimeoutMs"]),
        started_ms=number(cells["CurrentTransactionStartTimeMs"]),
        duration_ms=number(cells["TransactionDurationMs"]),
        partitions=tuple(part for part in cells[TOPIC_PARTITIONS].split(",") if part),
    )


def _producer(cells: Cells, line: int) -> ProducerRow | None:
    producer_id, epoch = number(cells["ProducerId"]), number(cells["ProducerEpoch"])
    if producer_id is None or epoch is None:
        return None
    return ProducerRow(
        line=line,
        producer_id=producer_id,
        producer_epoch=epoch,
        coordinator_epoch=number(cells["LatestCoordinatorEpoch"]),
        last_sequence=number(cells["LastSequence"]),
        last_timestamp_ms=number(cells["LastTimestamp"]),
        transaction_start_offset=number(cells["CurrentTransactionStartOffset"]),
    )


def _hanging(cells: Cells, line: int) -> HangingRow | None:
    partition, producer_id, epoch = (number(cells[name]) for name in ("Partition", "ProducerId", "ProducerEpoch"))  # fmt: skip
    if partition is None or producer_id is None or epoch is None:
        return None
    return HangingRow(
        line=line,
        topic=cells["Topic"],
        partition=partition,
        producer_id=producer_id,
        producer_epoch=epoch,
        coordinator_epoch=number(cells["CoordinatorEpoch"]),
        start_offset=number(cells["StartOffset"]),
        last_timestamp_ms=number(cells["LastTimestamp"]),
        duration_minutes=number(cells["Duration(min)"]),
    )


def _group_offset(cells: Cells, line: int) -> GroupOffsetRow | None:
    numbers = ("PARTITION", "CURRENT-OFFSET", "LOG-END-OFFSET", "LAG")
    if any(cells[name] != "-" and not cells[name].lstrip("-").isdecimal() for name in numbers):
        return None
    committed, end, lag = (_signed(cells[name]) for name in numbers[1:])
    if None not in (committed, end, lag) and (end or 0) - (committed or 0) != lag:
        return None  # parts of numbers, wrongly put together
    return GroupOffsetRow(
        line=line,
        group=cells["GROUP"],
        topic=_name(cells["TOPIC"]),
        partition=number(cells["PARTITION"]),
        committed_offset=number(cells["CURRENT-OFFSET"]),
        log_end_offset=number(cells["LOG-END-OFFSET"]),
        lag=lag,
        consumer_id=_name(cells["CONSUMER-ID"]),
        host=_name(cells["HOST"]),
        client_id=_name(cells["CLIENT-ID"]),
    )


def _group_state(cells: Cells, line: int) -> GroupStateRow | None:
    members = number(cells["#MEMBERS"])
    if members is None:
        return None
    return GroupStateRow(line=line, group=cells["GROUP"], state=cells["STATE"], members=members)


def _group_member(cells: Cells, line: int) -> GroupMemberRow | None:
    partitions = number(cells[PARTITION_COUNT])
    if partitions is None:
        return None
    return GroupMemberRow(
        line=line,
        group=cells["GROUP"],
        consumer_id=cells["CONSUMER-ID"],
        client_id=_name(cells["CLIENT-ID"]),
        partitions=partitions,
    )


def _name(cell: str) -> str | None:
    return None if cell == "-" else cell


def _signed(cell: str) -> int | None:
    """Return a lag, which is negative where the commit lies beyond the end."""
    return None if cell == "-" else int(cell)


FORMS: Final = (
    _form(Table.DESCRIBED_TRANSACTIONS, "CoordinatorId TransactionalId ProducerId ProducerEpoch TransactionState "
          "TransactionTimeoutMs CurrentTransactionStartTimeMs TransactionDurationMs TopicPartitions", "", _described),
    _form(Table.LISTED_TRANSACTIONS, "TransactionalId Coordinator ProducerId TransactionState", "", _listed),
    _form(Table.PRODUCERS, "ProducerId ProducerEpoch LatestCoordinatorEpoch LastSequence LastTimestamp "
          "CurrentTransactionStartOffset", "", _producer),
    _form(Table.HANGING, "Topic Partition ProducerId ProducerEpoch CoordinatorEpoch StartOffset LastTimestamp "
          "Duration(min)", "", _hanging),
    _form(Table.GROUP_OFFSETS, "GROUP TOPIC PARTITION CURRENT-OFFSET LOG-END-OFFSET LAG CONSUMER-ID HOST CLIENT-ID",
          "LEADER-EPOCH GROUP-INSTANCE-ID", _group_offset),
    _form(Table.GROUP_STATES, "GROUP COORDINATOR ASSIGNMENT-STRATEGY STATE #MEMBERS",
          "GROUP-EPOCH TARGET-ASSIGNMENT-EPOCH", _group_state),
    _form(Table.GROUP_MEMBERS, "GROUP CONSUMER-ID HOST CLIENT-ID #PARTITIONS",
          "GROUP-INSTANCE-ID ASSIGNMENT CURRENT-EPOCH CURRENT-ASSIGNMENT TARGET-EPOCH TARGET-ASSIGNMENT UPGRADED",
          _group_member),
)  # fmt: skip
FIRST: Final = tuple(sorted({form.required[0] for form in FORMS}))
