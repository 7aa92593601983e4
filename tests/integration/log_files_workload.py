"""Partitions whose files hold everything that a log can hold: transactions of each kind, codecs, segments, compaction."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Final

from confluent_kafka import Consumer, Producer, TopicPartition

from service.sandbox.cluster.admin import SandboxAdmin
from tests.integration.clients import (
    FLUSH_SECONDS,
    commit_offset,
    produce,
    produce_in_transaction,
    transactional_producer,
)

SEGMENT_BYTES: Final = 1024 * 1024  # the least that brokers take since 4.0
RECORDS_OF_CODEC: Final = 400
VALUE_BYTES: Final = 2000
CODECS: Final = ("none", "gzip", "snappy", "lz4", "zstd")


@dataclass(frozen=True, slots=True)
class Written:
    """What was written."""

    topic: str
    group: str
    transactional_id: str
    open_producer: Producer  # whose transaction is open as long as it lives


def write(bootstrap: str, name: str) -> Written:
    """Make a topic of one partition on all brokers, and write to it."""
    settings = {"segment.bytes": str(SEGMENT_BYTES)}
    SandboxAdmin(bootstrap).create_topic(name, partitions=1, configs=settings)
    for codec in CODECS:
        _produce_compressed(bootstrap, name, codec)
    produce(bootstrap, name, 20)
    produce(bootstrap, name, 5, acks="1")
    id_ = f"{name}-ended"
    _end_transactions(bootstrap, name, id_)
    for offset in (3, 7, 5):
        commit_offset(bootstrap, f"{name}-plain", name, offset)
    left_open = transactional_producer(bootstrap, f"{name}-open")
    produce_in_transaction(left_open, name, 3)
    return Written(name, f"{name}-group", id_, left_open)


def _produce_compressed(bootstrap: str, topic: str, codec: str) -> None:
    """Append more than half a segment in batches of several records, half of which can be compressed."""
    producer = Producer(
        {"bootstrap.servers": bootstrap, "compression.type": codec, "enable.idempotence": True, "linger.ms": 50}
    )  # fmt: skip
    for number in range(RECORDS_OF_CODEC):
        value = os.urandom(800) + bytes(VALUE_BYTES - 800)
        producer.produce(topic, value, key=f"{codec}-{number}".encode(), partition=0)
    assert producer.flush(FLUSH_SECONDS) == 0


def _end_transactions(bootstrap: str, topic: str, id_: str) -> None:
    """Commit and abort transactions, with the offsets of a group in them."""
    producer = transactional_producer(bootstrap, id_)
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": f"{topic}-group"})
    try:
        for number in range(6):
            produce_in_transaction(producer, topic, number + 1)
            producer.send_offsets_to_transaction(
                [TopicPartition(topic, 0, 10 * number)],
                consumer.consumer_group_metadata(),
                FLUSH_SECONDS,
            )
            if number % 3 == 1:
                producer.abort_transaction(FLUSH_SECONDS)
            else:
                producer.commit_transaction(FLUSH_SECONDS)
    finally:
        consumer.close()
