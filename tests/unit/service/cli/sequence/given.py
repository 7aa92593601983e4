"""Lines as brokers write them, and what is read of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC
from typing import Any

from rules.facts.broker_log import LogEvent, Origin, SequenceForm, SequenceRejected
from rules.facts.identity import BrokerId
from service.cli.sequence.explaining import ReadEvent, Reading, events_of
from service.cli.sequence.input_logs import InputLog
from service.cli.sequence.pasted import Pasted
from tests.factories import at

TOPIC_ID = "10MutW2kQReRXczn4GtumQ"
OUT_OF_ORDER = "org.apache.kafka.common.errors.OutOfOrderSequenceException"


def rejected(
    incoming: int,
    current: int,
    *,
    producer: int = 2001,
    topic: str = "orders",
    offset: int = 3,
    second: int = 0,
    broker: int = 1,
) -> list[str]:
    """Return the two lines of a rejection by Kafka 4.1, at so many seconds after noon."""
    name, minute = f"{topic}-0", f"{second // 60:02}:{second % 60:02}"
    return [
        (
            f"[2026-11-21 12:{minute},159] ERROR [ReplicaManager broker={broker}] Error processing append "
            f"operation on partition {TOPIC_ID}:{name} (kafka.server.ReplicaManager)"
        ),
        (
            f"{OUT_OF_ORDER}: Out of order sequence number for producer {producer} at offset {offset} "
            f"in partition {name}: {incoming} (incoming seq. number), {current} "
            "(current end sequence number)"
        ),
    ]


def event(**overrides: Any) -> SequenceRejected:
    """Return the textbook rejection: expected 3, got 27."""
    base: dict[str, Any] = {
        "origin": Origin(source="server.log", broker_id=BrokerId(1), at=at(0)),
        "form": SequenceForm.OUT_OF_ORDER,
        "producer_id": 2001,
        "topic": "orders",
        "partition": 0,
        "offset": 3,
        "incoming_sequence": 27,
        "current_sequence": 2,
    }
    return SequenceRejected(**base | overrides)


def reading(lines: Sequence[str], source: str = "server.log") -> Reading:
    """Return what is read of lines."""
    return reading_all({source: lines})


def reading_all(logs: Mapping[str, Sequence[str]]) -> Reading:
    """Return what is read of several logs."""
    found = Reading(UTC)
    for name, lines in logs.items():
        found.add(name, [[line.encode() for line in lines]])
    return found


def read_events(events: Iterable[LogEvent], *logs: InputLog) -> tuple[ReadEvent, ...]:
    """Return what is put together of lines that were read."""
    pasted = Pasted()
    pasted.add(events)
    return events_of(pasted, logs)
