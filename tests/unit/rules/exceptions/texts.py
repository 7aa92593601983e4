"""Texts of errors, composed of classes and of fragments of messages, and what each means."""

from __future__ import annotations

from dataclasses import dataclass

ERRORS = "org.apache.kafka.common.errors."
CONSUMER = "org.apache.kafka.clients.consumer."
AT = "\tat org.apache.kafka.clients.producer."
TX = "[Producer clientId=p-1, transactionalId=pay-1] "
PLAIN = "[Producer clientId=p-1] "
MEMBER = "[Consumer clientId=c-1, groupId=billing] "
ECHO = "org.apache.kafka.common.KafkaException: Cannot execute transactional method because we are in an error state"
GOT = "Got error produce response with correlation id 7 on topic-partition orders-3, retrying (9 attempts left). Error: "


@dataclass(frozen=True, slots=True)
class Text:
    """A text, and what its deciding line means; `-` stands for a producer that it does not concern."""

    id: str
    text: str
    meaning: str
    idempotent: str
    transactional: str
    records: str


def _java(name: str, message: str = "words", *below: str) -> str:
    return "\n".join([f"{ERRORS}{name}Exception: {message}", *below])


def _caused(outer: str, name: str, message: str = "words") -> str:
    return f"{outer}\n\tat a.B.c(B.java:1)\nCaused by: {ERRORS}{name}Exception: {message}"


def _raised(name: str, message: str = "words") -> str:
    frame = f"{AT}internals.FutureRecordMetadata.valueOrError(FutureRecordMetadata.java:1)"
    return f"java.util.concurrent.ExecutionException: {ERRORS}{name}Exception: {message}\n{frame}"


def _rd(level: int, facility: str, text: str) -> str:
    return f"%{level}|1700000000.100|{facility}|rd#producer-1| [thrd:main]: {text}"


def _code(code: str, value: int, text: str, flags: str = "") -> str:
    return f'cimpl.KafkaException: KafkaError{{{flags}code={code},val={value},str="{text}"}}'


def _fatal(name: str, of: str = TX) -> str:
    return f"INFO {of}Transiting to fatal error state due to {ERRORS}{name}Exception: words"


def _abortable(name: str, of: str = TX) -> str:
    return f"INFO {of}Transiting to abortable error state due to {ERRORS}{name}Exception: words"


def _end_txn(name: str) -> str:
    inner = (
        f"{AT}internals.TransactionManager$EndTxnHandler.handleResponse(TransactionManager.java:1)"
    )
    return f"org.apache.kafka.common.KafkaException: Unhandled error\n{inner}\nCaused by: {ERRORS}{name}Exception: words"


SEQUENCES = (
    Text("retried by an idempotent producer", f"WARN {PLAIN}{GOT}OUT_OF_ORDER_SEQUENCE_NUMBER", "out_of_order_sequence", "retriable", "retriable", "unknown"),
    Text("reached the application", _raised("OutOfOrderSequence"), "out_of_order_sequence", "fails", "abort", "unknown"),
    Text("in a transaction, by the client's own line", _abortable("OutOfOrderSequence"), "out_of_order_sequence", "-", "abort", "neither"),
    Text("fatal to librdkafka", _rd(0, "FATAL", "Fatal error: Broker: Broker received an out of order sequence number: ProduceRequest for orders [3] with 5 message(s) failed due to sequence desynchronization with broker 2 (PID{Id:9,Epoch:0}, base seq 27"), "out_of_order_sequence_fatal", "fatal", "fatal", "unknown"),
    Text("fatal to librdkafka in a transaction: committed records may be gone", _rd(1, "TXNERR", "Fatal transaction error: ProduceRequest for orders [3] failed due to sequence desynchronization (OUT_OF_ORDER_SEQUENCE_NUMBER)"), "out_of_order_sequence_fatal", "-", "fatal", "unknown"),
    Text("abortable to librdkafka", _rd(3, "TXNERR", "Current transaction failed in state InTransaction: skipped sequence numbers (OUT_OF_ORDER_SEQUENCE_NUMBER, requires epoch bump)"), "out_of_order_sequence", "-", "abort", "neither"),
    Text("a broker's line with a gap", f"[2026-01-02 03:04:05,006] ERROR [ReplicaManager broker=2] Error processing append operation on partition orders-3 (kafka.server.ReplicaManager)\n{_java('OutOfOrderSequence', 'Out of order sequence number for producer 9 at offset 3 in partition orders-3: 27 (incoming seq. number), 2 (current end sequence number)')}", "out_of_order_sequence", "retriable", "abort", "unknown"),
    Text("a broker's line about a batch that is there", f"ERROR [ReplicaManager broker=2] append\n{_java('OutOfOrderSequence', 'Out of order sequence number for producer 9 at offset 3 in partition orders-3: 1 (incoming seq. number), 5 (current end sequence number)')}", "batch_repeated", "retriable", "abort", "neither"),
    Text("sequences wrap: 2 comes after 2147483647", f"ERROR [ReplicaManager broker=2] append\n{_java('OutOfOrderSequence', 'Out of order sequence number for producer 9 at offset 3 in partition orders-3: 2 (incoming seq. number), 2147483647 (current end sequence number)')}", "out_of_order_sequence", "retriable", "abort", "unknown"),
    Text("overtaken while the transaction was verified", _java("OutOfOrderSequence", "Out of order sequence number for producer 9 at offset 3 in partition orders-3: 7 (incoming seq. number), 5 (earliest seen sequence)"), "batch_overtaken", "-", "retriable", "neither"),
    Text("a leader without a state of the producer", _java("OutOfOrderSequence", "Invalid sequence number for producer 9 at offset 3 in partition orders-3: 7 (incoming seq. number). Expected sequence 0 for transactions v2"), "producer_state_missing", "-", "retriable", "unknown"),
    Text("the broker has it already", "aiokafka.errors.DuplicateSequenceNumber: [Error 46] DuplicateSequenceNumber", "duplicate_sequence", "fails", "abort", "neither"),
    Text("an old broker forgot the producer", _java("UnknownProducerId"), "unknown_producer_id", "fails", "abort", "neither"),
    Text("batches that the client gave up", f"INFO {PLAIN}No inflight batches remaining for orders-3, last ack'd sequence for partition is 4, next sequence is 9. Going to bump epoch", "epoch_raised_after_timeouts", "fails", "-", "unknown"),
    Text("the client raised its epoch by itself", f"INFO {PLAIN}ProducerId set to 9 with epoch 1", "epoch_raised", "retriable", "-", "unknown"),
)  # fmt: skip
FENCING = (
    Text("fenced", _java("ProducerFenced"), "producer_fenced", "-", "fatal", "neither"),
    Text("fenced, to librdkafka", _code("_FENCED", -144, "Local: This instance has been fenced by a newer instance", "FATAL,"), "producer_fenced", "-", "fatal", "neither"),
    Text("fenced, to a client in Python", "Crashed reason=ProducerFenced('There is a newer producer')", "producer_fenced", "-", "fatal", "neither"),
    Text("fenced, under Kafka Streams", f"org.apache.kafka.streams.errors.TaskMigratedException: fenced\n\tat org.apache.kafka.streams.X.y(X.java:1)\nCaused by: {_java('ProducerFenced')}", "producer_fenced", "-", "fatal", "neither"),
    Text("an old epoch in a transaction", _abortable("InvalidProducerEpoch"), "invalid_producer_epoch", "-", "abort", "neither"),
    Text("an old epoch of a plain producer is harmless", f"INFO [ReplicaManager broker=2] append\n{_java('InvalidProducerEpoch', 'Epoch of producer 9 at offset 3 in orders-3 is 0, which is smaller than the last seen epoch 1')}", "invalid_producer_epoch", "fails", "abort", "neither"),
    Text("an old epoch at the coordinator is fatal to librdkafka", _rd(1, "TXNERR", "Fatal transaction error: Failed to end transaction: Broker: Producer attempted an operation with an old epoch (INVALID_PRODUCER_EPOCH)"), "invalid_producer_epoch_at_coordinator", "-", "fatal", "neither"),
    Text("no open transaction, to a write", _java("InvalidTxnState", "Partition was not added to the transaction"), "invalid_txn_state_at_leader", "-", "abort", "neither"),
    Text("no open transaction, to a commit", _end_txn("InvalidTxnState"), "invalid_txn_state", "-", "fatal", "unknown"),
    Text("no open transaction, and the client says fatal", _fatal("InvalidTxnState"), "invalid_txn_state", "-", "fatal", "unknown"),
    Text("the id is mapped to another producer, clients to 3.9", _java("InvalidPidMapping"), "invalid_producer_id_mapping", "-", "abort", "neither"),
    Text("the id is mapped to another producer, clients from 4.0", _fatal("InvalidPidMapping"), "invalid_producer_id_mapping_fatal", "-", "fatal", "neither"),
    Text("under Flink a checkpoint is lost", f"java.lang.IllegalStateException: Failed to commit KafkaCommittable{{producerId=9, epoch=0, transactionalId=flink-1}}\n\tat org.apache.flink.connector.kafka.sink.KafkaCommitter.commit(KafkaCommitter.java:1)\nCaused by: {_java('InvalidPidMapping')}", "committed_checkpoint_lost", "-", "fatal", "lost"),
    Text("Flink says that it is fenced and goes on", "WARN org.apache.flink.connector.kafka.sink.KafkaCommitter - Unable to commit transaction because its producer is already fenced.", "committed_checkpoint_lost", "-", "fatal", "lost"),
)  # fmt: skip
TRANSACTIONS = (
    Text("abortable", _abortable("TransactionAbortable"), "transaction_abortable", "-", "abort", "neither"),
    Text("the abort failed", f"org.apache.kafka.common.KafkaException: Failed to abort transaction\n{AT}internals.TransactionManager$EndTxnHandler.handleResponse(T.java:1)\nCaused by: {_java('TransactionAbortable')}", "abort_failed", "-", "fatal", "neither"),
    Text("wrapped since 4.1, the time limit is the cause", f"{ERRORS}TransactionAbortableException: Transaction failed after exhausting retries\nCaused by: {_java('Timeout', 'Expiring 5 record(s) for orders-3:120000 ms has passed since batch creation')}", "batch_expired", "-", "abort", "neither"),
    Text("aborted batches are a consequence", _java("TransactionAborted", "Failing batch since transaction was aborted"), "transaction_aborted", "-", "abort", "neither"),
    Text("an echo alone", f"{ECHO}\n{AT}KafkaProducer.beginTransaction(KafkaProducer.java:1)", "error_state", "-", "abort", "unknown"),
    Text("an echo with its cause", f"{ECHO}\n{AT}KafkaProducer.commitTransaction(KafkaProducer.java:1)\nCaused by: {_java('TopicAuthorization')}", "topic_denied", "-", "abort", "neither"),
    Text("the call before has to be repeated", "java.lang.IllegalStateException: Cannot attempt operation `abortTransaction` because the previous call to `commitTransaction` timed out and must be retried", "call_to_be_repeated", "-", "retriable", "unknown"),
    Text("calls in the wrong order", "java.lang.IllegalStateException: TransactionalId pay-1: Invalid transition attempted from state READY to state ABORTING_TRANSACTION", "invalid_transition", "-", "retriable", "neither"),
    Text("the former transaction is being ended", _rd(4, "GETPID", "Failed to acquire transactional PID from broker: Broker: Producer attempted to update a transaction while another concurrent operation: retrying"), "concurrent_transactions", "-", "retriable", "neither"),
    Text("a time limit above the brokers'", "org.apache.kafka.common.KafkaException: Unexpected error in InitProducerIdResponse; The transaction timeout is larger than the maximum value allowed", "transaction_timeout_too_long", "-", "fatal", "neither"),
    Text("no permission for the id", _fatal("TransactionalIdAuthorization"), "transactional_id_denied", "-", "fatal", "neither"),
    Text("no permission for the id, at the beginning", f"{TX}Abortable authorization error: words. Transition the producer state to ABORTABLE_ERROR", "transactional_id_denied_at_init", "-", "retriable", "neither"),
    Text("the coordinator's own line about a timeout", "[2026-01-02 03:04:05,006] INFO [TransactionCoordinator id=1] Completed rollback of ongoing transaction for transactionalId pay-1 due to timeout (kafka.coordinator.transaction.TransactionCoordinator)", "transaction_timed_out", "-", "abort", "neither"),
    Text("offsets of an older generation", f"{CONSUMER}CommitFailedException: Transaction offset Commit failed due to consumer group metadata mismatch\n{AT}internals.TransactionManager$TxnOffsetCommitHandler.handleResponse(T.java:1)", "txn_offset_commit_failed", "-", "abort", "neither"),
)  # fmt: skip
TIMEOUTS = (
    Text("a batch", _java("Timeout", "Expiring 3 record(s) for orders-3:120000 ms has passed since batch creation"), "batch_expired", "fails", "abort", "unknown"),
    Text("a batch under Kafka Streams", f"ERROR [a-StreamThread-1] Error encountered sending record to topic out for task 0_1 due to:\n{_java('Timeout', 'Expiring 3 record(s) for out-1:120000 ms has passed since batch creation')}", "batch_expired", "fails", "abort", "duplicated"),
    Text("metadata", _java("Timeout", "Topic orders not present in metadata after 60000 ms."), "metadata_timed_out", "fails", "abort", "neither"),
    Text("the buffer", _java("Timeout", "Failed to allocate memory within the configured max blocking time 60000 ms."), "buffer_exhausted_old_client", "fails", "fails", "lost"),
    Text("initTransactions", _java("Timeout", "Timeout expired after 60000ms while awaiting InitProducerId"), "init_timed_out", "-", "retriable", "neither"),
    Text("a commit: its result is not known", _java("Timeout", "Timeout expired after 60000ms while awaiting EndTxn(true)"), "commit_result_unknown", "-", "retriable", "unknown"),
    Text("an abort", _java("Timeout", "Timeout expired after 60000ms while awaiting EndTxn(false)"), "abort_result_unknown", "-", "retriable", "neither"),
    Text("offsets of a transaction", _java("Timeout", "Timeout expired after 60000ms while awaiting AddOffsetsToTxn"), "txn_offsets_timed_out", "-", "retriable", "neither"),
    Text("a consumer's commit", _java("Timeout", "Timeout of 60000ms expired before successfully committing offsets {orders-3=OffsetAndMetadata{offset=5}}"), "offset_commit_timed_out", "-", "-", "duplicated"),
    Text("a consumer's position", _java("Timeout", "Timeout of 60000ms expired before the position for partition orders-3 could be determined"), "position_timed_out", "-", "-", "neither"),
    Text("an administrative call", _java("Timeout", "Timed out waiting for a node assignment. Call: listTopics"), "metadata_request_timed_out", "retriable", "retriable", "neither"),
    Text("a message of librdkafka", _code("_MSG_TIMED_OUT", -192, "Local: Message timed out"), "batch_expired", "fails", "abort", "unknown"),
)  # fmt: skip
RECORDS = (
    Text("too few replicas, retried", f"WARN {PLAIN}{GOT}NOT_ENOUGH_REPLICAS", "not_enough_replicas", "retriable", "retriable", "neither"),
    Text("too few replicas, given up", _raised("NotEnoughReplicas"), "not_enough_replicas", "fails", "abort", "unknown"),
    Text("written to too few replicas", _raised("NotEnoughReplicasAfterAppend"), "not_enough_replicas_after_append", "fails", "abort", "unknown"),
    Text("not replicas, but a coordinator", f"WARN {TX}{GOT}NOT_ENOUGH_REPLICAS. Error Message: Unable to verify the partition has been added to the transaction.", "transaction_not_verified", "-", "retriable", "neither"),
    Text("too large", _java("RecordTooLarge", "larger than 1048576, which is the value of the max.request.size configuration."), "record_too_large", "fails", "abort", "lost"),
    Text("split by the client", f"WARN {PLAIN}Got error produce response in correlation id 3 on topic-partition orders-3, splitting and retrying (9 attempts left). Error: MESSAGE_TOO_LARGE", "record_too_large", "retriable", "retriable", "neither"),
    Text("no buffer", "org.apache.kafka.clients.producer.BufferExhaustedException: Failed to allocate 16384 bytes", "buffer_exhausted", "fails", "abort", "lost"),
    Text("not serializable", _java("Serialization", "Can't convert value of class A"), "serialization_failed", "fails", "fails", "lost"),
    Text("purged by an abort", _code("_PURGE_QUEUE", -152, "Local: Purged in queue"), "purged", "fails", "abort", "neither"),
    Text("a fatal error before", _code("_FATAL", -150, "Local: Fatal error", "FATAL,"), "fatal_echo", "fatal", "fatal", "unknown"),
    Text("the leader moved, retried", f"WARN {PLAIN}{GOT}NOT_LEADER_OR_FOLLOWER", "leader_moved", "retriable", "retriable", "neither"),
    Text("the leader moved, given up", _raised("NotLeaderOrFollower"), "leader_moved", "fails", "abort", "unknown"),
    Text("disconnected, retried", f"WARN {PLAIN}{GOT}NETWORK_EXCEPTION. Error Message: Disconnected from node 4", "disconnected", "retriable", "retriable", "neither"),
    Text("disconnected, given up", _raised("Network"), "disconnected", "fails", "abort", "unknown"),
    Text("no permission on the cluster", f"ERROR {PLAIN}Aborting producer batches due to fatal error\n{_java('ClusterAuthorization')}", "cluster_denied", "fatal", "fatal", "lost"),
    Text("no permission for the topic", _java("TopicAuthorization", "Not authorized to access topics: [orders]"), "topic_denied", "fails", "abort", "neither"),
    Text("no permission for the group", _rd(3, "TXNERR", "Current transaction failed in state InTransaction: Broker: Group authorization failed (GROUP_AUTHORIZATION_FAILED)"), "group_denied", "-", "abort", "neither"),
    Text("Kafka Streams goes on without a record", f"ERROR [a-StreamThread-1] Error encountered sending record to topic out due to {ERRORS}RecordTooLargeException: words; Exception handler choose to CONTINUE processing", "streams_continued", "fails", "abort", "lost"),
)  # fmt: skip
CONSUMERS = (
    Text("a commit after a rebalance", f"{CONSUMER}CommitFailedException: Commit cannot be completed since the group has already rebalanced", "commit_failed", "-", "-", "duplicated"),
    Text("the group rebalances", _java("RebalanceInProgress"), "rebalance_in_progress", "-", "-", "duplicated"),
    Text("a heartbeat in a rebalance is ordinary", f"INFO {MEMBER}Attempt to heartbeat failed since group is rebalancing: REBALANCE_IN_PROGRESS", "group_rejoined", "-", "-", "neither"),
    Text("an unknown member", f"ERROR {MEMBER}Offset commit failed on partition orders-3 at offset 5: The coordinator is not aware of this member.", "member_not_known", "-", "-", "duplicated"),
    Text("an old generation", _java("IllegalGeneration"), "member_not_known", "-", "-", "duplicated"),
    Text("poll came too late", f"WARN {MEMBER}consumer poll timeout has expired.", "max_poll_exceeded", "-", "-", "duplicated"),
    Text("poll came too late, to librdkafka", "%4|1700000000.1|MAXPOLL|rd#consumer-1| [thrd:main]: Application maximum poll interval (300000ms) exceeded by 12ms", "max_poll_exceeded", "-", "-", "duplicated"),
    Text("two with one instance id", _java("FencedInstanceId"), "fenced_instance_id", "-", "-", "duplicated"),
    Text("no such offset", f"{CONSUMER}OffsetOutOfRangeException: Fetch position FetchPosition{{offset=9}} is out of range for partition orders-3", "offset_out_of_range", "-", "-", "unknown"),
    Text("the log was cut", f"INFO {MEMBER}Truncation detected for partition orders-3 at offset FetchPosition{{offset=37}}, resetting offset", "log_truncation", "-", "-", "lost"),
    Text("the log was cut, to librdkafka", _code("_AUTO_OFFSET_RESET", -140, "Partition log truncation detected at offset 37: Local: Partition log truncation detected (broker 2)"), "log_truncation", "-", "-", "lost"),
    Text("a position by the reset policy", f"INFO {MEMBER}Resetting offset for partition orders-3 to position FetchPosition{{offset=5}}.", "offset_reset", "-", "-", "unknown"),
    Text("no offset and no reset", f"{CONSUMER}NoOffsetForPartitionException: Undefined offset with no reset policy for partitions: [orders-3]", "no_committed_offset", "-", "-", "neither"),
    Text("the coordinator moved", f"INFO {MEMBER}Group coordinator b:9092 (id: 1 rack: null) is unavailable or invalid due to cause: error response NOT_COORDINATOR.", "coordinator_unavailable", "-", "-", "neither"),
    Text("a damaged batch", "org.apache.kafka.common.KafkaException: Encountered corrupt message when fetching offset 5 for topic-partition orders-3", "corrupt_record", "-", "-", "unknown"),
    Text("Connect stopped at a bad record", f"org.apache.kafka.connect.errors.ConnectException: Tolerance exceeded in error handler\n\tat org.apache.kafka.connect.X.y(X.java:1)\nCaused by: {_java('Serialization')}", "connect_tolerance_exceeded", "-", "-", "neither"),
    Text("Streams rebuilds a store", f"org.apache.kafka.streams.errors.TaskCorruptedException: Tasks [1_4] are corrupted\n\tat org.apache.kafka.streams.X.y(X.java:1)\nCaused by: {CONSUMER}OffsetOutOfRangeException: words", "task_corrupted", "-", "-", "unknown"),
)  # fmt: skip
PYTHONS_CALL = 'Traceback (most recent call last):\n  File "a.py", line 1, in f\n    self.producer.{}_transaction(5)\n'
ENDED = _code("INVALID_TXN_STATE", 48, "Failed to end transaction: Broker: words", "FATAL,")
JAR = "\tat a.B.c(B.java:1) ~[kafka-clients-{}.jar:na]\n"
MAPPED = (
    "org.apache.kafka.common.KafkaException: words\n"
    + JAR
    + f"Caused by: {ERRORS}InvalidPidMappingException: words"
)
FOUND_WHERE = (
    Text("an abort of what is not open, by Python's traceback", PYTHONS_CALL.format("abort") + ENDED, "invalid_txn_state_at_abort", "-", "fatal", "neither"),
    Text("a commit of what is not open, by Python's traceback", PYTHONS_CALL.format("commit") + ENDED, "invalid_txn_state", "-", "fatal", "unknown"),
    Text("a commit that .NET may repeat", "Confluent.Kafka.KafkaRetriableException: words\n   at Confluent.Kafka.Impl.Handle.CommitTransaction(Int32 ms)", "commit_result_unknown", "-", "retriable", "unknown"),
    Text("a call that .NET may repeat", "Confluent.Kafka.KafkaRetriableException: words", "call_may_be_repeated", "-", "retriable", "unknown"),
    Text("the state, wrapped as abortable since 4.1", f"{ECHO}\n{AT}KafkaProducer.commitTransaction(P.java:1)\nCaused by: {_java('TransactionAbortable')}\nCaused by: {_java('InvalidTxnState')}", "invalid_txn_state_at_leader", "-", "abort", "neither"),
    Text("replicas, wrapped as abortable since 4.1", f"{ECHO}\nCaused by: {_java('TransactionAbortable')}\nCaused by: {_java('NotEnoughReplicas')}", "not_enough_replicas", "-", "abort", "neither"),
    Text("the coordinator refuses a commit", "WARN [TransactionCoordinator id=3] TransactionalId: pay-1's state is CompleteAbort, but received transaction marker result to send: COMMIT (kafka.coordinator.transaction.TransactionCoordinator)", "invalid_txn_state", "-", "fatal", "unknown"),
    Text("the mapping, clients before 2.5", MAPPED.format("2.4.1"), "invalid_producer_id_mapping_fatal", "-", "fatal", "neither"),
    Text("the mapping, clients that can abort", MAPPED.format("3.9.0"), "invalid_producer_id_mapping", "-", "abort", "neither"),
    Text("the mapping, clients since 4.0", MAPPED.format("4.0.0"), "invalid_producer_id_mapping_fatal", "-", "fatal", "neither"),
    Text("an answer that a request may not have", "org.apache.kafka.common.KafkaException: Unexpected error in TxnOffsetCommitResponse: The server experienced an unexpected error", "unknown_server_error", "-", "fatal", "neither"),
    Text("an answer to a commit that says nothing", "org.apache.kafka.common.KafkaException: Unhandled error in EndTxnResponse: The server experienced an unexpected error", "commit_answer_unknown", "-", "fatal", "unknown"),
    Text("a producer id for a plain producer", _rd(0, "FATAL", "Fatal error: Broker: Cluster authorization failed: Failed to acquire idempotence PID from broker b1"), "cluster_denied", "fatal", "fatal", "lost"),
    Text("an idle connection of librdkafka", _rd(3, "FAIL", "b1:9092/2: Disconnected (after 300001ms in state UP)"), "disconnected", "retriable", "retriable", "neither"),
    Text("a partition that is not there", _java("Timeout", "Partition 9 of topic orders with partition count 3 is not present in metadata after 60000 ms."), "no_such_partition", "fails", "abort", "neither"),
    Text("a commit under Streams", f"ERROR [app-StreamThread-1] Committing task(s) 0_1 failed.\n{_java('Timeout', 'Timeout expired after 60000ms while awaiting EndTxn(true)')}", "commit_result_unknown_in_streams", "-", "retriable", "neither"),
    Text("a commit under Flink", f"WARN o.a.f.connector.kafka.sink.KafkaCommitter - Encountered retriable exception while committing sink-0-1.\n{_java('Timeout', 'Timeout expired after 60000ms while awaiting EndTxn(true)')}", "commit_result_unknown_in_flink", "-", "retriable", "unknown"),
    Text("a record that Streams processes again", f"org.apache.kafka.streams.errors.StreamsException: Error encountered sending record to topic orders\nCaused by: {_java('RecordTooLarge')}", "record_too_large", "fails", "abort", "duplicated"),
    Text("a report of Connect about a record", f"ERROR Error encountered in task sink-0. Executing stage 'VALUE_CONVERTER' (org.apache.kafka.connect.runtime.errors.LogReporter)\norg.apache.kafka.connect.errors.DataException: words\nCaused by: {_java('Serialization', 'Unknown magic byte!')}", "connect_record_reported", "-", "-", "unknown"),
    Text("a record that cannot be read", _java("Serialization", "Error deserializing Avro message for id 1"), "deserialization_failed", "-", "-", "neither"),
    Text("Connect cannot fence earlier tasks", "org.apache.kafka.connect.errors.ConnectException: Failed to perform zombie fencing", "connect_task_not_started", "-", "-", "neither"),
    Text("a replica that is not in sync became leader", "INFO [QuorumController id=3] Setting new leader for topicId abc, partition 4 to 5 using an unclean election. (org.apache.kafka.controller.PartitionChangeBuilder)", "unclean_election", "-", "-", "unknown"),
    Text("a broker does not cut its replica", "FATAL [ReplicaFetcher replicaId=2, leaderId=1] Exiting because log truncation is not allowed for partition orders-3, words (kafka.server.ReplicaFetcherThread)", "truncation_refused", "-", "-", "unknown"),
    Text("fatal before 3.6, whatever it was", f"ERROR {TX}Aborting producer batches due to fatal error", "error_state", "-", "fatal", "unknown"),
    Text("librdkafka's words without its prefix", "12:00:01 [3] [TXNERR] [thrd:main]: Current transaction failed: words (_TIMED_OUT)", "request_not_answered", "-", "abort", "neither"),
    Text("fenced by the client's words", _rd(1, "TXNERR", "Fatal transaction error: ProduceRequest for orders [1] failed: Broker: Producer attempted an operation with an old epoch (_FENCED)"), "invalid_producer_epoch_fatal", "-", "fatal", "neither"),
    Text("JSON with the exception in `error`", f'{{"level":"error","msg":"commit","error":"{ERRORS}FencedInstanceIdException: words"}}', "fenced_instance_id", "-", "-", "duplicated"),
)  # fmt: skip
GIVEN_UP = "The client hasn't received acknowledgment for some previously sent messages and can no longer retry them. "
STREAMS_EPOCH = "Written offsets would not be recorded since the producer is fenced, indicating the task may be migrated out"
TOPIC_CHECK = "Timed out while checking for or creating topic(s) 'orders'."
KERR = "The broker rejected this static consumer since another consumer with the same group.instance.id has registered"
IN_OTHER_WORDS = (
    Text("sent batches given up, which an abort ends", f"INFO {TX}Transiting to abortable error state due to org.apache.kafka.common.KafkaException: {GIVEN_UP}It is safe to abort the transaction and continue.", "batches_unresolved", "-", "abort", "neither"),
    Text("sent batches given up, as the cause of an echo", f"{ECHO}\n{AT}KafkaProducer.commitTransaction(KafkaProducer.java:1)\nCaused by: org.apache.kafka.common.KafkaException: {GIVEN_UP}It isn't safe to continue.", "batches_unresolved_fatal", "-", "fatal", "neither"),
    Text("an older epoch under Streams", f"ERROR [app-StreamThread-1] Error encountered sending record to topic orders for task 0_1 due to:\n{_java('InvalidProducerEpoch')}\n{STREAMS_EPOCH}", "invalid_producer_epoch_in_streams", "fails", "fatal", "neither"),
    Text("a message on the line below its class", f"{ERRORS}InvalidProducerEpochException:\n  Producer with transactionalId 'pay-1' and (producerId=9, epoch=0) attempted to produce with an old epoch", "invalid_producer_epoch", "-", "abort", "neither"),
    Text("a fatal error of a consumer is no producer's", _code("_FATAL", -150, "Fatal error: Broker: Static consumer fenced by other consumer with same group.instance.id"), "fenced_instance_id", "-", "-", "duplicated"),
    Text("a library that only the place in the source names", '{"time":"2026-01-02T03:04:05Z","level":"warn","caller":"github.com/twmb/franz-go@v1.18.1/pkg/kgo/consumer_group.go:1","message":"join group failed","err":"ILLEGAL_GENERATION: words"}', "member_not_known", "-", "-", "duplicated"),
    Text("a code that a setting of Kafka stands beside", f'level=warn msg=join err="FENCED_INSTANCE_ID: {KERR}"', "fenced_instance_id", "-", "-", "duplicated"),
    Text("a code as franz-go writes it", "2026/01/02 03:04:05 commit: ILLEGAL_GENERATION: Words.", "member_not_known", "-", "-", "duplicated"),
    Text("Sarama's text", "kafka: error while consuming orders/3: kafka server: The provided member is not known in the current generation", "member_not_known", "-", "-", "duplicated"),
    Text("Sarama tries again", "[sarama] producer/broker/1 state change to [retrying] on orders/3 because kafka server: Tried to send a message to a replica that is not the leader for some partition", "leader_moved", "retriable", "retriable", "neither"),
    Text("written, by the text alone", "kafka server: Messages are written to the log, but to fewer in-sync replicas than required", "not_enough_replicas_after_append", "fails", "abort", "unknown"),
    Text("a text of kafkajs in `error`", '{"level":"ERROR","timestamp":"2026-01-02T03:04:05Z","logger":"kafkajs","message":"[Runner] words","error":"The group is rebalancing, so a rejoin is needed"}', "rebalance_in_progress", "-", "-", "duplicated"),
    Text("a commit of .NET's consumer", "Confluent.Kafka.TopicPartitionOffsetException: An error occured committing offsets. Broker: Unknown member", "member_not_known", "-", "-", "duplicated"),
    Text("a commit of Connect that comes again", "WARN WorkerSinkTask{id=s3-0} Commit of offsets timed out (org.apache.kafka.connect.runtime.WorkerSinkTask)", "offset_commit_timed_out", "-", "-", "neither"),
    Text("Streams asks again for a producer id", "WARN [s-StreamThread-1] task [0_1] Timeout exception caught trying to initialize transactions. Will retry initializing the task", "init_timed_out", "-", "retriable", "neither"),
    Text("a commit that was interrupted", f"{_java('Interrupt', 'java.lang.InterruptedException')}\n{AT}KafkaProducer.commitTransaction(KafkaProducer.java:1)", "commit_interrupted", "-", "retriable", "unknown"),
    Text("a producer id that was not given in time", "Failed to initialise Producer ID: Local: Timed out", "init_timed_out", "-", "retriable", "neither"),
    Text("a batch that librdkafka cannot build again", "Fatal error: Local: Inconsistent state: Unable to reconstruct MessageSet (currently with 5 message(s))", "inconsistent_state", "fatal", "fatal", "unknown"),
    Text("a commit in front of which records failed", _rd(3, "TXNERR", "Current transaction failed in state BeginCommit: 1 message(s) failed delivery (see individual delivery reports) (_INCONSISTENT)"), "deliveries_failed", "-", "abort", "neither"),
    Text("an abort by librdkafka's name of the call", f"rd_kafka_abort_transaction: {ENDED}", "invalid_txn_state_at_abort", "-", "fatal", "neither"),
    Text("a consumer without metadata", _java("Timeout", "Timeout expired while fetching topic metadata"), "metadata_request_timed_out", "-", "-", "neither"),
    Text("an offset that Spark does not find, over two lines", "java.lang.IllegalStateException: Cannot fetch offset 5 (GroupId: spark-kafka-source-1, TopicPartition: orders-3).\nSome data may have been lost because they are not available in Kafka any more; either the", "offset_out_of_range", "-", "-", "unknown"),
    Text("a topic that Connect cannot create", f"WARN WorkerSourceTask{{id=src-0}} Failed to send record to topic 'orders' due to an unrecoverable exception: [org.apache.kafka.connect.runtime.AbstractWorkerSourceTask]\norg.apache.kafka.connect.errors.ConnectException: {TOPIC_CHECK}", "connect_topic_not_created", "-", "-", "duplicated"),
    Text("a Spring listener that goes on after it was fenced", f"2026-01-02 03:04:05.006 ERROR 1 --- [ntainer#0-0-C-1] ListenerConsumer : Producer or 'group.instance.id' fenced during transaction\n\n{_java('ProducerFenced')}", "listener_fenced", "-", "fatal", "lost"),
)  # fmt: skip
ALL = (*SEQUENCES, *FENCING, *TRANSACTIONS, *TIMEOUTS, *RECORDS, *CONSUMERS, *FOUND_WHERE, *IN_OTHER_WORDS)  # fmt: skip
