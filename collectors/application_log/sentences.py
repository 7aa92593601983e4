"""Sentences of clients, frameworks and brokers that are no exception, or say more than the exception in them.

The first of them in a line counts. The error is None where the line names it itself. Source: log statements of
Kafka's clients 2.5 to 4.4, Kafka Streams, Kafka Connect, Flink's connector, Spring Kafka and librdkafka 2.16.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Final, TypeAlias

from rules.facts.application_log import Client, Operation, Outcome, Part

_RAISED, _RETRYING = Outcome.RAISED, Outcome.RETRYING
_HANDLED, _ABORTABLE, _FATAL = Outcome.HANDLED, Outcome.ABORTABLE, Outcome.FATAL


@dataclass(frozen=True, slots=True, kw_only=True)
class Sentence:
    """What a sentence says."""

    error: str | None  # None: the line names it
    outcome: Outcome
    operation: Operation | None = None
    part: Part | None = None
    client: Client | None = None
    is_decisive: bool = False  # its error counts even where the line names another one


Row: TypeAlias = tuple[str, str | None, Outcome] | tuple[str, str | None, Outcome, Operation]

EPOCH: Final = "ProducerId set to"  # an event only where a plain producer raised its epoch
# Where one sentence holds another, the longer one comes first.
PRODUCERS: Final[tuple[Row, ...]] = (
    ("Transiting to fatal error state", None, _FATAL),
    ("Transiting to abortable error state", None, _ABORTABLE),
    ("to error state FATAL_ERROR", None, _FATAL),
    ("to error state ABORTABLE_ERROR", None, _ABORTABLE),
    ("Got error produce response", None, _RETRYING, Operation.PRODUCE),
    ("invalid metadata error in produce request", None, _RETRYING, Operation.PRODUCE),
    (EPOCH, "_EPOCH_RAISED", _HANDLED),
    ("No inflight batches remaining", "_BATCHES_GIVEN_UP", _HANDLED),
    ("Failing batch since transaction was aborted", "TRANSACTION_ABORTED", _RAISED),
    ("It is safe to abort the transaction", "_BATCHES_UNRESOLVED", _ABORTABLE),
    ("It isn't safe to continue", "_BATCHES_UNRESOLVED", _FATAL),
    ("because we are in an error state", "_ERROR_STATE", _RAISED),
    ("previous transactional or idempotent request has failed", "_ERROR_STATE", _RAISED),
    ("Aborting producer batches due to fatal error", "_ERROR_STATE", _FATAL),
    ("Producer is closed forcefully", "_CLOSED", _RAISED),
    ("after producer has been closed", "_CLOSED", _RAISED),
    ("Producer closed while", "_CLOSED", _RAISED),
    ("Proceeding to force close the producer", "_FORCE_CLOSED", _RAISED),
    ("timed out and must be retried", "_CALL_TO_REPEAT", _RAISED),
    ("Abortable authorization error", "_AUTHORIZATION_ABORTABLE", _RAISED),
    ("Unable to verify the partition has been added", "_VERIFICATION_FAILED", _RAISED),
    ("caught trying to initialize transactions", "TIMEOUT", _RETRYING, Operation.INIT_PRODUCER_ID),
    ("Invalid transition attempted from state", "_INVALID_TRANSITION", _RAISED),
    ("exhausting retries", None, _ABORTABLE),
    ("Unexpected error in InitProducerId", None, _FATAL, Operation.INIT_PRODUCER_ID),
    ("Unexpected error in AddOffsets", None, _FATAL, Operation.ADD_OFFSETS),
    ("Unexpected error in TxnOffsetCommit", None, _FATAL, Operation.TXN_OFFSET_COMMIT),
    ("Unhandled error in EndTxn", None, _FATAL, Operation.END_TXN),
    ("with partition count", "_NO_SUCH_PARTITION", _RAISED, Operation.SEND_METADATA),
    ("Operation not valid in state", "_STATE", _RAISED),
    ("message(s) failed delivery", "_DELIVERIES_FAILED", _RAISED),
    ("No PID available", "_WAIT_COORD", _RETRYING, Operation.INIT_PRODUCER_ID),
    ("fenced by newer producer instance", "_FENCED", _FATAL),
    ("Fatal transaction error", None, _FATAL),
    ("Current transaction failed", None, _ABORTABLE),
    ("Failed to acquire idempotence PID", None, _RETRYING, Operation.INIT_PRODUCER_ID),
    ("Failed to acquire transactional PID", None, _RETRYING, Operation.INIT_PRODUCER_ID),
    ("Failed to acquire PID", None, _RETRYING, Operation.INIT_PRODUCER_ID),
    ("|REQTMOUT|", "_REQUEST_TIMED_OUT", _RETRYING),
)
CONSUMERS: Final[tuple[Row, ...]] = (
    ("Truncation detected for partition", "LOG_TRUNCATION", _HANDLED, Operation.FETCH),
    ("Offsets out of range with no configured reset policy", "OFFSET_OUT_OF_RANGE", _RAISED),
    ("fetch failed due to requested offset not available", "OFFSET_OUT_OF_RANGE", _HANDLED),
    ("Cannot fetch offset ", "OFFSET_OUT_OF_RANGE", _RAISED, Operation.FETCH),
    ("not available in Kafka any more", "OFFSET_OUT_OF_RANGE", _RAISED, Operation.FETCH),
    ("is out of range for partition", "OFFSET_OUT_OF_RANGE", _HANDLED, Operation.FETCH),
    ("log truncation detected", "_LOG_TRUNCATION", _RAISED, Operation.FETCH),
    ("Encountered corrupt message", "_CORRUPT_BATCH", _RAISED, Operation.FETCH),
    ("is invalid, cause: ", "_CORRUPT_BATCH", _RAISED, Operation.FETCH),
    ("Record is corrupt", "_CORRUPT_BATCH", _RAISED, Operation.FETCH),
    ("Resetting offset for partition", "_OFFSET_RESET", _HANDLED, Operation.FETCH),
    ("Undefined offset with no reset policy", "NO_OFFSET_FOR_PARTITION", _RAISED),
    ("poll timeout has expired", "_MAX_POLL_EXCEEDED", _HANDLED),
    ("Application maximum poll interval", "_MAX_POLL_EXCEEDED", _RAISED),
    ("cannot be completed since the group has already rebalanced", "COMMIT_FAILED", _RAISED),
    ("consumer is not part of an active group", "COMMIT_FAILED", _RAISED),
    ("Commit of offsets timed out", "TIMEOUT", _RETRYING, Operation.OFFSET_COMMIT),
    ("Offset commit failed with a retriable exception", "RETRIABLE_COMMIT_FAILED", _RAISED),
    ("The coordinator is not aware of this member", "UNKNOWN_MEMBER_ID", _RAISED),
    ("Attempt to heartbeat failed", None, _HANDLED, Operation.HEARTBEAT),
    ("Request joining group due to", None, _HANDLED, Operation.JOIN_GROUP),
    ("is unavailable or invalid", "COORDINATOR_NOT_AVAILABLE", _RETRYING),
    ("Lost previously assigned partitions", "_ASSIGNMENT_LOST", _HANDLED),
    ("expired while fetching topic metadata", "TIMEOUT", _RAISED, Operation.METADATA),
    ("Consumer group session timed out", "_SESSION_EXPIRED", _HANDLED),
    ("unstable offsets that need to be cleared", "UNSTABLE_OFFSET_COMMIT", _RETRYING),
)
CONNECTIONS: Final[tuple[Row, ...]] = (
    ("Error while fetching metadata", None, _RETRYING, Operation.METADATA),
    ("failed authentication due to", "SASL_AUTHENTICATION_FAILED", _RAISED, Operation.CONNECT),
    ("terminated during authentication", "_NOT_CONNECTED", _RETRYING, Operation.CONNECT),
    ("could not be established. ", "_NOT_CONNECTED", _RETRYING, Operation.CONNECT),
    ("Bootstrap broker", "_NOT_CONNECTED", _RETRYING, Operation.CONNECT),
    ("Error connecting to node", "_NOT_CONNECTED", _RETRYING, Operation.CONNECT),
    ("No resolvable bootstrap urls", "_RESOLVE", _RAISED, Operation.CONNECT),
    ("being disconnected", "NETWORK_EXCEPTION", _RETRYING),
    ("brokers are down", "_ALL_BROKERS_DOWN", _RETRYING, Operation.CONNECT),
    ("Failed to resolve", "_RESOLVE", _RETRYING, Operation.CONNECT),
    ("Disconnected (after", "NETWORK_EXCEPTION", _RETRYING),
    ("Connection setup timed out", "_NOT_CONNECTED", _RETRYING, Operation.CONNECT),
    ("Connection refused", "_NOT_CONNECTED", _RETRYING, Operation.CONNECT),
)
FRAMEWORKS: Final[tuple[Row, ...]] = (
    ("choose to CONTINUE processing", "_STREAMS_CONTINUED", _HANDLED),
    ("Skipping record due to deserialization error", "_RECORD_SKIPPED", _HANDLED),
    ("Exception caught during Deserialization", "_RECORD_SKIPPED", _HANDLED),
    ("data has been potentially lost", "_FLINK_DATA_LOST", _HANDLED),
    ("transaction data is lost", "_FLINK_DATA_LOST", _HANDLED),
    ("Most likely the transaction has been aborted", "_FLINK_DATA_LOST", _HANDLED),
    ("producer is already fenced", "_FLINK_DATA_LOST", _HANDLED),
    ("the task may be migrated out", "TASK_MIGRATED", _RAISED),
    ("Error encountered in task", "_CONNECT_REPORTED", _HANDLED),
    ("checking for or creating topic", "_CONNECT_NO_TOPIC", _RAISED),
    ("Failed to perform zombie fencing", "_CONNECT_NOT_STARTED", _RAISED),
    ("Tolerance exceeded in error handler", "_CONNECT_TOLERANCE", _RAISED),
    ("unrecoverable exception", "_CONNECT_TASK_FAILED", _RAISED),
    ("Unrecoverable exception", "_CONNECT_TASK_FAILED", _RAISED),
    ("Failed to flush, timed out while waiting", "_CONNECT_FLUSH_FAILED", _RAISED),
    ("Commit of offsets threw an unexpected exception", "_CONNECT_COMMIT_FAILED", _RAISED),
    ("Seek to current after exception", "_SPRING_SEEK", _RETRYING),
    ("exhausted for ", "_SPRING_GAVE_UP", _HANDLED),
    ("' fenced during transaction", "_SPRING_FENCED", _RAISED),
    ("stopping container", "_SPRING_STOPPED", _RAISED),
)
BROKERS: Final[tuple[Row, ...]] = (
    ("Completed rollback of ongoing transaction", "_TXN_TIMED_OUT", _HANDLED),
    ("Stopping serving replicas in dir", "_DISK_FAILED", _RAISED),
    ("Stopped serving replicas in dir", "_DISK_FAILED", _RAISED),
    ("using an unclean election", "_UNCLEAN_ELECTION", _HANDLED),
    ("log truncation is not allowed", "_TRUNCATION_REFUSED", _RAISED),
    ("received transaction marker result to send", "INVALID_TXN_STATE", _RAISED),
    ("Initialized transactionalId", "_PRODUCER_INITIALIZED", _HANDLED),
    ("has failed, removing it from the group", "_SESSION_EXPIRED", _HANDLED),
    ("transaction marker for partition", None, _RETRYING),
    ("Preparing to rebalance group", "REBALANCE_IN_PROGRESS", _HANDLED),
    ("insufficient to satisfy the min.isr requirement", "NOT_ENOUGH_REPLICAS", _RAISED),
)
# Texts of errors whose class is not there: a KafkaException around a broker's answer has only its message.
ANSWERS: Final[tuple[Row, ...]] = (
    ("transaction timeout is larger than", "INVALID_TRANSACTION_TIMEOUT", _RAISED),
    ("use a producer id which is not currently", "INVALID_PRODUCER_ID_MAPPING", _RAISED),
    ("newer producer with the same transactional", "PRODUCER_FENCED", _RAISED),
    ("attempted to produce with an old epoch", "INVALID_PRODUCER_EPOCH", _RAISED),
    ("attempted an operation with an old epoch", "INVALID_PRODUCER_EPOCH", _RAISED),
    ("transactional operation in an invalid state", "INVALID_TXN_STATE", _RAISED),
    ("received an out of order sequence number", "OUT_OF_ORDER_SEQUENCE_NUMBER", _RAISED),
    ("disconnected before a response was received", "NETWORK_EXCEPTION", _RAISED),
    ("encountered an error with the transaction", "TRANSACTION_ABORTABLE", _RAISED),
    ("could not locate the producer metadata", "UNKNOWN_PRODUCER_ID", _RAISED),
    ("larger than the max message size the server", "MESSAGE_TOO_LARGE", _RAISED),
    ("the value of the max.request.size configuration", "MESSAGE_TOO_LARGE", _RAISED),
    ("written to the log, but to fewer", "NOT_ENOUGH_REPLICAS_AFTER_APPEND", _RAISED),
    ("fewer in-sync replicas than required", "NOT_ENOUGH_REPLICAS", _RAISED),
    ("received a duplicate sequence number", "DUPLICATE_SEQUENCE_NUMBER", _RAISED),
    ("another concurrent operation on the same transaction", "CONCURRENT_TRANSACTIONS", _RAISED),
    ("not the leader for that topic", "NOT_LEADER_OR_FOLLOWER", _RAISED),
    ("not the leader for some partition", "NOT_LEADER_OR_FOLLOWER", _RAISED),
    ("does not host this topic-partition", "UNKNOWN_TOPIC_OR_PARTITION", _RAISED),
    ("topic or partition that does not exist", "UNKNOWN_TOPIC_OR_PARTITION", _RAISED),
    ("the range of offsets maintained by", "OFFSET_OUT_OF_RANGE", _RAISED),
    ("member is not known in the current generation", "UNKNOWN_MEMBER_ID", _RAISED),
    ("generation id is not the current", "ILLEGAL_GENERATION", _RAISED),
    ("group generation id is not valid", "ILLEGAL_GENERATION", _RAISED),
    ("so a rejoin is needed", "REBALANCE_IN_PROGRESS", _RAISED),
    ("A rebalance for the group is in progress", "REBALANCE_IN_PROGRESS", _RAISED),
    ("Not authorized to access topic", "TOPIC_AUTHORIZATION_FAILED", _RAISED),
    ("Not authorized to access group", "GROUP_AUTHORIZATION_FAILED", _RAISED),
    ("server experienced an unexpected error", "UNKNOWN_SERVER_ERROR", _RAISED),
    ("No space left on device", "_DISK_FAILED", _RAISED),
)
# Their error counts even where the line names another one, which is then its cause.
DECISIVE: Final = frozenset({
    "_STREAMS_CONTINUED", "_RECORD_SKIPPED", "_FLINK_DATA_LOST", "_CLOSED", "_ERROR_STATE", "_FENCED",
    "_SPRING_GAVE_UP", "_CALL_TO_REPEAT", "_AUTHORIZATION_ABORTABLE", "_VERIFICATION_FAILED",
    "_LOG_TRUNCATION", "LOG_TRUNCATION", "_CONNECT_TOLERANCE", "_CONNECT_REPORTED", "_NO_SUCH_PARTITION",
    "_SPRING_FENCED", "_DELIVERIES_FAILED",
})  # fmt: skip


def _sentences() -> dict[str, Sentence]:
    tables = (
        (PRODUCERS, Part.PRODUCER, None),
        (CONSUMERS, Part.CONSUMER, None),
        (CONNECTIONS, None, None),
        (FRAMEWORKS, None, None),
        (BROKERS, None, Client.BROKER),
        (ANSWERS, None, None),
    )
    return {
        row[0]: Sentence(
            error=row[1],
            outcome=row[2],
            operation=row[3] if len(row) == 4 else None,
            part=part,
            client=client,
            is_decisive=row[1] in DECISIVE,
        )
        for rows, part, client in tables
        for row in rows
    }


SENTENCES: Final = _sentences()
# Of two sentences in one line, the later outcome here counts.
STRENGTH: Final = (_RAISED, _RETRYING, _HANDLED, _ABORTABLE, _FATAL)
_FIND: Final = re.compile("|".join(map(re.escape, SENTENCES)))
_RAISED_EPOCH: Final = re.compile(r"ProducerId set to \d{1,19} with epoch [1-9]")
# A client goes on by itself, whatever the error.
_GOES_ON: Final = re.compile(
    r"attempts left|[Rr]etrying|will retry|[Ww]ill be retried|request metadata update now|to retry"
)


def sentence_of(text: str) -> Sentence | None:
    """Return what the known sentences in a line say together; None: there is none."""
    words_there = dict.fromkeys(_FIND.findall(text))
    if EPOCH in words_there and not (_RAISED_EPOCH.search(text) and "transactionalId" not in text):
        words_there.pop(EPOCH)
    sentences = [SENTENCES[words] for words in words_there]
    if len(sentences) < 2:
        return sentences[0] if sentences else None
    errors = sorted((each for each in sentences if each.error is not None), key=_is_minor)
    first = errors[0] if errors else sentences[0]
    return replace(
        first,
        outcome=max((each.outcome for each in sentences), key=STRENGTH.index),
        operation=next((each.operation for each in sentences if each.operation is not None), None),
        part=next((each.part for each in sentences if each.part is not None), None),
        client=next((each.client for each in sentences if each.client is not None), None),
    )


def _is_minor(sentence: Sentence) -> bool:
    return not sentence.is_decisive


def goes_on(text: str) -> bool:
    """Whether a line says that its client tries again by itself."""
    return _GOES_ON.search(text) is not None
