"""What failed, by fragments of messages and by the frames of a stack trace.

An error that Kafka's protocol has comes without a stack trace of its own, so the frames are those of the exception
around it. Fragments are short, because messages grew over the releases. Source: Kafka's clients 2.5 to 4.4.
"""

from __future__ import annotations

import re
from typing import Final

from rules.facts.application_log import Operation, Part

# In the order in which they are tried.
FRAGMENTS: Final = (
    ("awaiting EndTxn(true)", Operation.COMMIT),
    ("awaiting EndTxn(false)", Operation.ABORT),
    ("awaiting InitProducerId", Operation.INIT_PRODUCER_ID),
    ("initializing transactional state", Operation.INIT_PRODUCER_ID),
    ("initialise Producer ID", Operation.INIT_PRODUCER_ID),
    ("Failed to abort transaction", Operation.ABORT),
    ("Failed to commit transaction", Operation.COMMIT),
    ("result to send: COMMIT", Operation.COMMIT),
    ("result to send: ABORT", Operation.ABORT),
    ("Failed to end transaction", Operation.END_TXN),
    ("Unable to commit", Operation.COMMIT),
    ("Failed to commit KafkaCommittable", Operation.COMMIT),
    ("awaiting AddOffsetsToTxn", Operation.ADD_OFFSETS),
    ("awaiting TxnOffsetCommit", Operation.TXN_OFFSET_COMMIT),
    ("awaiting AddPartitionsToTxn", Operation.ADD_PARTITIONS),
    ("since batch creation", Operation.BATCH_EXPIRED),
    ("since last append", Operation.BATCH_EXPIRED),
    ("since last attempt", Operation.BATCH_EXPIRED),
    ("record(s) expired", Operation.BATCH_EXPIRED),
    ("message(s) timed out", Operation.BATCH_EXPIRED),
    ("messages within the API timeout", Operation.COMMIT),
    ("Expiring ", Operation.BATCH_EXPIRED),
    ("present in metadata after", Operation.SEND_METADATA),
    ("Failed to update metadata after", Operation.SEND_METADATA),
    ("within the configured max blocking time", Operation.SEND_BUFFER),
    ("Failed to allocate", Operation.SEND_BUFFER),
    ("successfully committing offsets", Operation.OFFSET_COMMIT),
    ("last committed offset", Operation.OFFSET_FETCH),
    ("before the position for", Operation.POSITION),
    ("get offsets by times", Operation.LIST_OFFSETS),
    ("offsets by times", Operation.LIST_OFFSETS),
    ("topic metadata", Operation.METADATA),
    ("Call(callName=", Operation.ADMIN),
    ("node assignment. Call", Operation.ADMIN),
    ("waiting for a node assignment", Operation.ADMIN),
    ("not added to the transaction", Operation.PRODUCE),
    ("not part of an ongoing transaction", Operation.PRODUCE),
    ("attempted to produce", Operation.PRODUCE),
    ("AddPartitionsToTxn", Operation.ADD_PARTITIONS),
    ("AddOffsetsToTxn", Operation.ADD_OFFSETS),
    ("TxnOffsetCommit", Operation.TXN_OFFSET_COMMIT),
    ("EndTxn", Operation.END_TXN),
    ("InitProducerId", Operation.INIT_PRODUCER_ID),
    ("commit_transaction", Operation.COMMIT),
    ("abort_transaction", Operation.ABORT),
    ("send_offsets_to_transaction", Operation.TXN_OFFSET_COMMIT),
    ("init_transactions", Operation.INIT_PRODUCER_ID),
    ("begin_transaction", Operation.BEGIN),
    ("ProduceRequest", Operation.PRODUCE),
    ("produce response", Operation.PRODUCE),
    ("produce request", Operation.PRODUCE),
    ("FindCoordinator", Operation.FIND_COORDINATOR),
    ("OffsetCommit", Operation.OFFSET_COMMIT),
    ("Offset commit", Operation.OFFSET_COMMIT),
    ("offset commit", Operation.OFFSET_COMMIT),
    ("JoinGroup", Operation.JOIN_GROUP),
    ("SyncGroup", Operation.JOIN_GROUP),
    ("Heartbeat", Operation.HEARTBEAT),
    ("heartbeat", Operation.HEARTBEAT),
    ("fetching metadata", Operation.METADATA),
    ("FetchRequest", Operation.FETCH),
    ("Fetch position", Operation.FETCH),
    ("task.timeout.ms", Operation.STREAMS),
)
_FIND: Final = re.compile("|".join(re.escape(words) for words, _ in FRAGMENTS))
_BY_WORDS: Final = dict(FRAGMENTS)

_FRAME: Final = re.compile(
    rb"kafka\.clients\.(?P<part>producer|consumer|admin)\.(?:internals\.)?"
    rb"(?P<class>[A-Za-z]{1,80})(?:\$(?P<inner>[A-Za-z]{1,80}))?[\w$]{0,80}\.(?P<method>[\w$<>]{1,80})\("
)
_METHODS: Final = {
    b"initTransactions": Operation.INIT_PRODUCER_ID,
    b"beginTransaction": Operation.BEGIN,
    b"sendOffsetsToTransaction": Operation.TXN_OFFSET_COMMIT,
    b"commitTransaction": Operation.COMMIT,
    b"abortTransaction": Operation.ABORT,
    b"send": Operation.PRODUCE,
    b"doSend": Operation.PRODUCE,
    b"flush": Operation.FLUSH,
    b"close": Operation.CLOSE,
    b"poll": Operation.POLL,
    b"commitSync": Operation.OFFSET_COMMIT,
    b"commitAsync": Operation.OFFSET_COMMIT,
    b"position": Operation.POSITION,
    b"committed": Operation.OFFSET_FETCH,
    b"beginningOffsets": Operation.LIST_OFFSETS,
    b"endOffsets": Operation.LIST_OFFSETS,
    b"offsetsForTimes": Operation.LIST_OFFSETS,
    b"partitionsFor": Operation.METADATA,
    b"listTopics": Operation.METADATA,
}
_INNER: Final = {
    b"EndTxnHandler": Operation.END_TXN,
    b"AddPartitionsToTxnHandler": Operation.ADD_PARTITIONS,
    b"AddOffsetsToTxnHandler": Operation.ADD_OFFSETS,
    b"TxnOffsetCommitHandler": Operation.TXN_OFFSET_COMMIT,
    b"InitProducerIdHandler": Operation.INIT_PRODUCER_ID,
    b"FindCoordinatorHandler": Operation.FIND_COORDINATOR,
    b"OffsetCommitResponseHandler": Operation.OFFSET_COMMIT,
    b"OffsetFetchResponseHandler": Operation.OFFSET_FETCH,
    b"JoinGroupResponseHandler": Operation.JOIN_GROUP,
    b"SyncGroupResponseHandler": Operation.JOIN_GROUP,
    b"HeartbeatResponseHandler": Operation.HEARTBEAT,
}
_OF_CLASS: Final = {
    b"Sender": Operation.PRODUCE,
    b"ProducerBatch": Operation.PRODUCE,
    b"FutureRecordMetadata": Operation.PRODUCE,
    b"ProduceRequestResult": Operation.PRODUCE,
    b"KafkaAdminClient": Operation.ADMIN,
}
_PARTS: Final = {b"producer": Part.PRODUCER, b"consumer": Part.CONSUMER, b"admin": Part.ADMIN}


# A call in a line of source code, as a traceback of Python shows it above the exception, or before its error; a frame of .NET.
_CALL: Final = re.compile(
    r"(?<![A-Za-z])(?:rd_kafka_)?(?P<call>(?:commit|abort|begin)_transaction|init_transactions|"
    r"send_offsets_to_transaction)(?:\(|: )"
)
_CALLS: Final = {
    "commit_transaction": Operation.COMMIT,
    "abort_transaction": Operation.ABORT,
    "begin_transaction": Operation.BEGIN,
    "init_transactions": Operation.INIT_PRODUCER_ID,
    "send_offsets_to_transaction": Operation.TXN_OFFSET_COMMIT,
}
_FRAME_OF_NET: Final = re.compile(rb"Confluent\.Kafka\.[^\s(]{0,200}\.(?P<method>[A-Za-z]{1,40})\(")
_METHODS_OF_NET: Final = {
    b"InitTransactions": Operation.INIT_PRODUCER_ID,
    b"BeginTransaction": Operation.BEGIN,
    b"SendOffsetsToTransaction": Operation.TXN_OFFSET_COMMIT,
    b"CommitTransaction": Operation.COMMIT,
    b"AbortTransaction": Operation.ABORT,
}


def call_in(text: str) -> Operation | None:
    """Return the call about a transaction that a line of source code makes."""
    match = _CALL.search(text)
    return None if match is None else _CALLS[match["call"]]


def operation_of_text(text: str) -> Operation | None:
    """Return what a message says that failed; None: nothing of what is known."""
    match = _FIND.search(text)
    return None if match is None else _BY_WORDS[match[0]]


def operation_of_frame(line: bytes) -> tuple[Operation | None, Part | None]:
    """Return what a frame of a stack trace was doing, and in which client."""
    match = _FRAME.search(line)
    if match is None:
        of_net = _FRAME_OF_NET.search(line)
        return (None if of_net is None else _METHODS_OF_NET.get(of_net["method"])), None
    part = _PARTS[match["part"]]
    operation = (
        _INNER.get(match["inner"] or b"")
        or _OF_CLASS.get(match["class"])
        or (_METHODS.get(match["method"]) if match["class"].startswith(_CLIENTS) else None)
    )
    return operation, part


_CLIENTS: Final = (
    b"KafkaProducer",
    b"KafkaConsumer",
    b"AsyncKafkaConsumer",
    b"LegacyKafkaConsumer",
    b"ClassicKafkaConsumer",
    b"ShareConsumer",
)

_OF_PART: Final = {
    Part.CONSUMER: frozenset({
        Operation.OFFSET_COMMIT, Operation.OFFSET_FETCH, Operation.POSITION, Operation.FETCH,
        Operation.POLL, Operation.JOIN_GROUP, Operation.HEARTBEAT, Operation.LIST_OFFSETS,
    }),
    Part.PRODUCER: frozenset({
        Operation.PRODUCE, Operation.BATCH_EXPIRED, Operation.SEND_METADATA, Operation.SEND_BUFFER,
        Operation.INIT_PRODUCER_ID, Operation.BEGIN, Operation.ADD_PARTITIONS, Operation.ADD_OFFSETS,
        Operation.TXN_OFFSET_COMMIT, Operation.COMMIT, Operation.ABORT, Operation.END_TXN,
        Operation.FLUSH,
    }),
    Part.ADMIN: frozenset({Operation.ADMIN}),
}  # fmt: skip
TRANSACTIONAL: Final = frozenset({
    Operation.INIT_PRODUCER_ID, Operation.BEGIN, Operation.ADD_PARTITIONS, Operation.ADD_OFFSETS,
    Operation.TXN_OFFSET_COMMIT, Operation.COMMIT, Operation.ABORT, Operation.END_TXN,
})  # fmt: skip


def part_of(operation: Operation | None) -> Part | None:
    """Return the client that does such a thing; None: several do."""
    return next((part for part, operations in _OF_PART.items() if operation in operations), None)
