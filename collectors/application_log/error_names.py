"""Names of errors in the words of clients: a class, a code, a sentence; all become Kafka's own name.

Class names are translated by their form, so that one which is new is named too. Source: `Errors` of Kafka 4.4,
`rd_kafka_err2str` of librdkafka 2.16, and `kafka.errors` of kafka-python.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

_HUMPS: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_ENDING: Final = re.compile(r"(?:Exception|Error)$")

# Classes whose name has another form than the code, and codes that clients name differently.
ALIASES: Final = {
    "OUT_OF_ORDER_SEQUENCE": "OUT_OF_ORDER_SEQUENCE_NUMBER",
    "DUPLICATE_SEQUENCE": "DUPLICATE_SEQUENCE_NUMBER",
    "INVALID_PID_MAPPING": "INVALID_PRODUCER_ID_MAPPING",
    "INVALID_TXN_TIMEOUT": "INVALID_TRANSACTION_TIMEOUT",
    "RECORD_TOO_LARGE": "MESSAGE_TOO_LARGE",
    "RECORD_BATCH_TOO_LARGE": "RECORD_LIST_TOO_LARGE",
    "MESSAGE_SIZE_TOO_LARGE": "MESSAGE_TOO_LARGE",
    "MSG_SIZE_TOO_LARGE": "MESSAGE_TOO_LARGE",
    "CORRUPT_RECORD": "CORRUPT_MESSAGE",
    "INVALID_MSG": "CORRUPT_MESSAGE",
    "NOT_LEADER_FOR_PARTITION": "NOT_LEADER_OR_FOLLOWER",
    "NETWORK": "NETWORK_EXCEPTION",
    "DISCONNECT": "NETWORK_EXCEPTION",
    "UNKNOWN_SERVER": "UNKNOWN_SERVER_ERROR",
    "UNKNOWN_TOPIC_OR_PART": "UNKNOWN_TOPIC_OR_PARTITION",
    "COORDINATOR_LOAD_IN_PROGRESS": "COORDINATOR_LOAD_IN_PROGRESS",
    "GROUP_LOAD_IN_PROGRESS": "COORDINATOR_LOAD_IN_PROGRESS",
    "GROUP_COORDINATOR_NOT_AVAILABLE": "COORDINATOR_NOT_AVAILABLE",
    "NOT_COORDINATOR_FOR_GROUP": "NOT_COORDINATOR",
    "KAFKA_STORAGE": "KAFKA_STORAGE_ERROR",
    "TOPIC_AUTHORIZATION": "TOPIC_AUTHORIZATION_FAILED",
    "GROUP_AUTHORIZATION": "GROUP_AUTHORIZATION_FAILED",
    "CLUSTER_AUTHORIZATION": "CLUSTER_AUTHORIZATION_FAILED",
    "TRANSACTIONAL_ID_AUTHORIZATION": "TRANSACTIONAL_ID_AUTHORIZATION_FAILED",
    "SASL_AUTHENTICATION": "SASL_AUTHENTICATION_FAILED",
    "AUTHENTICATION": "SASL_AUTHENTICATION_FAILED",
    "AUTHENTICATION_FAILED": "SASL_AUTHENTICATION_FAILED",
    "INVALID_TOPIC": "INVALID_TOPIC_EXCEPTION",
    "TOPIC_EXCEPTION": "INVALID_TOPIC_EXCEPTION",
    "FENCED_INSTANCE": "FENCED_INSTANCE_ID",
    "OFFSET_OUT_OF_RANGE_FOR_PARTITION": "OFFSET_OUT_OF_RANGE",
    "NO_OFFSET_FOR_PARTITIONS": "NO_OFFSET_FOR_PARTITION",
    "THROTTLING_QUOTA": "THROTTLING_QUOTA_EXCEEDED",
    "REQUEST_TIMEOUT": "REQUEST_TIMED_OUT",
    "KAFKA_TIMEOUT": "TIMEOUT",
    "BUFFER_EXHAUSTED": "BUFFER_EXHAUSTED",
    "NO_BROKERS_AVAILABLE": "NO_BROKERS_AVAILABLE",
    "KAFKA_CONNECTION": "NETWORK_EXCEPTION",
    "NODE_NOT_READY": "NETWORK_EXCEPTION",
    "KAFKA_CONFIGURATION": "CONFIG",
    "SSL_AUTHENTICATION": "SASL_AUTHENTICATION_FAILED",
    "ABORTABLE_TRANSACTION": "TRANSACTION_ABORTABLE",
    "UNRELEASED_INSTANCE": "UNRELEASED_INSTANCE_ID",
    "STALE_MEMBER_EPOCH_EXCEPTION": "STALE_MEMBER_EPOCH",
}

# Errors of Kafka's protocol and of librdkafka, by which a word in capitals is known to be one.
CODES: Final = frozenset(
    """
    OFFSET_OUT_OF_RANGE CORRUPT_MESSAGE INVALID_MSG UNKNOWN_TOPIC_OR_PARTITION UNKNOWN_TOPIC_OR_PART
    LEADER_NOT_AVAILABLE NOT_LEADER_OR_FOLLOWER NOT_LEADER_FOR_PARTITION REQUEST_TIMED_OUT BROKER_NOT_AVAILABLE
    REPLICA_NOT_AVAILABLE MESSAGE_TOO_LARGE MSG_SIZE_TOO_LARGE NETWORK_EXCEPTION COORDINATOR_LOAD_IN_PROGRESS
    COORDINATOR_NOT_AVAILABLE NOT_COORDINATOR INVALID_TOPIC_EXCEPTION TOPIC_EXCEPTION RECORD_LIST_TOO_LARGE
    NOT_ENOUGH_REPLICAS NOT_ENOUGH_REPLICAS_AFTER_APPEND INVALID_REQUIRED_ACKS ILLEGAL_GENERATION
    INCONSISTENT_GROUP_PROTOCOL INVALID_GROUP_ID UNKNOWN_MEMBER_ID INVALID_SESSION_TIMEOUT REBALANCE_IN_PROGRESS
    TOPIC_AUTHORIZATION_FAILED GROUP_AUTHORIZATION_FAILED CLUSTER_AUTHORIZATION_FAILED INVALID_TIMESTAMP
    UNSUPPORTED_SASL_MECHANISM ILLEGAL_SASL_STATE UNSUPPORTED_VERSION UNSUPPORTED_FOR_MESSAGE_FORMAT
    OUT_OF_ORDER_SEQUENCE_NUMBER DUPLICATE_SEQUENCE_NUMBER INVALID_PRODUCER_EPOCH INVALID_TXN_STATE
    INVALID_PRODUCER_ID_MAPPING INVALID_TRANSACTION_TIMEOUT CONCURRENT_TRANSACTIONS
    TRANSACTION_COORDINATOR_FENCED TRANSACTIONAL_ID_AUTHORIZATION_FAILED KAFKA_STORAGE_ERROR LOG_DIR_NOT_FOUND
    SASL_AUTHENTICATION_FAILED UNKNOWN_PRODUCER_ID FENCED_LEADER_EPOCH UNKNOWN_LEADER_EPOCH
    UNSUPPORTED_COMPRESSION_TYPE OFFSET_NOT_AVAILABLE MEMBER_ID_REQUIRED GROUP_MAX_SIZE_REACHED
    FENCED_INSTANCE_ID INVALID_RECORD UNSTABLE_OFFSET_COMMIT THROTTLING_QUOTA_EXCEEDED PRODUCER_FENCED
    UNKNOWN_TOPIC_ID INCONSISTENT_TOPIC_ID FENCED_MEMBER_EPOCH UNRELEASED_INSTANCE_ID UNSUPPORTED_ASSIGNOR
    STALE_MEMBER_EPOCH TRANSACTION_ABORTABLE UNKNOWN_SERVER_ERROR OFFSET_METADATA_TOO_LARGE
    INVALID_FETCH_SESSION_EPOCH FETCH_SESSION_ID_NOT_FOUND REBOOTSTRAP_REQUIRED STALE_BROKER_EPOCH
    GROUP_ID_NOT_FOUND NON_EMPTY_GROUP TRANSACTIONAL_ID_NOT_FOUND GROUP_SUBSCRIBED_TO_TOPIC
    _MSG_TIMED_OUT _TIMED_OUT _TIMED_OUT_QUEUE _TRANSPORT _ALL_BROKERS_DOWN _RESOLVE _SSL _AUTHENTICATION
    _QUEUE_FULL _PURGE_QUEUE _PURGE_INFLIGHT _FATAL _STATE _FENCED _MAX_POLL_EXCEEDED _UNKNOWN_PARTITION
    _UNKNOWN_TOPIC _UNKNOWN_BROKER _WAIT_COORD _IN_PROGRESS _PREV_IN_PROGRESS _NO_OFFSET _AUTO_OFFSET_RESET
    _LOG_TRUNCATION _ASSIGNMENT_LOST _GAPLESS_GUARANTEE _INCONSISTENT _INVALID_ARG _NOT_CONFIGURED
    _UNSUPPORTED_FEATURE _KEY_SERIALIZATION _VALUE_SERIALIZATION _KEY_DESERIALIZATION _VALUE_DESERIALIZATION
    _DESTROY _BAD_MSG _BAD_COMPRESSION _CRIT_SYS_RESOURCE _APPLICATION _CONFLICT _OUTDATED _RETRY _NOENT
    _INVALID_DIFFERENT_RECORD _PARTITION_EOF _FAIL _INTR _UNKNOWN_GROUP _ISR_INSUFF _FS _PARTIAL
    """.split()  # noqa: SIM905 - one name a word
)

# Beginnings of librdkafka's texts after "Local: " and "Broker: ", in lower case.
LOCAL: Final = {
    "message timed out": "_MSG_TIMED_OUT",
    "timed out in queue": "_TIMED_OUT_QUEUE",
    "timed out": "_TIMED_OUT",
    "broker transport failure": "_TRANSPORT",
    "communication failure with broker": "_FAIL",
    "host resolution failure": "_RESOLVE",
    "all broker connections are down": "_ALL_BROKERS_DOWN",
    "authentication failure": "_AUTHENTICATION",
    "ssl error": "_SSL",
    "queue full": "_QUEUE_FULL",
    "purged in queue": "_PURGE_QUEUE",
    "purged in flight": "_PURGE_INFLIGHT",
    "fatal error": "_FATAL",
    "erroneous state": "_STATE",
    "this instance has been fenced": "_FENCED",
    "maximum application poll": "_MAX_POLL_EXCEEDED",
    "unknown partition": "_UNKNOWN_PARTITION",
    "unknown topic": "_UNKNOWN_TOPIC",
    "waiting for coordinator": "_WAIT_COORD",
    "previous operation in progress": "_PREV_IN_PROGRESS",
    "operation in progress": "_IN_PROGRESS",
    "no offset stored": "_NO_OFFSET",
    "no offset to automatically reset": "_AUTO_OFFSET_RESET",
    "partition log truncation": "_LOG_TRUNCATION",
    "group partition assignment lost": "_ASSIGNMENT_LOST",
    "gap-less ordering": "_GAPLESS_GUARANTEE",
    "inconsistent state": "_INCONSISTENT",
    "invalid argument or configuration": "_INVALID_ARG",
    "functionality not configured": "_NOT_CONFIGURED",
    "required feature not supported": "_UNSUPPORTED_FEATURE",
    "key serialization error": "_KEY_SERIALIZATION",
    "value serialization error": "_VALUE_SERIALIZATION",
    "key deserialization error": "_KEY_DESERIALIZATION",
    "value deserialization error": "_VALUE_DESERIALIZATION",
    "invalid compressed data": "_BAD_COMPRESSION",
    "bad message format": "_BAD_MSG",
    "critical system resource": "_CRIT_SYS_RESOURCE",
    "broker handle destroyed": "_DESTROY",
    "an invalid record in the same batch": "_INVALID_DIFFERENT_RECORD",
    "operation interrupted": "_INTR",
    "outdated": "_OUTDATED",
    "conflicting use": "_CONFLICT",
    "unknown broker": "_UNKNOWN_BROKER",
    "unknown group": "_UNKNOWN_GROUP",
}
BROKERS: Final = {
    "broker received an out of order sequence": "OUT_OF_ORDER_SEQUENCE_NUMBER",
    "broker received a duplicate sequence": "DUPLICATE_SEQUENCE_NUMBER",
    "producer attempted an operation with an old epoch": "INVALID_PRODUCER_EPOCH",
    "producer attempted a transactional operation in an invalid state": "INVALID_TXN_STATE",
    "producer attempted to use a producer id": "INVALID_PRODUCER_ID_MAPPING",
    "there is a newer producer with the same transactional": "PRODUCER_FENCED",
    "transaction timeout is larger": "INVALID_TRANSACTION_TIMEOUT",
    "producer attempted to update a transaction": "CONCURRENT_TRANSACTIONS",
    "the server encountered an error with the transaction": "TRANSACTION_ABORTABLE",
    "indicates that the transaction coordinator": "TRANSACTION_COORDINATOR_FENCED",
    "transactional id authorization": "TRANSACTIONAL_ID_AUTHORIZATION_FAILED",
    "unknown producer id": "UNKNOWN_PRODUCER_ID",
    "not enough in-sync replicas": "NOT_ENOUGH_REPLICAS",
    "message(s) written to insufficient": "NOT_ENOUGH_REPLICAS_AFTER_APPEND",
    "request timed out": "REQUEST_TIMED_OUT",
    "not leader for partition": "NOT_LEADER_OR_FOLLOWER",
    "leader not available": "LEADER_NOT_AVAILABLE",
    "unknown topic or partition": "UNKNOWN_TOPIC_OR_PARTITION",
    "unknown topic id": "UNKNOWN_TOPIC_ID",
    "message size too large": "MESSAGE_TOO_LARGE",
    "message batch larger": "RECORD_LIST_TOO_LARGE",
    "invalid message": "CORRUPT_MESSAGE",
    "broker failed to validate record": "INVALID_RECORD",
    "topic authorization failed": "TOPIC_AUTHORIZATION_FAILED",
    "group authorization failed": "GROUP_AUTHORIZATION_FAILED",
    "cluster authorization failed": "CLUSTER_AUTHORIZATION_FAILED",
    "sasl authentication failed": "SASL_AUTHENTICATION_FAILED",
    "offset out of range": "OFFSET_OUT_OF_RANGE",
    "specified group generation": "ILLEGAL_GENERATION",
    "unknown member": "UNKNOWN_MEMBER_ID",
    "group rebalance in progress": "REBALANCE_IN_PROGRESS",
    "static consumer fenced": "FENCED_INSTANCE_ID",
    "the member epoch is fenced": "FENCED_MEMBER_EPOCH",
    "the member epoch is stale": "STALE_MEMBER_EPOCH",
    "not coordinator": "NOT_COORDINATOR",
    "coordinator not available": "COORDINATOR_NOT_AVAILABLE",
    "coordinator load in progress": "COORDINATOR_LOAD_IN_PROGRESS",
    "broker disconnected": "NETWORK_EXCEPTION",
    "disk error when trying": "KAFKA_STORAGE_ERROR",
    "leader epoch is older": "FENCED_LEADER_EPOCH",
    "leader epoch is newer": "UNKNOWN_LEADER_EPOCH",
    "there are unstable offsets": "UNSTABLE_OFFSET_COMMIT",
    "consumer group has reached": "GROUP_MAX_SIZE_REACHED",
    "invalid group.id": "INVALID_GROUP_ID",
    "api version not supported": "UNSUPPORTED_VERSION",
    "leader high watermark is not caught up": "OFFSET_NOT_AVAILABLE",
    "invalid timestamp": "INVALID_TIMESTAMP",
    "group member needs a valid member": "MEMBER_ID_REQUIRED",
    "inconsistent group protocol": "INCONSISTENT_GROUP_PROTOCOL",
}


@lru_cache(maxsize=2000)
def name_of_class(simple: str) -> str:
    """Return the error's name for a class, without its package: ProducerFencedException is PRODUCER_FENCED."""
    return canonical(_HUMPS.sub("_", _ENDING.sub("", simple)).upper())


def canonical(name: str) -> str:
    """Return Kafka's present name for an error's name of any client and age."""
    return ALIASES.get(name, name)


def name_of_text(text: str, *, is_local: bool) -> str | None:
    """Return the error of a text of librdkafka after "Local: " or "Broker: "; None: not a known one."""
    begin = text.lstrip().lower()[:80]
    table = LOCAL if is_local else BROKERS
    return next((name for words, name in table.items() if begin.startswith(words)), None)
