"""What Kafka's own tools printed, as it was read: rows of their tables, batches and records of a dumped log.

A row is read and not judged; what it means is decided in `rules/tool_output/`. What a row does not contain is None,
never -1. Source: the printed forms of Kafka 3.3 to 4.4.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias


class Tool(StrEnum):
    """A script of Kafka's; its name ends with .sh, or with .bat on Windows."""

    DUMP_LOG = "kafka-dump-log"
    TRANSACTIONS = "kafka-transactions"
    TOPICS = "kafka-topics"
    CONSUMER_GROUPS = "kafka-consumer-groups"


class Table(StrEnum):
    """A table of a tool, by its headings."""

    LISTED_TRANSACTIONS = "list"
    DESCRIBED_TRANSACTIONS = "describe"
    PRODUCERS = "describe-producers"
    HANGING = "find-hanging"
    GROUP_OFFSETS = "describe --offsets"
    GROUP_STATES = "describe --state"
    GROUP_MEMBERS = "describe --members"


class Marker(StrEnum):
    """What a control record at the end of a transaction says."""

    COMMIT = "COMMIT"
    ABORT = "ABORT"


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandLine:
    """The command above an output, as far as its options name what the output is about."""

    line: int
    tool: Tool
    words: tuple[str, ...]  # after the tool's name
    topic: str | None = None
    partition: int | None = None
    max_timeout_minutes: int | None = None  # --max-transaction-timeout
    is_typed: bool = False  # behind the prompt of a shell, so that its output follows

    @property
    def stray_words(self) -> int:
        """Return how many words are neither options nor their values: a value that was cut leaves one."""
        pairs = zip(("--subcommand", *self.words), self.words, strict=False)
        return sum(
            not before.startswith("--") and not word.startswith("--") for before, word in pairs
        )

    @property
    def option_count(self) -> int:
        """Return how many of the options that matter have a value."""
        values = (self.topic, self.partition, self.max_timeout_minutes)
        return sum(value is not None for value in values)


@dataclass(frozen=True, slots=True, kw_only=True)
class TableHead:
    """The headings of a table, which come even where no row follows."""

    line: int
    table: Table


@dataclass(frozen=True, slots=True, kw_only=True)
class DumpedFile:
    """The file that the lines below it are from; the topic is that of its directory."""

    line: int
    path: str
    topic: str | None = None
    partition: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DumpedBatch:
    """The header of a batch."""

    line: int
    base_offset: int
    last_offset: int
    record_count: int  # fewer than its offsets after compaction
    base_sequence: int | None
    last_sequence: int | None
    producer_id: int | None  # None: the writer is not idempotent
    producer_epoch: int | None
    leader_epoch: int | None
    is_transactional: bool
    is_control: bool
    timestamp_ms: int | None
    is_valid: bool | None  # None: not printed


@dataclass(frozen=True, slots=True, kw_only=True)
class DumpedRecord:
    """A record of a batch; of its contents only what a control record holds."""

    line: int
    offset: int
    sequence: int | None
    marker: Marker | None
    coordinator_epoch: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class DumpedProducer:
    """An entry of a producer snapshot: what a broker knew of a producer at its offset."""

    line: int
    producer_id: int
    producer_epoch: int
    coordinator_epoch: int | None
    transaction_start_offset: int | None  # None: no transaction was open
    last_sequence: int | None
    last_offset: int | None
    timestamp_ms: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class DumpedAbort:
    """An entry of a .txnindex: an aborted transaction."""

    line: int
    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DumpedCommit:
    """A committed offset of a group, or its removal, in a dump of __consumer_offsets."""

    line: int
    group: str
    topic: str
    partition: int
    offset: int | None  # None: a tombstone
    commit_ms: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionRow:
    """A row of `kafka-transactions list` or of `describe`, which knows more."""

    line: int
    transactional_id: str
    coordinator: int
    producer_id: int
    state: str
    is_described: bool = False
    producer_epoch: int | None = None
    timeout_ms: int | None = None
    started_ms: int | None = None
    duration_ms: int | None = None
    partitions: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ProducerRow:
    """A row of `kafka-transactions describe-producers`."""

    line: int
    producer_id: int
    producer_epoch: int
    coordinator_epoch: int | None
    last_sequence: int | None
    last_timestamp_ms: int | None
    transaction_start_offset: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class HangingRow:
    """A row of `kafka-transactions find-hanging`."""

    line: int
    topic: str
    partition: int
    producer_id: int
    producer_epoch: int
    coordinator_epoch: int | None
    start_offset: int | None
    last_timestamp_ms: int | None
    duration_minutes: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicRow:
    """The first line of a topic in `kafka-topics --describe`."""

    line: int
    topic: str
    partitions: int
    replication_factor: int
    configs: tuple[
        tuple[str, str], ...
    ]  # those that Kafka prints: not all, and not where they came from


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionRow:
    """A partition in `kafka-topics --describe`."""

    line: int
    topic: str
    partition: int
    leader: int | None
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    elr: tuple[int, ...] | None  # None: not printed, or not known
    last_known_elr: tuple[int, ...] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupOffsetRow:
    """A partition of a group in `kafka-consumer-groups --describe`."""

    line: int
    group: str
    topic: str | None  # None: the group reads nothing
    partition: int | None
    committed_offset: int | None  # None: there is no commit
    log_end_offset: int | None  # the high watermark, as a read_uncommitted consumer gets it
    lag: int | None
    consumer_id: str | None
    host: str | None
    client_id: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupStateRow:
    """A group in `kafka-consumer-groups --describe --state`."""

    line: int
    group: str
    state: str
    members: int


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupMemberRow:
    """A member in `kafka-consumer-groups --describe --members`."""

    line: int
    group: str
    consumer_id: str
    client_id: str | None
    partitions: int


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupSentence:
    """What the tool says of a group in words."""

    line: int
    group: str
    state: str  # Kafka's name, as Empty, Dead


ToolFact: TypeAlias = (
    CommandLine | TableHead | DumpedFile | DumpedBatch | DumpedRecord | DumpedProducer | DumpedAbort | DumpedCommit
    | TransactionRow | ProducerRow | HangingRow | TopicRow | PartitionRow | GroupOffsetRow | GroupStateRow
    | GroupMemberRow | GroupSentence
)  # fmt: skip
