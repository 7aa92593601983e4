"""Errors that any client may get: leaders that moved, coordinators, connections, permissions, versions."""

from __future__ import annotations

from typing import Final

from rules.exceptions.meaning import (
    ABORT,
    BOTH_RETRIABLE,
    FAILS,
    FAILS_OR_ABORT,
    FATAL,
    NOBODY,
    Case,
    Meaning,
    Next,
    Records,
    Role,
    Table,
    always,
    table,
    when,
)
from rules.exceptions.transaction_calls import COMMIT_INTERRUPTED, COMMIT_REFUSED, ENDING
from rules.facts.application_log import Operation, Part

_FATE: Final = (
    "Lost if the request did not arrive and nobody sends again; duplicated if it did and the application "
    "sends the records again."
)
_ABORTED: Final = (
    "An aborted transaction is not visible to read_committed; process its input again."
)

LEADER_MOVED: Final = Meaning(
    id="leader_moved",
    title="the partition has another leader now, or none for a while",
    explanation="Clients refresh their metadata and try again; it is ordinary in a failover or a restart.",
    java=FAILS_OR_ABORT,
    broker=BOTH_RETRIABLE,
    records=Records.UNKNOWN,
    condition="The client's own retries are over. " + _FATE,
    in_transaction=Records.NEITHER,
    condition_in_transaction=_ABORTED,
    action="Nothing while clients retry. If it lasts, find out why the partition has no leader.",
    check="The leader and the in-sync replicas of the partition.",
    next=(Next.PARTITION,),
)
LEADER_MOVED_FOR_READERS: Final = Meaning(
    id="leader_moved_for_readers",
    title="the partition has another leader now, or none for a while",
    explanation="Consumers find the new leader by themselves.",
    java=NOBODY,
    records=Records.NEITHER,
    condition="Reading goes on at the new leader.",
    action="Nothing. If it lasts, find out why the partition has no leader.",
    check="The leader of the partition.",
    next=(Next.PARTITION,),
    role=Role.HARMLESS,
)
NO_TOPIC: Final = Meaning(
    id="unknown_topic",
    title="the broker does not know the topic or the partition",
    explanation="It does not exist, was just created or deleted, or may not be described.",
    java=FAILS_OR_ABORT,
    broker=BOTH_RETRIABLE,
    records=Records.NEITHER,
    condition="Nothing was written there. If the topic was deleted and created again, what it held is gone.",
    action="Create the topic or mend its name; just after its creation wait a few seconds.",
    check="Whether the topic exists, and since when.",
    next=(Next.TOPIC,),
)
DISCONNECTED: Final = Meaning(
    id="disconnected",
    title="the connection broke before an answer came",
    explanation="Whether the broker did what was requested is not known. With idempotence the client's retry is safe.",
    java=FAILS_OR_ABORT,
    records=Records.UNKNOWN,
    condition="The client's own retries are over. " + _FATE,
    in_transaction=Records.NEITHER,
    condition_in_transaction=_ABORTED,
    action="Nothing while clients retry. Else find out why the broker or the network broke off.",
    check="Restarts of that broker, limits of idle connections, load balancers.",
    next=(Next.CONNECTION,),
)
NOT_CONNECTED: Final = Meaning(
    id="not_connected",
    title="no connection to a broker",
    explanation="Nothing listens at the address, its name cannot be resolved, or it expects another protocol.",
    java=BOTH_RETRIABLE,
    records=Records.NEITHER,
    condition="Nothing is sent meanwhile; records that wait longer than delivery.timeout.ms are given up.",
    action="Start the broker, or mend bootstrap.servers, advertised.listeners or security.protocol.",
    check="The address from the client's machine; the protocol of that listener.",
    next=(Next.CONNECTION,),
)
TIMED_OUT: Final = Meaning(
    id="request_not_answered",
    title="a request was not answered in time",
    explanation="The broker is overloaded, stopped or unreachable; the text does not say more.",
    java=FAILS_OR_ABORT,
    records=Records.UNKNOWN,
    condition="If it was a write: " + _FATE[0].lower() + _FATE[1:],
    in_transaction=Records.NEITHER,
    condition_in_transaction=_ABORTED,
    action="Find out which broker did not answer, and why.",
    check="The brokers' load at that time, long pauses, the network.",
    next=(Next.CONNECTION,),
)
READ_TIMED_OUT: Final = Meaning(
    id="metadata_request_timed_out",
    title="brokers did not answer a question about metadata in time",
    explanation="An administrative or metadata request timed out. Nothing was written or read by it.",
    java=BOTH_RETRIABLE,
    records=Records.NEITHER,
    condition="It moves no record.",
    action="Try again; mend the address or the brokers if it stays so.",
    check="bootstrap.servers, and whether brokers answer.",
    next=(Next.CONNECTION,),
)
COORDINATOR: Final = Meaning(
    id="coordinator_unavailable",
    title="the coordinator moved, is loading, or is not available",
    explanation="Clients search for it again by themselves. It lasts only if __consumer_offsets or __transaction_state has no leader.",
    java=BOTH_RETRIABLE,
    records=Records.NEITHER,
    condition="Nothing was changed by this request.",
    action="Nothing if it ends by itself; else mend the internal topic's leader or replicas.",
    check="Leaders and in-sync replicas of __consumer_offsets and __transaction_state.",
    next=(Next.PARTITION, Next.CONNECTION),
    role=Role.HARMLESS,
)
TOPIC_DENIED: Final = Meaning(
    id="topic_denied",
    title="no permission for the topic",
    explanation="The principal needs WRITE to produce, READ to consume, DESCRIBE to see it.",
    java=FAILS_OR_ABORT,
    records=Records.NEITHER,
    condition="Nothing was written; records are lost only if the application drops them.",
    action="Grant the permission; then send again, or abort and begin again.",
    check="The ACLs of the topic.",
    next=(Next.ACLS_OF_TOPIC,),
)
GROUP_DENIED: Final = Meaning(
    id="group_denied",
    title="no permission for the consumer group",
    explanation="The principal needs READ on the group, also a transactional producer that adds the group's offsets.",
    java=(None, ABORT),
    records=Records.NEITHER,
    condition="Nothing was committed.",
    action="Grant READ on the group; a transactional producer aborts and begins again.",
    check="The ACLs of the group.",
    next=(Next.ACLS_OF_GROUP,),
)
CLUSTER_DENIED: Final = Meaning(
    id="cluster_denied",
    title="no permission on the cluster",
    explanation="An idempotent producer needs IDEMPOTENT_WRITE with brokers before 2.8, or WRITE on any topic.",
    java=(FATAL, FATAL),
    records=Records.LOST,
    condition="Buffered records were never written; lost unless the application sends them again.",
    action="Grant the permission, start the producer again, send the records again.",
    check="The ACLs of the principal on the cluster.",
    next=(Next.ACLS_OF_TOPIC,),
)
NOT_AUTHENTICATED: Final = Meaning(
    id="authentication_failed",
    title="the broker does not accept who the client says it is",
    explanation="Wrong credentials, an expired certificate, or another mechanism than the listener's.",
    java=(FAILS, FATAL),
    records=Records.NEITHER,
    condition="Nothing was sent; records are lost only if the application drops them.",
    action="Mend the credentials or sasl.mechanism, ssl.* of the client; start it again.",
    check="The broker's log at that time, which says why.",
    next=(Next.CONNECTION,),
)
STORAGE: Final = Meaning(
    id="storage_error",
    title="a disk of a broker failed",
    explanation="Its log directory is offline or full; its partitions get other leaders, and clients retry there.",
    java=FAILS_OR_ABORT,
    broker=BOTH_RETRIABLE,
    records=Records.UNKNOWN,
    condition="Neither if another in-sync replica takes over; lost for partitions whose only in-sync replica was there.",
    while_retried=Records.UNKNOWN,
    action="Mend the disk before anybody elects uncleanly; keep its contents.",
    check="The broker's log: 'No space left on device', 'Stopping serving replicas'; in-sync replicas.",
    next=(Next.PARTITION, Next.LOSS),
)
OLD_BROKER: Final = Meaning(
    id="unsupported_version",
    title="the brokers are too old for what the client requests",
    explanation="A feature, as exactly_once_v2, needs newer brokers, or a newer format of messages.",
    java=(FAILS, FATAL),
    records=Records.NEITHER,
    condition="Nothing was done.",
    action="Upgrade the brokers, or choose a setting that they know.",
    check="The brokers' release; inter.broker.protocol.version, log.message.format.version.",
    next=(Next.CONNECTION,),
)
SETTINGS: Final = Meaning(
    id="wrong_settings",
    title="the settings of a client are wrong",
    explanation="The client does not start, or rejects the call.",
    java=(FATAL, FATAL),
    records=Records.NEITHER,
    condition="Nothing was sent.",
    action="Mend the setting that the message names.",
    check="The client's settings.",
)
UNKNOWN_AT_SERVER: Final = Meaning(
    id="unknown_server_error",
    title="the broker failed with an error of its own",
    explanation="The answer has no reason; the broker's log has it, with a stack trace.",
    java=FAILS_OR_ABORT,
    records=Records.UNKNOWN,
    condition="If it was a write: " + _FATE[0].lower() + _FATE[1:],
    in_transaction=Records.NEITHER,
    condition_in_transaction=_ABORTED,
    action="Read the broker's log of that time.",
    check="The stack trace in the log of the broker that answered.",
    next=(Next.PARTITION,),
)
QUOTA: Final = Meaning(
    id="quota_exceeded",
    title="a quota is exceeded",
    explanation="Brokers delay or reject requests of this principal or client id.",
    java=BOTH_RETRIABLE,
    records=Records.NEITHER,
    condition="Nothing is lost; it is slower.",
    action="Slow down, or raise the quota.",
    check="The quotas of the principal and the client id.",
)
INTERRUPTED: Final = Meaning(
    id="interrupted",
    title="the application interrupted or woke up the call",
    explanation="By wakeup() or an interrupt, mostly while it shuts down.",
    java=FAILS_OR_ABORT,
    records=Records.UNKNOWN,
    condition=_FATE,
    in_transaction=Records.NEITHER,
    condition_in_transaction=_ABORTED,
    action="Nothing if it was a shutdown: flush or commit before closing.",
    check="Why the application stopped.",
)
BARE: Final = Meaning(
    id="kafka_exception",
    title="an error of Kafka whose cause is not in the text",
    explanation="The class alone says nothing; its message or its 'Caused by' is missing or not known.",
    java=FAILS_OR_ABORT,
    records=Records.UNKNOWN,
    condition="It depends on the cause.",
    action="Find the whole stack trace, with its causes.",
    check="The lines before and after it.",
    role=Role.CONSEQUENCE,
)

_READING: Final = frozenset({
    Operation.FETCH, Operation.POLL, Operation.POSITION, Operation.LIST_OFFSETS, Operation.OFFSET_FETCH,
})  # fmt: skip
_MOVED: Final = (
    Case(meaning=LEADER_MOVED_FOR_READERS, operations=_READING),
    Case(meaning=LEADER_MOVED_FOR_READERS, part=Part.CONSUMER),
    *always(LEADER_MOVED),
)
OTHER_TIMEOUTS: Final = (
    when(READ_TIMED_OUT, Operation.METADATA, Operation.ADMIN, Operation.CONNECT),
    Case(meaning=READ_TIMED_OUT, part=Part.ADMIN),
    Case(meaning=READ_TIMED_OUT, part=Part.CONSUMER),
    *always(TIMED_OUT),
)
CONNECTING: Final[Table] = table(
    (("NOT_LEADER_OR_FOLLOWER", "LEADER_NOT_AVAILABLE", "REPLICA_NOT_AVAILABLE", "FENCED_LEADER_EPOCH",
      "UNKNOWN_LEADER_EPOCH", "OFFSET_NOT_AVAILABLE", "BROKER_NOT_AVAILABLE", "INCONSISTENT_TOPIC_ID"), _MOVED),
    (("UNKNOWN_TOPIC_OR_PARTITION", "UNKNOWN_TOPIC_ID", "_UNKNOWN_TOPIC", "_UNKNOWN_PARTITION", "INVALID_TOPIC_EXCEPTION"), always(NO_TOPIC)),
    (("_REQUEST_TIMED_OUT",), always(TIMED_OUT)),
    (("NETWORK_EXCEPTION", "_FAIL"), always(DISCONNECTED)),
    (("_TRANSPORT", "_ALL_BROKERS_DOWN", "_RESOLVE", "_NOT_CONNECTED", "NO_BROKERS_AVAILABLE", "_SSL",
      "BOOTSTRAP_RESOLUTION", "REBOOTSTRAP_REQUIRED"), always(NOT_CONNECTED)),
    (("COORDINATOR_NOT_AVAILABLE", "NOT_COORDINATOR", "COORDINATOR_LOAD_IN_PROGRESS", "_WAIT_COORD", "_IN_PROGRESS"), always(COORDINATOR)),
    (("TOPIC_AUTHORIZATION_FAILED", "AUTHORIZATION"), always(TOPIC_DENIED)),
    (("GROUP_AUTHORIZATION_FAILED",), always(GROUP_DENIED)),
    (("CLUSTER_AUTHORIZATION_FAILED",), always(CLUSTER_DENIED)),
    (("SASL_AUTHENTICATION_FAILED", "_AUTHENTICATION", "UNSUPPORTED_SASL_MECHANISM", "ILLEGAL_SASL_STATE"), always(NOT_AUTHENTICATED)),
    (("KAFKA_STORAGE_ERROR", "LOG_DIR_NOT_FOUND", "_DISK_FAILED"), always(STORAGE)),
    (("UNSUPPORTED_VERSION", "UNSUPPORTED_FOR_MESSAGE_FORMAT", "UNSUPPORTED_COMPRESSION_TYPE", "_UNSUPPORTED_FEATURE"), always(OLD_BROKER)),
    (("CONFIG", "INVALID_REQUIRED_ACKS", "_INVALID_ARG", "_NOT_CONFIGURED", "INVALID_CONFIGURATION"), always(SETTINGS)),
    (("UNKNOWN_SERVER_ERROR",), (when(COMMIT_REFUSED, *ENDING), *always(UNKNOWN_AT_SERVER))),
    (("THROTTLING_QUOTA_EXCEEDED",), always(QUOTA)),
    (("INTERRUPT", "WAKEUP", "_INTR"), (when(COMMIT_INTERRUPTED, *ENDING), *always(INTERRUPTED))),
    (("KAFKA", "RETRIABLE"), always(BARE)),
)  # fmt: skip
