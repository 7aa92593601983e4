"""Errors of transactions and of a producer's identity: fencing, epochs, states, the coordinator's answers.

Source: `TransactionManager` of Kafka 2.5 to 4.4 (KIP-360, KIP-588, KIP-890, KIP-1050), `rdkafka_txnmgr.c` of 2.16.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from rules.exceptions.meaning import (
    ABORT,
    FAILS,
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
from rules.facts.application_log import Client, Framework, Operation, Outcome, Part

_FROM_COORDINATOR: Final = (
    Operation.END_TXN, Operation.COMMIT, Operation.ADD_PARTITIONS, Operation.ADD_OFFSETS,
)  # fmt: skip
_P: Final = Part.PRODUCER

FENCED: Final = Meaning(
    id="producer_fenced",
    title="another producer took over this transactional id, or its transaction timed out",
    explanation=(
        "The coordinator has a newer epoch for the transactional id: a second instance was started with "
        "it, or the coordinator aborted the transaction after transaction.timeout.ms."
    ),
    java=(None, FATAL),
    records=Records.NEITHER,
    condition=(
        "The open transaction is aborted. Records are lost only if the application does not process "
        "its input again from the last committed offsets."
    ),
    action="Close this producer and do not abort; start a new one, and read the input again from the last committed offsets.",
    check=(
        "The coordinator's log: 'Initialized transactionalId' is a second instance, 'Completed rollback "
        "... due to timeout' is a transaction that took too long."
    ),
    next=(Next.TRANSACTION, Next.TRANSACTION_LOG),
    part=_P,
)
OLD_EPOCH: Final = Meaning(
    id="invalid_producer_epoch",
    title="a write with an older producer epoch was rejected",
    explanation=(
        "The leader has seen a newer epoch of this producer. Of a plain idempotent producer it is a late "
        "request from before it raised its own epoch; of a transactional one, its transaction was "
        "aborted by the coordinator, or another instance took over."
    ),
    java=(FAILS, ABORT),
    librdkafka=(FAILS, FATAL),
    records=Records.NEITHER,
    condition=(
        "A late request of the old epoch is rejected, and its records were failed before or sent again "
        "under the new one. A transaction is not committed."
    ),
    action="Transactional: abort; if the abort fails as fenced, close the producer. Plain idempotent: nothing.",
    check=(
        "For a transactional producer: 'Completed rollback ... due to timeout' or a second 'Initialized "
        "transactionalId' in the coordinator's log."
    ),
    next=(Next.TRANSACTION,),
    part=_P,
)
OLD_EPOCH_FATAL: Final = replace(
    OLD_EPOCH,
    id="invalid_producer_epoch_fatal",
    title="a producer with an older epoch was rejected, and is finished",
    java=(FATAL, FATAL),
    librdkafka=None,
    action="Close this producer and do not abort; start a new one, and read the input again from the last committed offsets.",
    next=(Next.TRANSACTION, Next.TRANSACTION_LOG),
)
OLD_EPOCH_OF_STREAMS: Final = replace(
    OLD_EPOCH,
    id="invalid_producer_epoch_in_streams",
    title="an older epoch of a producer of Kafka Streams, which begins its tasks again",
    java=(FAILS, FATAL),
    librdkafka=None,
    condition="A transaction is aborted, and Streams reads its input again from the committed offsets.",
    action=(
        "Nothing if it stays single: Streams starts a new producer. If it repeats: transaction.timeout.ms "
        "(10 s in Streams), max.poll.interval.ms, long pauses."
    ),
)
OLD_EPOCH_AT_COORDINATOR: Final = Meaning(
    id="invalid_producer_epoch_at_coordinator",
    title="the coordinator rejected an older producer epoch",
    explanation=(
        "A request about the transaction had an older epoch than the coordinator's: the transaction "
        "timed out there, or another instance took over."
    ),
    java=(None, FATAL),
    records=Records.NEITHER,
    condition="The transaction is aborted. Records are lost only if the application does not process its input again.",
    action="Close the producer, start a new one, and read the input again from the last committed offsets.",
    check="The coordinator's log: 'due to timeout', or a second 'Initialized transactionalId'.",
    next=(Next.TRANSACTION, Next.TRANSACTION_LOG),
    part=_P,
)
STATE_AT_LEADER: Final = Meaning(
    id="invalid_txn_state_at_leader",
    title="a leader found no open transaction for this write",
    explanation=(
        "The leader asked the coordinator (KIP-890), and the transaction is not open or does not hold "
        "this partition: it was aborted after its timeout, or the request is a late one."
    ),
    java=(None, ABORT),
    records=Records.NEITHER,
    condition="The record was not written, and the transaction has to be aborted; process the input again.",
    action="Abort the transaction, go back to the last committed offsets, begin again.",
    check="'Completed rollback ... due to timeout' for this id in the coordinator's log.",
    next=(Next.TRANSACTION,),
    part=_P,
)
STATE_AT_ABORT: Final = Meaning(
    id="invalid_txn_state_at_abort",
    title="the coordinator has no open transaction that could be aborted",
    explanation="It was aborted before, mostly by the coordinator after its timeout. The client gives the instance up.",
    java=(None, FATAL),
    records=Records.NEITHER,
    condition="The transaction is not committed. Records are lost only if the application does not process its input again.",
    action="Close the producer, start a new one, and read the input again from the last committed offsets.",
    check="'Completed rollback ... due to timeout' for this id in the coordinator's log.",
    next=(Next.TRANSACTION, Next.TRANSACTION_LOG),
    part=_P,
)
STATE_AT_COORDINATOR: Final = Meaning(
    id="invalid_txn_state",
    title="the coordinator has no open transaction that this call could end or extend",
    explanation=(
        "The transaction is not in a state for this request: it was aborted after its timeout, it was "
        "empty, or it was ended before."
    ),
    java=(None, FATAL),
    records=Records.UNKNOWN,
    condition=(
        "Lost if this was a commit of a transaction that the coordinator had aborted and the application "
        "does not repeat it; neither if it was empty, an abort, or committed before."
    ),
    action="Close the producer, start a new one, and read the input again from the last committed offsets.",
    check="What the coordinator wrote about this id last: CompleteCommit or CompleteAbort.",
    next=(Next.TRANSACTION, Next.TRANSACTION_LOG),
    part=_P,
)
MAPPING: Final = Meaning(
    id="invalid_producer_id_mapping",
    title="the transactional id does not belong to this producer id any more",
    explanation=(
        "The coordinator forgot the id, unused for transactional.id.expiration.ms (7 days), or another "
        "instance took over. Java clients 2.5 to 3.9 can abort and go on; from 4.0 on it is fatal."
    ),
    java=(None, ABORT),
    librdkafka=(None, FATAL),
    records=Records.NEITHER,
    condition="The transaction is not committed. Records are lost only if the application does not repeat it.",
    action="Abort and begin again; with clients from 4.0 on, or if the abort fails, close the producer and start a new one.",
    check="Whether the id was idle for longer than transactional.id.expiration.ms, or a second instance uses it.",
    next=(Next.TRANSACTION,),
    part=_P,
)
MAPPING_FATAL: Final = replace(
    MAPPING,
    id="invalid_producer_id_mapping_fatal",
    java=(None, FATAL),
    action="Close the producer, start a new one, and read the input again from the last committed offsets.",
)
MAPPING_OF_STREAMS: Final = replace(
    MAPPING,
    id="invalid_producer_id_mapping_in_streams",
    java=(None, FATAL),
    action="Start the thread again: the input is read again from the last committed offsets.",
)
FLINK_LOST: Final = Meaning(
    id="committed_checkpoint_lost",
    title="Flink could not commit a transaction that a checkpoint counts as written",
    explanation=(
        "The transaction belongs to a completed checkpoint, and Kafka has aborted or forgotten it, mostly "
        "because the recovery took longer than transaction.timeout.ms. The job goes on as if it were "
        "written."
    ),
    java=(None, FATAL),
    records=Records.LOST,
    condition="All records of that transaction, unless it had been committed before.",
    action=(
        "Find out whether the transaction was committed; if not, replay that span from an older "
        "checkpoint or the input. Raise transaction.timeout.ms above checkpoint interval plus recovery."
    ),
    check="What the coordinator wrote about this id last: CompleteCommit or CompleteAbort.",
    next=(Next.TRANSACTION, Next.TRANSACTION_LOG),
    part=_P,
)
ABORTABLE: Final = Meaning(
    id="transaction_abortable",
    title="the transaction can only be aborted; the producer goes on afterwards",
    explanation=(
        "A broker answered that the transaction cannot go on, or a client from 4.1 on has exhausted its "
        "retries inside a transaction. The error in it, if there is one, is the cause."
    ),
    java=(None, ABORT),
    records=Records.NEITHER,
    condition="Nothing of the transaction becomes visible to read_committed; process the input again.",
    action="Abort the transaction, go back to the last committed offsets, begin again with the same producer.",
    check="The error that came before; the coordinator's log for this id.",
    next=(Next.TRANSACTION,),
    part=_P,
)
ABORT_FAILED: Final = Meaning(
    id="abort_failed",
    title="the abort itself was rejected: this producer is finished",
    explanation="To avoid a loop, clients from 4.1 on treat TRANSACTION_ABORTABLE as an answer to an abort as fatal.",
    java=(None, FATAL),
    records=Records.NEITHER,
    condition="The coordinator ends the transaction after its timeout at the latest; it is not committed.",
    action="Close the producer and start a new one, which ends the old transaction.",
    check="Whether the transaction still holds back readers.",
    next=(Next.TRANSACTION,),
    part=_P,
)
ABORTED: Final = Meaning(
    id="transaction_aborted",
    title="unsent records were failed because the transaction was aborted",
    explanation="A consequence of the abort, and no error of its own: search for what led to the abort.",
    java=(None, ABORT),
    records=Records.NEITHER,
    condition="These records belong to an aborted transaction; process their input again.",
    action="Find the first error before it, and treat that one.",
    check="The lines of the same client before this one.",
    role=Role.CONSEQUENCE,
    part=_P,
)
ERROR_STATE: Final = Meaning(
    id="error_state",
    title="the producer had failed before, and rejects calls since",
    explanation="An echo of an earlier error, which decides whether an abort is enough.",
    java=(FAILS, ABORT),
    records=Records.UNKNOWN,
    condition="It depends on the first error.",
    action="Find the first error: 'Transiting to abortable error state' needs an abort, 'fatal' a new producer.",
    check="The lines of the same client before this one.",
    next=(Next.TRANSACTION,),
    role=Role.CONSEQUENCE,
    part=_P,
)
CONCURRENT: Final = Meaning(
    id="concurrent_transactions",
    title="the former transaction of this id is still being ended",
    explanation="The coordinator writes its markers, or cannot; clients repeat the request by themselves.",
    java=(None, RETRIABLE),
    records=Records.NEITHER,
    condition="Nothing of the new transaction was written.",
    action="Wait; if it lasts for minutes, search for a coordinator that cannot write, or a marker that is stuck.",
    check="The state of this id at the coordinator, and the in-sync replicas of __transaction_state.",
    next=(Next.TRANSACTION, Next.HANGING),
    role=Role.HARMLESS,
    part=_P,
)
TIMEOUT_TOO_LONG: Final = Meaning(
    id="transaction_timeout_too_long",
    title="transaction.timeout.ms is longer than brokers allow",
    explanation="It is above the brokers' transaction.max.timeout.ms (15 minutes by default; Flink's sink has an hour).",
    java=(None, FATAL),
    records=Records.NEITHER,
    condition="Nothing was written.",
    action="Lower transaction.timeout.ms of the producer, or raise transaction.max.timeout.ms of the brokers; start again.",
    check="Both settings.",
    part=_P,
)
TIMED_OUT_AT_COORDINATOR: Final = Meaning(
    id="transaction_timed_out",
    title="the coordinator aborted a transaction after its timeout",
    explanation="It was open for longer than the producer's transaction.timeout.ms. The producer is fenced, or has to abort.",
    java=(None, ABORT),
    records=Records.NEITHER,
    condition="The transaction is aborted; records are lost only if the application does not process its input again.",
    action="Nothing for the brokers. Find out why the application took so long, or raise transaction.timeout.ms.",
    check="What the application did before; whether it was killed.",
    next=(Next.TRANSACTION,),
    part=_P,
)
INITIALIZED: Final = Meaning(
    id="producer_initialized",
    title="an instance took over a transactional id",
    explanation="The coordinator gave the id to an instance. An older one is fenced from then on.",
    java=(None, None),
    records=Records.NEITHER,
    condition="An open transaction of the former instance is aborted.",
    action="Nothing, if one instance was restarted. Two that take the id from each other need ids of their own.",
    check="How often this line comes for the same id.",
    next=(Next.TRANSACTION,),
    role=Role.HARMLESS,
    part=_P,
)
INVALID_TRANSITION: Final = Meaning(
    id="invalid_transition",
    title="a call does not fit the state of the transaction",
    explanation="The application called begin, commit or abort in the wrong order; mostly abort without a begin.",
    java=(None, RETRIABLE),
    records=Records.NEITHER,
    condition="The call did nothing.",
    action="Mend the order of calls: begin, send, commit or abort.",
    check="What the application called before.",
    role=Role.CONSEQUENCE,
    part=_P,
)
ID_DENIED: Final = Meaning(
    id="transactional_id_denied",
    title="no permission for the transactional id",
    explanation="The principal needs WRITE and DESCRIBE on it. Clients from 3.6 on may call initTransactions() again.",
    java=(None, FATAL),
    records=Records.NEITHER,
    condition="Nothing of the transaction is visible.",
    action="Grant the permission, then call initTransactions() again or start the producer again.",
    check="The ACLs of the transactional id.",
    next=(Next.ACLS_OF_TRANSACTION,),
    part=_P,
)
ID_DENIED_AT_INIT: Final = Meaning(
    id="transactional_id_denied_at_init",
    title="no permission for the transactional id: initTransactions() may be repeated",
    explanation="The principal needs WRITE and DESCRIBE on it. The client says that it can go on.",
    java=(None, RETRIABLE),
    records=Records.NEITHER,
    condition="Nothing was written.",
    action="Grant the permission, and call initTransactions() again.",
    check="The ACLs of the transactional id.",
    next=(Next.ACLS_OF_TRANSACTION,),
    part=_P,
)
COORDINATOR_FENCED: Final = Meaning(
    id="transaction_coordinator_fenced",
    title="a former transaction coordinator tried to write a marker",
    explanation="Another broker is the coordinator now; it writes the marker. Brokers deal with it among themselves.",
    java=(None, RETRIABLE),
    records=Records.NEITHER,
    condition="The new coordinator ends the transaction as it was decided.",
    action="Nothing.",
    check="Whether the transaction ends soon.",
    next=(Next.TRANSACTION,),
    role=Role.HARMLESS,
    part=_P,
)

TRANSACTIONS: Final[Table] = table(
    (("PRODUCER_FENCED", "_FENCED"), (
        Case(meaning=FLINK_LOST, framework=Framework.FLINK, operations=frozenset({Operation.COMMIT})),
        *always(FENCED),
    )),
    (("INVALID_PRODUCER_EPOCH",), (
        when(OLD_EPOCH_AT_COORDINATOR, *_FROM_COORDINATOR, client=Client.LIBRDKAFKA),
        Case(meaning=OLD_EPOCH_AT_COORDINATOR, framework=Framework.CONNECT),
        Case(meaning=OLD_EPOCH_FATAL, outcome=Outcome.FATAL),
        Case(meaning=OLD_EPOCH_OF_STREAMS, framework=Framework.STREAMS),
        *always(OLD_EPOCH),
    )),
    (("INVALID_TXN_STATE",), (
        when(STATE_AT_LEADER, Operation.PRODUCE),
        Case(meaning=STATE_AT_LEADER, outcome=Outcome.ABORTABLE),
        when(STATE_AT_ABORT, Operation.ABORT),
        *always(STATE_AT_COORDINATOR),
    )),
    (("INVALID_PRODUCER_ID_MAPPING",), (
        Case(meaning=FLINK_LOST, framework=Framework.FLINK),
        Case(meaning=MAPPING_OF_STREAMS, framework=Framework.STREAMS),
        Case(meaning=MAPPING_FATAL, outcome=Outcome.FATAL),
        Case(meaning=MAPPING_FATAL, client=Client.JAVA, before=(2, 5)),
        Case(meaning=MAPPING_FATAL, client=Client.JAVA, since=(4, 0)),
        *always(MAPPING),
    )),
    (("TRANSACTION_ABORTABLE", "KAFKA_TXN_REQUIRES_ABORT"), (
        when(ABORT_FAILED, Operation.ABORT), *always(ABORTABLE),
    )),
    (("TRANSACTION_ABORTED",), always(ABORTED)),
    (("_ERROR_STATE",), always(ERROR_STATE)),
    (("_INVALID_TRANSITION",), always(INVALID_TRANSITION)),
    (("CONCURRENT_TRANSACTIONS",), always(CONCURRENT)),
    (("INVALID_TRANSACTION_TIMEOUT",), always(TIMEOUT_TOO_LONG)),
    (("TRANSACTIONAL_ID_AUTHORIZATION_FAILED",), always(ID_DENIED)),
    (("_AUTHORIZATION_ABORTABLE",), always(ID_DENIED_AT_INIT)),
    (("TRANSACTION_COORDINATOR_FENCED",), always(COORDINATOR_FENCED)),
    (("_TXN_TIMED_OUT",), always(TIMED_OUT_AT_COORDINATOR)),
    (("_PRODUCER_INITIALIZED",), always(INITIALIZED)),
    (("_FLINK_DATA_LOST",), always(FLINK_LOST)),
)  # fmt: skip
