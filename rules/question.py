"""What a rule needs to know and a collector can query: data, answered by the next round.

A rule never waits for an answer. It judges what it has, repeats its question in every round until it is
answered, and reads the answer from the snapshot. Querying everything in every round would cost too much; a
question says where it matters.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Final, TypeAlias, assert_never

from rules.facts.column import Int64s
from rules.facts.commit_keys import CommitKeys
from rules.facts.identity import TopicPartition
from rules.facts.partitions import Partitions

SMALL_LAG: Final = 10  # offsets; up to here the log is inspected without a question


@dataclass(frozen=True, slots=True)
class ReadableQuestion:
    """Is there anything beyond these commits that a read_committed consumer would receive?

    Answered by `Commits.nothing_to_read`; what cannot be determined stays absent there.
    """

    commits: CommitKeys


@dataclass(frozen=True, slots=True, eq=False)
class ProducersQuestion:
    """Whose transactions are open on these partitions?

    Answered by `Snapshot.producers`, where something is still open or `wants_every` says so.
    """

    partitions: Partitions  # of an earlier round
    rows: Int64s  # of these partitions
    is_urgent: bool = False  # the answer decides a verdict: it triggers an early round
    wants_every: bool = False  # also those without an open transaction, and where nothing is open
    # Producers whose whole state is needed: their partitions are queried whether or not a transaction
    # is open there; answered by `Producers.states`.
    wants_states_of: frozenset[int] = frozenset()
    # How many of the producers that wrote last are needed, likewise; answered by `Producers.newest`.
    newest_producers: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class EpochEndQuestion:
    """Where did these leader epochs end in the present leaders' logs?

    Answered by `Snapshot.epoch_ends`. It always triggers an early round: the cause of the loss may
    continue.
    """

    partitions: Partitions  # of an earlier round
    rows: Int64s  # of these partitions
    epochs: Int64s  # one per row


@dataclass(frozen=True, slots=True)
class BatchRequest:
    """One producer's batches on one partition: around a sequence, or of a time and later."""

    name: TopicPartition
    producer_id: int
    offset: int | None  # of the rejected batch: the requested batches lie before or after it
    # The last sequence that the broker had; its batch is searched for first.
    sequence: int | None
    # Of that batch, as DescribeProducers returned it; without offset and sequence all from it on.
    last_record_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class BatchesQuestion:
    """Which batches of these producers does the leader's log hold?

    Answered by `Snapshot.batches`; it triggers an early round. Needs READ.
    """

    requests: tuple[BatchRequest, ...]


@dataclass(frozen=True, slots=True)
class TransactionsQuestion:
    """In what state are the transactions of these producers?

    Answered by `Snapshot.transactions`, also where nothing is open. It adds one listing per broker.
    """

    producer_ids: frozenset[int]


Question: TypeAlias = (
    ReadableQuestion | ProducersQuestion | EpochEndQuestion | BatchesQuestion | TransactionsQuestion
)


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundRequests:
    """The questions of a round by kind; each kind goes to the collector that answers it."""

    readable: tuple[ReadableQuestion, ...]
    producers: tuple[ProducersQuestion, ...]
    epoch_ends: tuple[EpochEndQuestion, ...]
    batches: tuple[BatchesQuestion, ...]
    transactions: tuple[TransactionsQuestion, ...]


def by_kind(questions: Iterable[Question]) -> RoundRequests:
    """Sort questions by kind; a kind that is missing here is a type error, not a lost question."""
    readable: list[ReadableQuestion] = []
    producers: list[ProducersQuestion] = []
    epoch_ends: list[EpochEndQuestion] = []
    batches: list[BatchesQuestion] = []
    transactions: list[TransactionsQuestion] = []
    for question in questions:
        match question:
            case ReadableQuestion():
                readable.append(question)
            case ProducersQuestion():
                producers.append(question)
            case EpochEndQuestion():
                epoch_ends.append(question)
            case BatchesQuestion():
                batches.append(question)
            case TransactionsQuestion():
                transactions.append(question)
            case _:
                assert_never(question)
    return RoundRequests(
        readable=tuple(readable),
        producers=tuple(producers),
        epoch_ends=tuple(epoch_ends),
        batches=tuple(batches),
        transactions=tuple(transactions),
    )
