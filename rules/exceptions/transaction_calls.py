"""Calls of a transactional producer that were not answered: which may be repeated, and which have to be.

Source: `TransactionalRequestResult` and `KafkaProducer` of Kafka 2.5 to 4.4 (KIP-588), `rdkafka_txnmgr.c` of 2.16.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from rules.exceptions.meaning import (
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
from rules.facts.application_log import Framework, Operation, Part

_P: Final = Part.PRODUCER
ENDING: Final = (Operation.COMMIT, Operation.END_TXN)

COMMIT_TIMED_OUT: Final = Meaning(
    id="commit_result_unknown",
    title="the result of a commit is not known: repeat the same call",
    explanation=(
        "The coordinator did not answer within max.block.ms. The request goes on in the background; the "
        "transaction may be committed or not."
    ),
    java=(None, RETRIABLE),
    records=Records.UNKNOWN,
    condition=(
        "Neither if the commit is repeated until it answers. If the producer is closed instead: duplicated "
        "if it was committed and the input is processed again, lost if not and it is not."
    ),
    action="Call commitTransaction() again, and nothing else. After a crash, find out the outcome first.",
    check="What the coordinator knows of this id: CompleteCommit or CompleteAbort.",
    next=(Next.TRANSACTION, Next.TRANSACTION_LOG),
    part=_P,
)
COMMIT_INTERRUPTED: Final = replace(
    COMMIT_TIMED_OUT,
    id="commit_interrupted",
    title="a commit was interrupted before its answer: repeat the same call",
    explanation=(
        "The thread was interrupted, mostly by a shutdown. The request goes on in the background; the "
        "transaction may be committed or not."
    ),
)
COMMIT_OF_STREAMS: Final = replace(
    COMMIT_TIMED_OUT,
    id="commit_result_unknown_in_streams",
    title="the result of a commit is not known: Kafka Streams builds the task up again",
    records=Records.NEITHER,
    condition=(
        "Streams initialises its producer again, which ends the open transaction, and goes on from the "
        "offsets that are committed."
    ),
    action="Nothing, if it stays single: Streams does it by itself. Else mend the coordinator or the network.",
)
COMMIT_OF_FLINK: Final = replace(
    COMMIT_TIMED_OUT,
    id="commit_result_unknown_in_flink",
    title="the result of a commit is not known: Flink repeats it by itself",
    condition=(
        "Neither once a repeated commit succeeds; lost if the transaction reaches transaction.timeout.ms "
        "before that."
    ),
    action="Watch whether Flink's next attempt succeeds, and mend the coordinator before transaction.timeout.ms is over.",
)
COMMIT_REFUSED: Final = Meaning(
    id="commit_answer_unknown",
    title="a commit got an answer that says nothing: it may be committed or not",
    explanation="The coordinator failed with an error of its own; the client takes it for fatal.",
    java=(None, FATAL),
    records=Records.UNKNOWN,
    condition="Duplicated if it was committed and the input is processed again; lost if it was not and nobody does.",
    action="Close the producer. Find out whether the transaction is committed before anything is processed again.",
    check="What the coordinator knows of this id: CompleteCommit or CompleteAbort; the stack trace in its log.",
    next=(Next.TRANSACTION, Next.TRANSACTION_LOG),
    part=_P,
)
CALL_AGAIN: Final = Meaning(
    id="call_may_be_repeated",
    title="a call about the transaction did not succeed yet, and may be repeated",
    explanation="The client says so by the class of its exception; the error in it is not known.",
    java=(None, RETRIABLE),
    records=Records.UNKNOWN,
    condition="Neither once the repeated call succeeds. If it was a commit, it may have succeeded.",
    action="Repeat the same call, with a longer time limit; abort only if it says that an abort is required.",
    check="Which call it was; whether the coordinator is reachable.",
    next=(Next.TRANSACTION,),
    part=_P,
)
ABORT_TIMED_OUT: Final = Meaning(
    id="abort_result_unknown",
    title="an abort was not answered in time: repeat the same call",
    explanation="The coordinator did not answer within max.block.ms; the abort goes on in the background.",
    java=(None, RETRIABLE),
    records=Records.NEITHER,
    condition="The transaction is not committed; the coordinator aborts it after its timeout at the latest.",
    action="Call abortTransaction() again.",
    check="Whether the coordinator is reachable.",
    next=(Next.TRANSACTION,),
    part=_P,
)
INIT_TIMED_OUT: Final = Meaning(
    id="init_timed_out",
    title="initTransactions() was not answered in time",
    explanation=(
        "The transaction coordinator did not answer: __transaction_state has too few replicas, or an "
        "earlier transaction of this id cannot be ended."
    ),
    java=(None, RETRIABLE),
    records=Records.NEITHER,
    condition="This producer has written nothing yet.",
    action="Call initTransactions() again; mend the coordinator if it stays so.",
    check="Leaders and in-sync replicas of __transaction_state; CONCURRENT_TRANSACTIONS in the log.",
    next=(Next.TRANSACTION, Next.PARTITION),
    part=_P,
)
OFFSETS_TIMED_OUT: Final = Meaning(
    id="txn_offsets_timed_out",
    title="adding offsets or partitions to the transaction was not answered in time",
    explanation="A coordinator did not answer. The call may be repeated in the same transaction.",
    java=(None, RETRIABLE),
    records=Records.NEITHER,
    condition="The transaction is open still: nothing is visible before its commit.",
    action="Repeat the call, or abort the transaction. Do not commit without it: the input would be processed again.",
    check="The coordinators of the transactional id and of the group.",
    next=(Next.TRANSACTION, Next.GROUP),
    part=_P,
)
COMMIT_TO_BE_REPEATED: Final = Meaning(
    id="call_to_be_repeated",
    title="an earlier call timed out and has to be repeated first",
    explanation="After a commit that timed out only the same commit may follow, because it may have succeeded.",
    java=(None, RETRIABLE),
    records=Records.UNKNOWN,
    condition="Whether the transaction is committed, only the repeated call answers.",
    action="Call commitTransaction() again.",
    check="What the coordinator knows of this id.",
    next=(Next.TRANSACTION,),
    role=Role.CONSEQUENCE,
    part=_P,
)

COMMIT_TIMEOUTS: Final[tuple[Case, ...]] = (
    when(COMMIT_OF_STREAMS, *ENDING, framework=Framework.STREAMS),
    when(COMMIT_OF_FLINK, *ENDING, framework=Framework.FLINK),
    when(COMMIT_TIMED_OUT, *ENDING),
)
CALLS: Final[Table] = table(
    (("_CALL_TO_REPEAT",), always(COMMIT_TO_BE_REPEATED)),
    (("KAFKA_RETRIABLE",), (
        *COMMIT_TIMEOUTS, when(ABORT_TIMED_OUT, Operation.ABORT), when(INIT_TIMED_OUT, Operation.INIT_PRODUCER_ID),
        *always(CALL_AGAIN),
    )),
)  # fmt: skip
