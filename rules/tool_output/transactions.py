"""Judges `kafka-transactions`: what is open, and how far one text can say whether it hangs.

A transaction hangs when a partition has it open and no coordinator will end it. That takes both answers, twice, and the
proof that the coordinators may show the id (see `rules/transactions/`): a text never proves it.
Source: TransactionsCommand of Kafka 3.3 to 4.4.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from rules.facts.application_log import Names
from rules.facts.identity import TopicPartition
from rules.facts.tool_output import HangingRow, ProducerRow, Tool, TransactionRow
from rules.tool_output.findings import Findings, ToolFinding, counted
from rules.tool_output.reasons import Reason

ONGOING: Final = "Ongoing"
PREPARED: Final = frozenset({"PrepareCommit", "PrepareAbort", "PrepareEpochFence"})
CLEANUP_MS: Final = 10_000  # transaction.abort.timed.out.transaction.cleanup.interval.ms
DEFAULT_MINUTES: Final = 15  # of --max-transaction-timeout


@dataclass(frozen=True, slots=True, kw_only=True)
class ProducersOf:
    """The answer of `describe-producers` about one partition."""

    line: int
    place: TopicPartition | None  # None: the command is not in the text
    rows: Sequence[ProducerRow]


@dataclass(frozen=True, slots=True, kw_only=True)
class HangingSearch:
    """The answer of `find-hanging`."""

    line: int
    rows: Sequence[HangingRow]
    minutes: int | None  # of --max-transaction-timeout; None: not in the text


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionOutput:
    """All answers of the tool in one text."""

    transactions: Sequence[TransactionRow] = ()
    producers: Sequence[ProducersOf] = ()
    searches: Sequence[HangingSearch] = ()


def judge_transactions(output: TransactionOutput) -> list[ToolFinding]:
    """Return what the answers mean, each seen together with the others of the text."""
    findings = Findings(Tool.TRANSACTIONS)
    described = {row.transactional_id for row in output.transactions if row.is_described}
    for row in output.transactions:
        if row.transactional_id in described and not row.is_described:
            continue  # its description says more
        findings.add(_reason_of(row), row.line, _words_of(row), _names_of(row))
    in_order = sorted(output.transactions, key=lambda row: row.is_described)
    by_producer = {row.producer_id: row for row in in_order}
    for answer in output.producers:
        _judge_producers(answer, by_producer, findings)
    for search in output.searches:
        _judge_search(search, by_producer, findings)
    return findings.all()


def open_offsets(producers: Iterable[ProducersOf], searches: Iterable[HangingSearch]) -> dict[TopicPartition, frozenset[int]]:  # fmt: skip
    """Return the first offsets of the transactions that are open, by partition."""
    starts = [
        (answer.place, row.transaction_start_offset) for answer in producers for row in answer.rows
    ]
    starts += [
        (TopicPartition(row.topic, row.partition), row.start_offset)
        for search in searches
        for row in search.rows
    ]
    offsets: dict[TopicPartition, frozenset[int]] = {}
    for place, start in starts:
        if place is not None and start is not None:
            offsets[place] = offsets.get(place, frozenset()) | {start}
    return offsets


def _reason_of(row: TransactionRow) -> Reason:
    if row.state in PREPARED:
        return Reason.MARKERS_PENDING
    if row.state != ONGOING:
        return Reason.NO_TRANSACTION_OPEN
    if row.duration_ms is None or row.timeout_ms is None:
        return Reason.TRANSACTION_OPEN
    is_late = row.duration_ms > row.timeout_ms + CLEANUP_MS
    return Reason.OPEN_PAST_TIMEOUT if is_late else Reason.OPEN_WITHIN_TIMEOUT


def _words_of(row: TransactionRow) -> str:
    words = f"{row.transactional_id}: {row.state}, producer {row.producer_id}"
    if row.producer_epoch is not None:
        words += f" epoch {row.producer_epoch}"
    if row.state == ONGOING and row.duration_ms is not None and row.timeout_ms is not None:
        words += f", open for {_seconds(row.duration_ms)} of {_seconds(row.timeout_ms)}"
    if row.partitions:
        words += f", in {', '.join(row.partitions)}"
    return f"{words}, coordinator {row.coordinator}"


def _seconds(milliseconds: int) -> str:
    return f"{milliseconds / 1000:,.0f} s"


def _names_of(row: TransactionRow) -> Names:
    return Names(transactional_id=row.transactional_id, producer_id=row.producer_id)


def _judge_producers(answer: ProducersOf, by_producer: dict[int, TransactionRow], findings: Findings) -> None:  # fmt: skip
    place = answer.place
    about = "the partition" if place is None else str(place)
    open_rows = [row for row in answer.rows if row.transaction_start_offset is not None]
    if not open_rows:
        words = f"{about}: {counted(len(answer.rows), 'producer')}, none with an open transaction"
        findings.add(Reason.NOTHING_OPEN_IN_PARTITION, answer.line, words, _place(place))
    for row in open_rows:
        transaction = by_producer.get(row.producer_id)
        words = f"{about}: producer {row.producer_id} epoch {row.producer_epoch}, open from offset {row.transaction_start_offset}{_last(row.last_timestamp_ms)}{_state(transaction)}"
        names = _place(place, row.producer_id, transaction)
        findings.add(_reason_in_partition(transaction, place, Reason.OPEN_IN_PARTITION), row.line, words, names)  # fmt: skip


def _judge_search(search: HangingSearch, by_producer: dict[int, TransactionRow], findings: Findings) -> None:  # fmt: skip
    if not search.rows:
        minutes = DEFAULT_MINUTES if search.minutes is None else search.minutes
        words = f"none among those that are older than {minutes} minutes"
        findings.add(Reason.NONE_REPORTED_HANGING, search.line, words)
    for row in search.rows:
        place = TopicPartition(row.topic, row.partition)
        transaction = by_producer.get(row.producer_id)
        age = "" if row.duration_minutes is None else f", for {row.duration_minutes} minutes"
        words = f"{place}: producer {row.producer_id} epoch {row.producer_epoch}, open from offset {row.start_offset}{age}{_last(row.last_timestamp_ms)}{_state(transaction)}"
        names = _place(place, row.producer_id, transaction)
        findings.add(_reason_in_partition(transaction, place, Reason.REPORTED_HANGING), row.line, words, names)  # fmt: skip


def _reason_in_partition(
    transaction: TransactionRow | None, place: TopicPartition | None, otherwise: Reason
) -> Reason:
    """Return what a coordinator's answer in the same text makes of a transaction that is open in a partition."""
    if transaction is None or place is None:
        return otherwise
    if transaction.state not in {ONGOING, *PREPARED}:
        return Reason.UNKNOWN_TO_COORDINATOR
    if not transaction.is_described:
        return otherwise
    return Reason.COORDINATOR_KNOWS_IT if str(place) in transaction.partitions else Reason.UNKNOWN_TO_COORDINATOR  # fmt: skip


def _place(place: TopicPartition | None, producer_id: int | None = None, transaction: TransactionRow | None = None) -> Names:  # fmt: skip
    return Names(
        topic=None if place is None else place.topic,
        partition=None if place is None else place.partition,
        producer_id=producer_id,
        transactional_id=None if transaction is None else transaction.transactional_id,
    )


def _last(timestamp_ms: int | None) -> str:
    """Return when the producer last wrote, by the time of its records."""
    if timestamp_ms is None:
        return ""
    try:
        at = datetime.fromtimestamp(timestamp_ms / 1000, UTC)
    except (ValueError, OverflowError, OSError):
        return ""
    return f", last record of {at:%Y-%m-%d %H:%M:%S}"


def _state(transaction: TransactionRow | None) -> str:
    return "" if transaction is None else f"; {transaction.transactional_id} is {transaction.state}"
