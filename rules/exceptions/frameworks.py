"""Errors of Kafka Streams, Kafka Connect, Spring and Flink: what they do about the error of the client in them."""

from __future__ import annotations

from typing import Final

from rules.exceptions.meaning import (
    FAILS_OR_ABORT,
    FATAL,
    NOBODY,
    Meaning,
    Next,
    Records,
    Role,
    Table,
    always,
    table,
)

MIGRATED: Final = Meaning(
    id="task_migrated",
    title="a task of Kafka Streams belongs to another thread now",
    explanation="The thread missed a rebalance or was fenced. Streams closes its tasks and joins again by itself.",
    java=(None, FATAL),
    records=Records.DUPLICATED,
    condition="Neither with exactly_once_v2; with at_least_once, what was processed since the last commit is processed again.",
    in_transaction=Records.NEITHER,
    condition_in_transaction="The transaction is aborted, and the input is read again.",
    action="Nothing if it stays single. If it repeats: max.poll.interval.ms, transaction.timeout.ms, long pauses.",
    check="How long one poll of the thread took.",
    next=(Next.GROUP, Next.LAG),
)
CORRUPTED: Final = Meaning(
    id="task_corrupted",
    title="Kafka Streams rebuilds a state store from its changelog",
    explanation="The local state does not fit the changelog, or a transaction failed. Streams does it by itself, which takes time.",
    java=NOBODY,
    records=Records.UNKNOWN,
    condition="Neither if the changelog was only compacted or a transaction aborted; lost if an unclean election cut the changelog.",
    action="Wait until it is restored; search for a loss on the changelog's partition.",
    check="Unclean elections of the changelog's partition.",
    next=(Next.LOSS, Next.GROUP),
)
CONTINUED: Final = Meaning(
    id="streams_continued",
    title="Kafka Streams dropped a record that it could not send, and goes on",
    explanation="The production exception handler says CONTINUE.",
    java=FAILS_OR_ABORT,
    records=Records.LOST,
    condition="The output records of these lines: they are not written, and their input counts as processed.",
    action="Collect the records from the input again; let the handler FAIL if none may be lost.",
    check="production.exception.handler, and how many such lines there are.",
    next=(Next.TOPIC,),
)
SKIPPED: Final = Meaning(
    id="record_skipped",
    title="a record that could not be read was skipped",
    explanation="The handler of the application or of the framework goes on behind it.",
    java=NOBODY,
    records=Records.LOST,
    condition="These records, to this application; they are still in the topic until retention deletes them.",
    action="Read them again with the right deserializer; let the handler fail if none may be skipped.",
    check="deserialization.exception.handler or errors.tolerance, and how many such lines there are.",
    next=(Next.LAG,),
)
STREAMS_DIED: Final = Meaning(
    id="streams_thread_failed",
    title="a thread of Kafka Streams failed",
    explanation="The error in it is the reason. What is not committed is processed again after a restart.",
    java=FAILS_OR_ABORT,
    records=Records.DUPLICATED,
    condition="Neither with exactly_once_v2; with at_least_once, what was processed since the last commit is processed again.",
    in_transaction=Records.NEITHER,
    condition_in_transaction="The transaction is aborted, and the input is read again.",
    action="Mend the cause and start the thread again (uncaught exception handler: REPLACE_THREAD).",
    check="The error that came before.",
    next=(Next.GROUP, Next.LAG),
    role=Role.CONSEQUENCE,
)
CONNECT_FAILED: Final = Meaning(
    id="connect_task_failed",
    title="a task of Kafka Connect has stopped until somebody restarts it",
    explanation="The error in it is the reason; it may be of the system on the other side, and not of Kafka.",
    java=NOBODY,
    records=Records.DUPLICATED,
    condition="After the restart, what came since the last commit is delivered again; nothing is lost.",
    action="Mend the cause, then restart the task by Connect's API.",
    check="The causes in the stack trace.",
    next=(Next.GROUP, Next.LAG),
    role=Role.CONSEQUENCE,
)
TOLERANCE: Final = Meaning(
    id="connect_tolerance_exceeded",
    title="a record that cannot be converted stopped a task of Kafka Connect",
    explanation="The task waits in front of the record, because errors.tolerance is none.",
    java=NOBODY,
    records=Records.NEITHER,
    condition="Nothing is lost while it waits; with errors.tolerance=all the record would be skipped.",
    action="Mend the converter or the record, or send such records to a dead letter queue; restart the task.",
    check="key.converter, value.converter and who wrote the record.",
    next=(Next.LAG,),
)
REPORTED: Final = Meaning(
    id="connect_record_reported",
    title="Kafka Connect reports a record that it could not convert or transform",
    explanation="The line is a report alone: what comes next is decided by errors.tolerance of the connector.",
    java=NOBODY,
    records=Records.UNKNOWN,
    condition=(
        "Lost to the target with errors.tolerance=all and no dead letter queue; neither with none, where the "
        "task stops in front of the record."
    ),
    action="Mend the converter or who wrote the record, or set a dead letter queue.",
    check="errors.tolerance and errors.deadletterqueue.topic.name; whether the task runs.",
    next=(Next.LAG,),
)
NOT_STARTED: Final = Meaning(
    id="connect_task_not_started",
    title="a source task with exactly-once support could not start",
    explanation="Earlier tasks of the connector have to be fenced first, and the worker could not have that done.",
    java=NOBODY,
    records=Records.NEITHER,
    condition="The task has read and written nothing.",
    action="Mend how workers reach their leader (REST listeners; dedicated.mode.enable.internal.rest of MirrorMaker 2), and restart the task.",
    check="The cause in the stack trace; the leader's log at that time.",
)
NO_TOPIC: Final = Meaning(
    id="connect_topic_not_created",
    title="a source task of Kafka Connect could not look for a topic, or create it",
    explanation="The brokers did not answer in time, or refused. The task stops, unless the line says that it tries again.",
    java=NOBODY,
    records=Records.DUPLICATED,
    condition="This record is not written. After a restart the source is read again from the last commit; nothing is lost.",
    action="Create the topic or mend topic.creation.*, permissions or the connection; then restart the task by Connect's API.",
    check="Whether the topic exists, and whether enough brokers are up for its replicas.",
    next=(Next.TOPIC, Next.CONNECTION),
)
FLUSH_FAILED: Final = Meaning(
    id="connect_flush_failed",
    title="a source task of Kafka Connect could not flush or commit its offsets",
    explanation="Records or source offsets were not written in time; Connect tries again, or the task fails.",
    java=FAILS_OR_ABORT,
    records=Records.DUPLICATED,
    condition="After a restart the source is read again from the last commit; neither with exactly-once support.",
    in_transaction=Records.NEITHER,
    condition_in_transaction="Offsets and records are aborted together.",
    action="Find out why brokers are slow; raise offset.flush.timeout.ms only after that.",
    check="The error that came before.",
    next=(Next.CONNECTION,),
)
SEEK: Final = Meaning(
    id="listener_retried",
    title="a listener of Spring failed, and its record is delivered again",
    explanation="The error handler goes back to the record. The error in it is the application's.",
    java=NOBODY,
    records=Records.DUPLICATED,
    condition="What the listener did before it failed happens again; nothing is lost.",
    action="Mend the listener; make it idempotent.",
    check="The cause in the stack trace.",
    next=(Next.LAG,),
    role=Role.CONSEQUENCE,
)
GAVE_UP: Final = Meaning(
    id="listener_gave_up",
    title="Spring's error handler gave a record up after its retries",
    explanation="It is skipped, or sent to a dead letter topic if one is set.",
    java=NOBODY,
    records=Records.LOST,
    condition="To this application, unless a recoverer wrote it to a dead letter topic.",
    action="Process these records again; set a recoverer.",
    check="The dead letter topic; the offset in the line.",
    next=(Next.LAG,),
)
LISTENER_FENCED: Final = Meaning(
    id="listener_fenced",
    title="a transaction of a Spring listener was fenced, and the listener may go on",
    explanation=(
        "Its transaction timed out, or its partitions moved. Spring logs it and does not go back to the "
        "records; it stops the container only with stopContainerWhenFenced."
    ),
    java=(None, FATAL),
    records=Records.LOST,
    condition=(
        "If the container went on with the same partitions and committed later records. Neither if it was "
        "stopped, restarted, or its partitions moved: the records are then read again."
    ),
    action=(
        "Start the container again from the committed offsets; set stopContainerWhenFenced, and "
        "transaction.timeout.ms above the time of the longest poll."
    ),
    check=(
        "A rebalance at that time; the group's committed offsets; 'Completed rollback ... due to timeout' in "
        "the coordinator's log."
    ),
    next=(Next.LAG, Next.TRANSACTION),
)
STOPPED: Final = Meaning(
    id="container_stopped",
    title="a listener container of Spring stopped",
    explanation="The error before it is fatal for its consumer; nothing is read any more.",
    java=NOBODY,
    records=Records.NEITHER,
    condition="Nothing is lost while the topic's retention lasts: the records wait.",
    action="Mend the cause, and start the container or the process again.",
    check="The error that came before.",
    next=(Next.LAG,),
    role=Role.CONSEQUENCE,
)
LISTENER: Final = Meaning(
    id="application_failed",
    title="code of the application failed while it handled a record",
    explanation="Kafka only carried it; the cause in the stack trace is the application's.",
    java=NOBODY,
    records=Records.NEITHER,
    condition="The record is delivered again or skipped, as the error handler says.",
    action="Mend the application.",
    check="The cause in the stack trace.",
    next=(Next.LAG,),
    role=Role.CONSEQUENCE,
)
FLINK_SEND: Final = Meaning(
    id="flink_send_failed",
    title="Flink's sink could not write; the job goes back to its checkpoint",
    explanation="The error in it is the reason.",
    java=FAILS_OR_ABORT,
    records=Records.NEITHER,
    condition="The job repeats everything since its checkpoint; duplicated if the sink is at-least-once.",
    action="Mend the cause; the job restarts by itself.",
    check="The error that came before.",
    next=(Next.TRANSACTION,),
    role=Role.CONSEQUENCE,
)

FRAMEWORKS: Final[Table] = table(
    (("TASK_MIGRATED",), always(MIGRATED)),
    (("TASK_CORRUPTED", "PROCESSOR_STATE"), always(CORRUPTED)),
    (("_STREAMS_CONTINUED",), always(CONTINUED)),
    (("_RECORD_SKIPPED",), always(SKIPPED)),
    (("STREAMS", "_STREAMS_DIED", "TASK_TIMEOUT", "TASK_ID_FORMAT", "MISSING_SOURCE_TOPIC", "TASK_ASSIGNMENT"), always(STREAMS_DIED)),
    (("CONNECT", "_CONNECT_TASK_FAILED", "DATA", "ALREADY_EXISTS", "ILLEGAL_WORKER_STATE"), always(CONNECT_FAILED)),
    (("_CONNECT_TOLERANCE",), always(TOLERANCE)),
    (("_CONNECT_REPORTED",), always(REPORTED)),
    (("_CONNECT_NOT_STARTED",), always(NOT_STARTED)),
    (("_CONNECT_NO_TOPIC",), always(NO_TOPIC)),
    (("_CONNECT_FLUSH_FAILED", "_CONNECT_COMMIT_FAILED"), always(FLUSH_FAILED)),
    (("_SPRING_SEEK",), always(SEEK)),
    (("_SPRING_GAVE_UP",), always(GAVE_UP)),
    (("_SPRING_STOPPED",), always(STOPPED)),
    (("_SPRING_FENCED",), always(LISTENER_FENCED)),
    (("LISTENER_EXECUTION_FAILED", "BATCH_LISTENER_FAILED", "KAFKA_PRODUCER"), always(LISTENER)),
    (("FLINK_KAFKA", "_FLINK_SEND_FAILED"), always(FLINK_SEND)),
)  # fmt: skip
