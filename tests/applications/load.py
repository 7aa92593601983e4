"""What is written for an application, and what has come out of it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from confluent_kafka import Consumer

from service.runtime.clock import monotonic, pause
from service.sandbox.workloads.pacing import BURST_SECONDS, Pace

AT_MOST: Final = 100  # records in one step
POLL_SECONDS: Final = 0.2
END_SECONDS: Final = 120.0


@dataclass(eq=False)
class Feeder:
    """Hands out the numbers 0, 1, 2 ... at a rate, in a thread of its own, until it is stopped."""

    emit: Callable[[range], None]
    rate: float  # per second
    burst_seconds: float = BURST_SECONDS  # between two steps
    count: int = field(default=0, init=False)
    error: BaseException | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def stop(self) -> int:
        """Stop, and return how many numbers were handed out."""
        self._stopping.set()
        self._thread.join(END_SECONDS)
        assert not self._thread.is_alive()
        if self.error is not None:
            raise self.error
        return self.count

    def _run(self) -> None:
        pace = Pace(self.rate, burst_seconds=self.burst_seconds)
        try:
            while not self._stopping.is_set():
                due = pace.due(monotonic(), at_most=AT_MOST)
                if due:
                    self.emit(range(self.count, self.count + due))
                    self.count += due
                pause(pace.wait_seconds())
        except Exception as error:  # noqa: BLE001 - raised again where it is stopped
            self.error = error


@dataclass(frozen=True)
class Output:
    """A record that a read_committed reader got."""

    partition: int
    key: bytes | None
    value: bytes


class CommittedReader:
    """Reads a topic as read_committed from its beginning, and remembers when something came."""

    def __init__(self, servers: str, topic: str) -> None:
        self.outputs: list[Output] = []
        self.longest_pause = 0.0  # seconds between two records
        self._last = monotonic()
        self._stopping = threading.Event()
        self._consumer = Consumer(
            {
                "bootstrap.servers": servers,
                "group.id": f"{topic}-checker",
                "auto.offset.reset": "earliest",
                "enable.auto.commit": True,
                "auto.commit.interval.ms": 1000,
                "isolation.level": "read_committed",
                "topic.metadata.refresh.interval.ms": 2000,
                "log_level": 2,
            }
        )
        self._consumer.subscribe([topic])
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        self._thread.join(END_SECONDS)
        self._consumer.close()

    def _run(self) -> None:
        while not self._stopping.is_set():
            for message in self._consumer.consume(500, POLL_SECONDS):
                if message.error() is None:
                    value, partition = message.value(), message.partition()
                    assert value is not None
                    assert partition is not None
                    self.outputs.append(Output(partition, message.key(), value))
                    self._note()

    def _note(self) -> None:
        now = monotonic()
        if len(self.outputs) > 1:
            self.longest_pause = max(self.longest_pause, now - self._last)
        self._last = now
