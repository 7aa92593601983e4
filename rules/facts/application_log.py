"""What lines of an application's log say of Kafka: errors of its clients, and its transactions' states.

A line is read and not judged: which error, in which request, and what the client says that it does now. What that
means is decided in `rules/exceptions/`. What a line does not contain is None. Source: the message texts of Kafka's
Java clients 2.5 to 4.4, of librdkafka 1.x and 2.x, and of the frameworks around them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Final, TypeAlias

Release: TypeAlias = tuple[int, int]  # as (3, 9)


class Client(StrEnum):
    """The library that wrote a line; they differ in what a producer can do after the same error."""

    JAVA = "java"
    LIBRDKAFKA = "librdkafka"
    PYTHON = "python"  # kafka-python and aiokafka
    BROKER = "broker"  # a broker or a controller


class Part(StrEnum):
    """The client that failed."""

    PRODUCER = "producer"
    CONSUMER = "consumer"
    ADMIN = "admin"


class Framework(StrEnum):
    """What runs the client, and often deals with its errors."""

    STREAMS = "streams"
    CONNECT = "connect"
    SPRING = "spring"
    FLINK = "flink"


class Operation(StrEnum):
    """What failed: a request, or a step of the client before one is sent."""

    PRODUCE = "produce"
    BATCH_EXPIRED = "batch_expired"  # delivery.timeout.ms, message.timeout.ms
    SEND_METADATA = "send_metadata"  # send() does not know the topic: nothing was sent
    SEND_BUFFER = "send_buffer"  # send() has no buffer: nothing was sent
    SERIALIZATION = "serialization"
    INIT_PRODUCER_ID = "init_producer_id"
    BEGIN = "begin"
    ADD_PARTITIONS = "add_partitions"
    ADD_OFFSETS = "add_offsets"
    TXN_OFFSET_COMMIT = "txn_offset_commit"
    COMMIT = "commit"  # EndTxn(true)
    ABORT = "abort"  # EndTxn(false)
    END_TXN = "end_txn"  # one of the two
    FLUSH = "flush"
    CLOSE = "close"
    FIND_COORDINATOR = "find_coordinator"
    OFFSET_COMMIT = "offset_commit"
    OFFSET_FETCH = "offset_fetch"
    POSITION = "position"
    LIST_OFFSETS = "list_offsets"
    FETCH = "fetch"
    POLL = "poll"
    JOIN_GROUP = "join_group"
    HEARTBEAT = "heartbeat"
    METADATA = "metadata"
    CONNECT = "connect"
    ADMIN = "admin"
    STREAMS = "streams"  # Kafka Streams gave up after its own time limit


class Outcome(StrEnum):
    """What a line says that its client does now; it counts more than the class of the error."""

    RETRYING = "retrying"  # the client tries again by itself
    HANDLED = "handled"  # the client, or the framework, has dealt with it
    RAISED = "raised"  # it reached the application, or the line does not say
    ABORTABLE = "abortable"  # the transaction has to be aborted, the producer can go on
    FATAL = "fatal"  # this instance can only be closed


# Names of errors that no broker's answer has: of classes of the clients, or of sentences without an error.
GENERIC: Final = "KAFKA"  # a bare KafkaException
UNKNOWN: Final = ""  # Kafka's words, and no error that is known


@dataclass(frozen=True, slots=True, kw_only=True)
class Thrown:
    """One error of a line: of a chain of causes, or the one that a line is about."""

    error: str  # Kafka's name as OUT_OF_ORDER_SEQUENCE_NUMBER, librdkafka's as _MSG_TIMED_OUT
    text: str = ""  # the message, shortened
    operation: Operation | None = None
    class_name: str | None = None  # as it was written, without its package


@dataclass(frozen=True, slots=True, kw_only=True)
class Names:
    """The names and numbers that a line contains."""

    application: str | None = None  # container, pod or service, from what a shipper put first
    thread: str | None = None
    client_id: str | None = None
    handle: str | None = (
        None  # librdkafka's name of an instance: the client id, #, its kind and number
    )
    transactional_id: str | None = None
    group: str | None = None
    topic: str | None = None
    partition: int | None = None
    producer_id: int | None = None
    producer_epoch: int | None = None
    broker: int | None = None
    offset: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ApplicationError:
    """An error of a client, with the errors that it wraps."""

    source: str  # the name of the file, or of the sender
    line: int  # of the source, from 1
    at: datetime | None  # aware, UTC, by the clock of the machine that wrote it
    client: Client | None
    part: Part | None
    outcome: Outcome
    chain: tuple[Thrown, ...]  # the outer ones first; empty: Kafka's words, and no known error
    framework: Framework | None = None  # by its classes, or by frames of a stack trace
    operation: Operation | None = None  # by the frames of a stack trace, or by the line
    is_transactional: bool | None = None  # of the producer; None: the line does not say
    release: Release | None = None  # of the Java client, by the names of its jars in a stack trace
    names: Names = field(default_factory=Names)
    text: str = ""  # the line, shortened
    count: int = 1  # lines that say the same, one soon after the other
    last_at: datetime | None = None  # of the last of them


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionLogged:
    """A line of Kafka's formatter of the transaction log: a state that a coordinator wrote."""

    source: str
    line: int
    transactional_id: str
    state: str | None  # Kafka's name, as PrepareCommit; None: a tombstone, the id is forgotten
    producer_id: int | None = None
    producer_epoch: int | None = None
    timeout_ms: int | None = None
    partitions: tuple[str, ...] = ()  # topic-partition, in it
    started_at: datetime | None = None
    updated_at: datetime | None = None


ApplicationEvent: TypeAlias = ApplicationError | TransactionLogged
