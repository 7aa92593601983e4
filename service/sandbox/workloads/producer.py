"""Producers of plain records whose retries neither repeat nor reorder (acks=all, idempotent)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from confluent_kafka import KafkaException, Producer

from rules.errors import SandboxError
from service.runtime.clock import monotonic
from service.sandbox.workloads.clients import (
    CLIENT_ERRORS,
    client_config,
    give_up,
    is_fatal,
    text_of,
)
from service.sandbox.workloads.counts import Counts
from service.sandbox.workloads.pacing import TICK_SECONDS, Pace
from service.sandbox.workloads.workload import Workload

AT_ONCE = 500  # records between two readings of the clock
KEYS = 1000  # distinct ones
FLUSH_SECONDS = 10.0
RESTART_SECONDS = 0.5
PRODUCER_SETTINGS: dict[str, str | int | bool] = {
    "acks": "all",
    "enable.idempotence": True,
    "partitioner": "murmur2_random",  # Java's: the same key goes to the same partition
    "queue.buffering.max.messages": 10_000,  # an outage shows as a stall, not as memory
}


def value_of(number: int, size: int) -> bytes:
    """Return `number` in decimal, padded with zeros to exactly `size` bytes."""
    return f"{number:0{size}d}".encode()[-size:]


@dataclass(eq=False, kw_only=True)
class IdempotentProducer(Workload):
    """Sends numbered records; key `number % KEYS` decides the partition.

    After a fatal error (say, a leader that lost records) the client is made anew and goes on;
    `counts.restarts` counts that.
    """

    bootstrap_servers: str = field(kw_only=False)
    rate: float | None = 200.0  # records per second; None: as fast as it goes
    size: int = 100  # bytes of a value

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.size < 1:
            raise SandboxError("size (bytes) of a producer must be at least 1")
        self._pace = Pace(self.rate)

    @property
    def label(self) -> str:
        """How a message calls this workload."""
        return f"producer to {self.topic}"

    def _run(self) -> None:
        client = self._make_client()
        while self._goes_on(self.counts.sent):
            try:
                self._produce_due(client)
            except CLIENT_ERRORS as exc:
                if not is_fatal(exc):
                    raise
                self.tally.add(Counts(restarts=1, last_error=text_of(exc)))
                give_up(client, self.tally, seconds=0)
                self._pause(RESTART_SECONDS)
                client = self._make_client()
        give_up(client, self.tally, seconds=FLUSH_SECONDS)

    def _make_client(self) -> Any:
        settings = {**PRODUCER_SETTINGS, **self.settings}
        return Producer(client_config(self.bootstrap_servers, self.security, self.tally, settings))

    def _produce_due(self, client: Any) -> None:
        due = self._pace.due(monotonic(), at_most=AT_ONCE)
        if self.count is not None:
            due = min(due, self.count - self.counts.sent)
        took_all = all(self._produce(client) for _ in range(due))
        client.poll(self._pace.wait_seconds() if took_all else TICK_SECONDS)

    def _produce(self, client: Any) -> bool:
        number = self.counts.sent
        try:
            client.produce(
                self.topic,
                key=str(number % KEYS),
                value=value_of(number, self.size),
                on_delivery=self._on_delivery,
            )
        except BufferError:  # the queue is full: the brokers are slow or away
            return False
        except KafkaException as exc:
            if is_fatal(exc):
                raise
            self.tally.add(Counts(sent=1, failed=1, last_error=text_of(exc)))
            return True
        self.tally.add(Counts(sent=1))
        return True
