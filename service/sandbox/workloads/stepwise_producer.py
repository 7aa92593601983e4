"""Producers as applications use them, whose caller says when they get how many records.

They write to one topic of one partition: numbers as values, from 0 on, in their order. What they do
with the records, with errors and with their sequences is the client library's own business.
"""

from __future__ import annotations

from functools import partial
from typing import Any, Final, Protocol

from confluent_kafka import Producer

from collectors.security import Security
from service.sandbox.workloads.clients import (
    CLIENT_ERRORS,
    clear_errors,
    client_config,
    count_delivery,
    drain,
    give_up,
)
from service.sandbox.workloads.counts import Counts, Tally
from service.sandbox.workloads.producer import value_of
from service.sandbox.workloads.raw_producer import VALUE_BYTES

IN_FLIGHT: Final = 5  # requests on one connection, as many as idempotence allows
LINGER_MS: Final = 20  # so that records that are handed over together go in one batch
# With this many records of a partition under way librdkafka sends no further request of it (2.16
# compares records with the limit of requests): only smaller batches can overtake each other.
MOST_UNDER_WAY: Final = 5
METADATA_MS: Final = 2000  # a new leader is searched for so often
SETTLE_SECONDS: Final = 30.0
STUCK_SECONDS: Final = 1.0
END_SECONDS: Final = 5.0
DELIVERY_MS: Final = 120_000  # until a client gives a record up; Java's own default


class StepwiseProducer(Protocol):
    """A producer that gets its records step by step."""

    def hand_over(self, count: int) -> None:
        """Give it so many records more; their delivery is reported later, or never."""

    def hold(self) -> None:
        """Let it send nothing more than what it was given, where it would do so by itself."""

    def has_given_up(self) -> bool:
        """Wait for the fate of all records; return whether the application got an error for some."""

    def close(self) -> None:
        """End it; what is not sent by then is dropped."""


class StepwiseLibrdkafka:
    """An idempotent producer of librdkafka, or a transactional one in one long transaction."""

    def __init__(
        self,
        bootstrap_servers: str,
        topic: str,
        *,
        batch: int,
        transactional_id: str | None = None,
        delivery_ms: int = DELIVERY_MS,
    ) -> None:
        self._topic = topic
        self._clear_errors = partial(clear_errors, f"producer to {topic}")
        self._is_transactional = transactional_id is not None
        self._tally = Tally()
        own: dict[str, Any] = {"message.timeout.ms": delivery_ms}
        if transactional_id is not None:  # which has a shorter timeout of its own, and needs it so
            own = {"transactional.id": transactional_id}
        settings: dict[str, Any] = {
            "acks": "all",
            "enable.idempotence": True,
            "max.in.flight": IN_FLIGHT,
            "linger.ms": LINGER_MS,
            "batch.num.messages": batch,
            "topic.metadata.refresh.interval.ms": METADATA_MS,
            **own,
        }
        self._client = Producer(client_config(bootstrap_servers, Security(), self._tally, settings))
        if self._is_transactional:
            with self._clear_errors():
                self._client.init_transactions(SETTLE_SECONDS)
                self._client.begin_transaction()

    def hand_over(self, count: int) -> None:
        """Give it so many records more."""
        with self._clear_errors():
            for _ in range(count):
                self._client.produce(
                    self._topic,
                    value=value_of(self._tally.read().sent, VALUE_BYTES),
                    on_delivery=lambda error, _message: count_delivery(self._tally, error),
                )
                self._tally.add(Counts(sent=1))
            self._client.poll(0)

    def hold(self) -> None:
        """Do nothing: it sends what it was given, and no more."""

    def has_given_up(self) -> bool:
        """Wait for the fate of all records; return whether the application got an error for some."""
        # A transaction that can only be aborted keeps its records until it is.
        drain(self._client, seconds=STUCK_SECONDS if self._is_transactional else SETTLE_SECONDS)
        counts = self._tally.read()  # the reports beside a fatal error may be lost, see `clients`
        return counts.failed + counts.unreported > 0

    def start_over(self, count: int) -> None:
        """Abort the transaction and give so many records to a new one, as applications do."""
        with self._clear_errors():
            self._client.abort_transaction(SETTLE_SECONDS)
            self._client.begin_transaction()
        self.hand_over(count)

    def close(self) -> None:
        """Commit or abort what is open, as far as that is possible, and end."""
        if self._is_transactional:
            for end in (self._client.commit_transaction, self._client.abort_transaction):
                try:
                    end(END_SECONDS)
                except CLIENT_ERRORS:  # a fatal error rejects both: the timeout ends it then
                    continue
                break
        give_up(self._client, self._tally, seconds=0)
