"""Errors of sending records: time limits, sizes, buffers, replicas.

A retriable error that reaches the application is final: the client has tried until delivery.timeout.ms. Source:
`Sender` and `KafkaProducer` of Kafka 2.5 to 4.4, `rdkafka_request.c` of librdkafka 2.16, kafka-verified runs on 4.1.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from rules.exceptions.meaning import (
    ABORT,
    BOTH_RETRIABLE,
    FAILS,
    FAILS_OR_ABORT,
    FATAL,
    RETRIABLE,
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
from rules.exceptions.transaction_calls import (
    ABORT_TIMED_OUT,
    COMMIT_TIMEOUTS,
    INIT_TIMED_OUT,
    OFFSETS_TIMED_OUT,
)
from rules.facts.application_log import Operation, Outcome, Part

_P: Final = Part.PRODUCER
_FATE: Final = (
    "Lost if it was never written and nobody sends it again; duplicated if it was written and the "
    "application sends it again."
)
_ABORTED: Final = (
    "An aborted transaction is not visible to read_committed; process its input again."
)

EXPIRED: Final = Meaning(
    id="batch_expired",
    title="records were not acknowledged within delivery.timeout.ms, and were given up",
    explanation=(
        "The client's own retries are over, so it is final although the class is a retriable one. Whether "
        "a leader wrote the records is not known."
    ),
    java=FAILS_OR_ABORT,
    records=Records.UNKNOWN,
    condition=_FATE,
    in_transaction=Records.NEITHER,
    condition_in_transaction=_ABORTED,
    action="Mend the connection or the leader. Send again only if duplicates do no harm; in a transaction, abort and begin again.",
    check="The leader and the in-sync replicas of the partition at that time; whether the records are in the log.",
    next=(Next.PARTITION, Next.LOSS),
    part=_P,
)
NO_METADATA: Final = Meaning(
    id="metadata_timed_out",
    title="send() found no metadata of the topic within max.block.ms",
    explanation="The topic does not exist, may not be described, or no broker can be reached. Nothing was sent.",
    java=FAILS_OR_ABORT,
    records=Records.NEITHER,
    condition="The record never left the client: sending again cannot duplicate it. It is lost only if the application drops it.",
    action="Create the topic, grant DESCRIBE, or mend bootstrap.servers; send again. In a transaction, abort first.",
    check="Whether the topic exists, the permission, and the addresses.",
    next=(Next.TOPIC, Next.CONNECTION),
    part=_P,
)
NO_BUFFER: Final = Meaning(
    id="buffer_exhausted",
    title="the producer's buffer stayed full: the record was not accepted",
    explanation="Records come faster than brokers take them, for longer than max.block.ms.",
    java=FAILS_OR_ABORT,
    records=Records.LOST,
    condition="Only if the application drops the record; it was never sent, so sending again cannot duplicate it.",
    action="Slow down or wait, then send again; find out why brokers are slow.",
    check="buffer.memory (librdkafka: queue.buffering.max.messages), and the leaders of the topic.",
    next=(Next.PARTITION,),
    part=_P,
)
NO_BUFFER_OLD: Final = replace(
    NO_BUFFER,
    id="buffer_exhausted_old_client",
    explanation=(
        "Records come faster than brokers take them, for longer than max.block.ms. Clients before 2.6 say "
        "so, and an open transaction is not marked as failed by it."
    ),
    java=(FAILS, FAILS),
    condition="Only if the application drops the record: a commit would succeed without it. It was never sent, so sending again cannot duplicate it.",
)
NO_SUCH_PARTITION: Final = Meaning(
    id="no_such_partition",
    title="the application sends to a partition that the topic does not have",
    explanation="The topic has fewer partitions than the number of the record's. Nothing was sent.",
    java=FAILS_OR_ABORT,
    records=Records.NEITHER,
    condition="The record never left the client: sending again cannot duplicate it. It is lost only if the application drops it.",
    action="Mend the partition number or the partitioner, or add partitions; send again. In a transaction, abort first.",
    check="The topic's number of partitions; whether the topic was created anew with fewer.",
    next=(Next.TOPIC,),
    part=_P,
)
TOO_LARGE: Final = Meaning(
    id="record_too_large",
    title="a record is larger than allowed",
    explanation="Above the producer's max.request.size (it was not sent), or above the topic's max.message.bytes (it was rejected).",
    java=FAILS_OR_ABORT,
    records=Records.LOST,
    condition="This record only, if the application goes on without it; it was not written, so nothing is duplicated.",
    action="Make the record smaller, or raise both limits. Sending it again unchanged fails again.",
    check="max.request.size and the topic's max.message.bytes.",
    next=(Next.TOPIC,),
    part=_P,
)
REJECTED: Final = Meaning(
    id="record_rejected",
    title="the broker rejected the record for what it contains",
    explanation="No key on a compacted topic, a timestamp out of range, damage on the way, or a rule of the broker.",
    java=FAILS_OR_ABORT,
    records=Records.LOST,
    condition="This record only, if the application goes on without it; it was not written.",
    action="Mend the record; sending it again unchanged fails again. Damage on the way is retried by the client.",
    check="The topic's cleanup.policy and message.timestamp settings.",
    next=(Next.TOPIC,),
    part=_P,
)
SERIALIZATION: Final = Meaning(
    id="serialization_failed",
    title="the record could not be serialized: it never reached the producer",
    explanation="The value or key does not fit the serializer. An open transaction is not marked as failed by it.",
    java=(FAILS, FAILS),
    records=Records.LOST,
    condition="This record, if the code goes on: a commit would succeed without it.",
    action="Mend the data or the serializer; abort the transaction if the record belongs to it.",
    check="key.serializer, value.serializer and the schema.",
    part=_P,
)
NOT_ENOUGH_REPLICAS: Final = Meaning(
    id="not_enough_replicas",
    title="fewer replicas are in sync than min.insync.replicas",
    explanation="The leader rejects writes with acks=all. Clients try again until delivery.timeout.ms.",
    java=FAILS_OR_ABORT,
    broker=BOTH_RETRIABLE,
    records=Records.UNKNOWN,
    condition="The last attempt wrote nothing, an earlier one may have. " + _FATE,
    in_transaction=Records.NEITHER,
    condition_in_transaction=_ABORTED,
    action="Bring the brokers back that hold the other replicas.",
    check="The in-sync replicas of the partition, and which brokers are down.",
    next=(Next.PARTITION,),
    part=_P,
)
AFTER_APPEND: Final = Meaning(
    id="not_enough_replicas_after_append",
    title="records were written, but to fewer replicas than min.insync.replicas",
    explanation="The leader has them; the in-sync replicas became too few meanwhile.",
    java=FAILS_OR_ABORT,
    broker=BOTH_RETRIABLE,
    records=Records.UNKNOWN,
    condition="Lost if that leader fails before they are replicated; duplicated if the application sends them again.",
    in_transaction=Records.NEITHER,
    condition_in_transaction=_ABORTED,
    action="Bring the other replicas back before anything else; do not restart the leader. Send again only if duplicates do no harm.",
    check="The in-sync replicas of the partition.",
    next=(Next.PARTITION, Next.LOSS),
    part=_P,
)
VERIFICATION: Final = Meaning(
    id="transaction_not_verified",
    title="a leader could not ask the transaction coordinator about this write",
    explanation="NOT_ENOUGH_REPLICAS stands for it because clients retry that; replicas are not the reason.",
    java=(None, ABORT),
    broker=(None, RETRIABLE),
    records=Records.NEITHER,
    condition="Nothing was written by this attempt.",
    action="Wait for the coordinator; see the underlying error.",
    check="The coordinator of the transactional id, and __transaction_state.",
    next=(Next.TRANSACTION,),
    part=_P,
)
PURGED: Final = Meaning(
    id="purged",
    title="queued records were dropped by an abort or a purge",
    explanation="A consequence of abort_transaction() or purge(): search for what led to it.",
    java=FAILS_OR_ABORT,
    records=Records.NEITHER,
    condition="In an aborted transaction; lost if purge() was called outside of one.",
    action="Find the first error before it, and treat that one.",
    check="The lines of the same client before this one.",
    role=Role.CONSEQUENCE,
    part=_P,
)
PURGED_IN_FLIGHT: Final = Meaning(
    id="purged_in_flight",
    title="sent records were dropped before they were answered",
    explanation="A consequence of an abort, a purge or a close: the broker may have written them.",
    java=FAILS_OR_ABORT,
    records=Records.UNKNOWN,
    condition=_FATE,
    in_transaction=Records.NEITHER,
    condition_in_transaction=_ABORTED,
    action="Find the first error before it, and treat that one.",
    check="The lines of the same client before this one.",
    role=Role.CONSEQUENCE,
    part=_P,
)
FATAL_ECHO: Final = Meaning(
    id="fatal_echo",
    title="the instance had a fatal error before; this call only repeats that",
    explanation="The first fatal error is the reason; every call fails since.",
    java=(FATAL, FATAL),
    records=Records.UNKNOWN,
    condition="It depends on the first error; this record was not accepted.",
    action="Find the first fatal error; close the instance and start a new one.",
    check="The FATAL line of the same client before this one.",
    role=Role.CONSEQUENCE,
)
WRONG_STATE: Final = Meaning(
    id="erroneous_state",
    title="the call does not fit the state of the client",
    explanation="Mostly the transaction had failed before; librdkafka before 1.6 reports so, too.",
    java=(None, ABORT),
    records=Records.NEITHER,
    condition="The call did nothing; the transaction is not committed.",
    action="Abort the transaction, and find the first error before it.",
    check="The lines of the same client before this one.",
    role=Role.CONSEQUENCE,
)
CLOSED: Final = Meaning(
    id="producer_closed",
    title="the producer was closed while records or calls were waiting",
    explanation="A close() came, by the application or after a fatal error, before they were answered.",
    java=(FATAL, FATAL),
    records=Records.UNKNOWN,
    condition=_FATE,
    in_transaction=Records.NEITHER,
    condition_in_transaction="A transaction that was not committed is aborted by its coordinator; process its input again.",
    action="Find out who closed it: close() after flush() or a commit, with a time limit that is long enough.",
    check="The lines of the same client before this one.",
    role=Role.CONSEQUENCE,
    part=_P,
)
GAPLESS: Final = Meaning(
    id="gapless_guarantee",
    title="librdkafka stopped because a record failed and order was to have no gap",
    explanation="A record could not be delivered, and enable.gapless.guarantee is set.",
    java=(FATAL, FATAL),
    records=Records.UNKNOWN,
    condition=_FATE,
    action="Close the producer, find the record that failed first, start a new one.",
    check="The first delivery report with an error.",
    part=_P,
)
UNRESOLVED: Final = Meaning(
    id="batches_unresolved",
    title="sent batches were given up before they were answered; abort the transaction",
    explanation=(
        "They reached delivery.timeout.ms, so the client does not know the next sequence of the leader. It "
        "gets a new epoch with the abort."
    ),
    java=(None, ABORT),
    records=Records.NEITHER,
    condition=_ABORTED,
    action="Abort the transaction, go back to the last committed offsets, begin again with the same producer.",
    check="'Expiring ... record(s)' of the same client just before; the leader and its load at that time.",
    next=(Next.TRANSACTION, Next.PARTITION),
    part=_P,
)
UNRESOLVED_FATAL: Final = replace(
    UNRESOLVED,
    id="batches_unresolved_fatal",
    title="sent batches were given up before they were answered; the producer is finished",
    explanation=(
        "They reached delivery.timeout.ms, so the client does not know the next sequence of the leader, and "
        "with this client or these brokers it cannot get a new epoch."
    ),
    java=(None, FATAL),
    action="Close the producer, start a new one, and read the input again from the last committed offsets.",
)
DELIVERIES_FAILED: Final = Meaning(
    id="deliveries_failed",
    title="a transaction cannot be committed, because some of its records failed",
    explanation="The delivery reports of these records have the reason.",
    java=(None, ABORT),
    records=Records.NEITHER,
    condition=_ABORTED,
    action="Abort the transaction, and find the first delivery report with an error.",
    check="The delivery reports of the same instance before this line.",
    role=Role.CONSEQUENCE,
    part=_P,
)
INCONSISTENT: Final = Meaning(
    id="inconsistent_state",
    title="librdkafka cannot guarantee the order of its records any more",
    explanation=(
        "Mostly it could not put a batch together again for its retry, because some of its records had "
        "timed out meanwhile. No broker is the reason."
    ),
    java=FAILS_OR_ABORT,
    records=Records.UNKNOWN,
    condition=_FATE,
    in_transaction=Records.NEITHER,
    condition_in_transaction=_ABORTED,
    action="Look which of its last records are in the log before any is sent again; upgrade librdkafka if it repeats.",
    check="Records that timed out before (message.timeout.ms), and the release of librdkafka.",
    next=(Next.PARTITION,),
    part=_P,
)
IN_THE_BATCH: Final = Meaning(
    id="batch_of_a_bad_record",
    title="another record of the same batch was rejected",
    explanation="The whole batch failed; this record itself is in order.",
    java=FAILS_OR_ABORT,
    records=Records.LOST,
    condition="If the application does not send it again; nothing of the batch was written.",
    action="Send it again without the bad one.",
    check="The delivery report with INVALID_RECORD.",
    role=Role.CONSEQUENCE,
    part=_P,
)
BROKER_TIMED_OUT: Final = Meaning(
    id="request_timed_out",
    title="replicas did not confirm a write in time",
    explanation="The leader has the records; the in-sync replicas did not fetch them within request.timeout.ms.",
    java=FAILS_OR_ABORT,
    broker=BOTH_RETRIABLE,
    records=Records.UNKNOWN,
    condition=_FATE,
    in_transaction=Records.NEITHER,
    condition_in_transaction=_ABORTED,
    action="Find the follower that is slow. Send again only if duplicates do no harm.",
    check="The in-sync replicas of the partition.",
    next=(Next.PARTITION,),
)

_EXPIRY: Final = (Operation.BATCH_EXPIRED, Operation.PRODUCE, Operation.FLUSH)
PRODUCER_TIMEOUTS: Final = (
    when(EXPIRED, Operation.BATCH_EXPIRED),
    when(NO_METADATA, Operation.SEND_METADATA),
    when(NO_BUFFER_OLD, Operation.SEND_BUFFER),
    *COMMIT_TIMEOUTS,
    when(ABORT_TIMED_OUT, Operation.ABORT),
    when(INIT_TIMED_OUT, Operation.INIT_PRODUCER_ID),
    when(
        OFFSETS_TIMED_OUT,
        Operation.ADD_OFFSETS,
        Operation.TXN_OFFSET_COMMIT,
        Operation.ADD_PARTITIONS,
    ),
    when(EXPIRED, *_EXPIRY),
)
PRODUCING: Final[Table] = table(
    (("_MSG_TIMED_OUT", "_TIMED_OUT_QUEUE"), always(EXPIRED)),
    (("_NO_SUCH_PARTITION",), always(NO_SUCH_PARTITION)),
    (("BUFFER_EXHAUSTED", "_QUEUE_FULL"), always(NO_BUFFER)),
    (("MESSAGE_TOO_LARGE", "RECORD_LIST_TOO_LARGE"), always(TOO_LARGE)),
    (("INVALID_RECORD", "INVALID_TIMESTAMP"), always(REJECTED)),
    (("_KEY_SERIALIZATION", "_VALUE_SERIALIZATION"), always(SERIALIZATION)),
    (("NOT_ENOUGH_REPLICAS", "_ISR_INSUFF"), always(NOT_ENOUGH_REPLICAS)),
    (("NOT_ENOUGH_REPLICAS_AFTER_APPEND",), always(AFTER_APPEND)),
    (("_VERIFICATION_FAILED",), always(VERIFICATION)),
    (("_PURGE_QUEUE",), always(PURGED)),
    (("_PURGE_INFLIGHT",), always(PURGED_IN_FLIGHT)),
    (("_FATAL",), always(FATAL_ECHO)),
    (("_STATE", "_PREV_IN_PROGRESS", "_CONFLICT"), always(WRONG_STATE)),
    (("_CLOSED", "_FORCE_CLOSED", "_DESTROY"), always(CLOSED)),
    (
        ("_BATCHES_UNRESOLVED",),
        (
            Case(meaning=UNRESOLVED_FATAL, outcome=Outcome.FATAL),
            *always(UNRESOLVED),
        ),
    ),
    (("_DELIVERIES_FAILED",), always(DELIVERIES_FAILED)),
    (("_GAPLESS_GUARANTEE",), always(GAPLESS)),
    (("_INCONSISTENT",), always(INCONSISTENT)),
    (("_INVALID_DIFFERENT_RECORD",), always(IN_THE_BATCH)),
    (("REQUEST_TIMED_OUT",), always(BROKER_TIMED_OUT)),
)
