"""The settings that are read, by their names in Kafka: what decides whether records last, repeat or vanish.

A broker's answer carries every name again for every topic, so that only these are queried.
Source: `TopicConfig` and the brokers' `*Configs` classes of Kafka 2.8 to 4.2; a release leaves out what
it does not know.
"""

from __future__ import annotations

from typing import Final

CLEANUP_POLICY: Final = "cleanup.policy"
DELETE_RETENTION_MS: Final = "delete.retention.ms"
MAX_MESSAGE_BYTES: Final = "max.message.bytes"
MIN_INSYNC_REPLICAS: Final = "min.insync.replicas"
RETENTION_BYTES: Final = "retention.bytes"
RETENTION_MS: Final = "retention.ms"
UNCLEAN_ELECTION: Final = "unclean.leader.election.enable"

TOPIC_KEYS: Final = (
    CLEANUP_POLICY,
    "compression.type",
    DELETE_RETENTION_MS,
    "local.retention.bytes",
    "local.retention.ms",
    "max.compaction.lag.ms",
    MAX_MESSAGE_BYTES,
    "message.timestamp.after.max.ms",
    "message.timestamp.before.max.ms",
    "message.timestamp.type",
    "min.compaction.lag.ms",
    MIN_INSYNC_REPLICAS,
    "remote.storage.enable",
    RETENTION_BYTES,
    RETENTION_MS,
    "segment.bytes",
    "segment.ms",
    UNCLEAN_ELECTION,
)

DEFAULT_REPLICATION: Final = "default.replication.factor"
FETCH_MAX_BYTES: Final = "replica.fetch.max.bytes"
FETCH_RESPONSE_MAX_BYTES: Final = "replica.fetch.response.max.bytes"
LOG_CLEANER_ENABLE: Final = "log.cleaner.enable"
MESSAGE_MAX_BYTES: Final = "message.max.bytes"
OFFSETS_PARTITIONS: Final = "offsets.topic.num.partitions"
OFFSETS_REPLICATION: Final = "offsets.topic.replication.factor"
OFFSETS_RETENTION_MINUTES: Final = "offsets.retention.minutes"
PARTITION_VERIFICATION: Final = "transaction.partition.verification.enable"
PRODUCER_ID_EXPIRATION_MS: Final = "producer.id.expiration.ms"
TRANSACTION_LOG_MIN_ISR: Final = "transaction.state.log.min.isr"
TRANSACTION_LOG_PARTITIONS: Final = "transaction.state.log.num.partitions"
TRANSACTION_LOG_REPLICATION: Final = "transaction.state.log.replication.factor"
TRANSACTION_MAX_TIMEOUT_MS: Final = "transaction.max.timeout.ms"
TRANSACTIONAL_ID_EXPIRATION_MS: Final = "transactional.id.expiration.ms"

BROKER_KEYS: Final = (
    "auto.create.topics.enable",
    "auto.leader.rebalance.enable",
    "broker.session.timeout.ms",
    "compression.type",
    DEFAULT_REPLICATION,
    "group.initial.rebalance.delay.ms",
    "inter.broker.protocol.version",
    "log.cleaner.delete.retention.ms",
    LOG_CLEANER_ENABLE,
    "log.cleanup.policy",
    "log.flush.interval.messages",
    "log.flush.interval.ms",
    "log.message.timestamp.type",
    "log.retention.bytes",
    "log.retention.hours",
    "log.retention.minutes",
    "log.retention.ms",
    "log.segment.bytes",
    MESSAGE_MAX_BYTES,
    MIN_INSYNC_REPLICAS,
    "num.partitions",
    OFFSETS_RETENTION_MINUTES,
    OFFSETS_PARTITIONS,
    OFFSETS_REPLICATION,
    PRODUCER_ID_EXPIRATION_MS,
    FETCH_MAX_BYTES,
    FETCH_RESPONSE_MAX_BYTES,
    "replica.lag.time.max.ms",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms",
    TRANSACTION_MAX_TIMEOUT_MS,
    PARTITION_VERIFICATION,
    TRANSACTION_LOG_MIN_ISR,
    TRANSACTION_LOG_PARTITIONS,
    TRANSACTION_LOG_REPLICATION,
    "transaction.two.phase.commit.enable",
    TRANSACTIONAL_ID_EXPIRATION_MS,
    UNCLEAN_ELECTION,
)

ELR_FEATURE: Final = "eligible.leader.replicas.version"
METADATA_FEATURE: Final = "metadata.version"
TRANSACTION_FEATURE: Final = "transaction.version"
