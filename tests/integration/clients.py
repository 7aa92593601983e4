"""Plain clients for tests: records, transactions and commits, each in one call."""

from __future__ import annotations

from typing import Final

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition

from service.runtime.clock import wait_until

# Its partition of __consumer_offsets is just being led, or is moving: the client asks who has it once more.
IS_MOVING: Final = frozenset(
    {
        KafkaError.NOT_COORDINATOR,
        KafkaError.COORDINATOR_NOT_AVAILABLE,
        KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
    }
)
FLUSH_SECONDS = 180
TRANSACTION_TIMEOUT_MS = 300_000  # longer than any test takes on a busy machine


def produce(
    bootstrap: str,
    topic: str,
    count: int,
    *,
    partition: int = 0,
    acks: str = "all",
    is_idempotent: bool = False,
    value: bytes = b"value",
) -> None:
    """Append records; with acks=1 they are acknowledged by the leader alone."""
    settings = {"acks": acks, "enable.idempotence": is_idempotent, "linger.ms": 0}
    producer = Producer({"bootstrap.servers": bootstrap, **settings})
    for _ in range(count):
        producer.produce(topic, value, partition=partition)
    assert producer.flush(FLUSH_SECONDS) == 0


def transactional_producer(bootstrap: str, transactional_id: str) -> Producer:
    """Return a producer that is ready to begin a transaction."""
    producer = Producer(
        {
            "bootstrap.servers": bootstrap,
            "transactional.id": transactional_id,
            "transaction.timeout.ms": TRANSACTION_TIMEOUT_MS,
            "linger.ms": 0,
        }
    )
    producer.init_transactions(FLUSH_SECONDS)
    return producer


def produce_in_transaction(producer: Producer, topic: str, count: int) -> None:
    """Begin a transaction and append records to partition 0; it stays open."""
    producer.begin_transaction()
    for _ in range(count):
        producer.produce(topic, b"value", partition=0)
    assert producer.flush(FLUSH_SECONDS) == 0


def commit_offset(bootstrap: str, group: str, topic: str, offset: int, partition: int = 0) -> None:
    """Commit an offset without joining the group, as soon as the group has a coordinator."""
    commit_position(bootstrap, group, TopicPartition(topic, partition, offset))


def commit_position(bootstrap: str, group: str, position: TopicPartition) -> None:
    """Commit an offset, with its leader epoch if it has one, without joining the group."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": group})
    try:
        assert wait_until(
            lambda: _is_committed(consumer, position), timeout_seconds=FLUSH_SECONDS
        ), f"group {group} has no coordinator"
    finally:
        consumer.close()


def _is_committed(consumer: Consumer, position: TopicPartition) -> bool:
    """Commit; False while the coordinator moves, which a client library raises at once."""
    try:
        [answer] = consumer.commit(offsets=[position], asynchronous=False)
    except KafkaException as exc:
        if exc.args[0].code() in IS_MOVING:
            return False
        raise
    assert answer.error is None, answer.error
    return True
