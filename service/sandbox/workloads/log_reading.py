"""Read a whole partition, and a group's commit, with an ordinary client."""

from __future__ import annotations

import uuid
from contextlib import closing
from typing import Any, Final

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, TopicPartition

from rules.errors import SandboxError
from rules.facts.identity import TopicPartition as Place
from service.runtime.clock import monotonic
from service.sandbox.workloads.clients import POLL_SECONDS, QUIET, clear_errors, describe

READ_SECONDS: Final = 30.0


def read_records(bootstrap_servers: str, where: Place) -> dict[int, bytes]:
    """Return the values from log start to high watermark by offset, committed or not.

    Markers are no records. What is appended meanwhile may be there or not. `bootstrap_servers`
    should hold no paused broker: it accepts connections and never answers.
    """
    client = _client(bootstrap_servers, f"reader-{uuid.uuid4()}")
    place = TopicPartition(where.topic, where.partition, OFFSET_BEGINNING)
    with clear_errors(f"{where} cannot be read"), closing(client):
        _, end = client.get_watermark_offsets(place, timeout=READ_SECONDS)
        client.assign([place])
        return _read_to(client, end, where)


def _read_to(client: Any, end: int, where: Place) -> dict[int, bytes]:
    """Read up to the end of the log, or to where it was at first while others append to it."""
    records: dict[int, bytes] = {}
    deadline = monotonic() + READ_SECONDS
    while monotonic() < deadline:
        message = client.poll(POLL_SECONDS)
        if message is None:
            continue
        if message.error() is None:
            records[message.offset()] = message.value()
            if message.offset() >= end - 1:
                return records
        elif message.error().code() == KafkaError._PARTITION_EOF:  # noqa: SLF001 - its public name
            return records
        elif message.error().fatal():
            raise SandboxError(f"{where} cannot be read: {describe(message.error())}")
    raise SandboxError(f"{where} could not be read to its end within {READ_SECONDS:.0f} s")


def committed_offset(bootstrap_servers: str, group: str, where: Place) -> int | None:
    """Return what a group has committed on a partition; None when nothing."""
    client = _client(bootstrap_servers, group)
    place = TopicPartition(where.topic, where.partition)
    with clear_errors(f"commit of {group} on {where}"), closing(client):
        [position] = client.committed([place], timeout=READ_SECONDS)
    return position.offset if position.offset >= 0 else None


def _client(bootstrap_servers: str, group: str) -> Any:
    return Consumer(
        {
            "bootstrap.servers": bootstrap_servers,
            "group.id": group,
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "isolation.level": "read_uncommitted",
            "log_level": QUIET,
        }
    )
