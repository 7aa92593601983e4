"""Transactions: the client calls with their retries, and one transaction held open on purpose."""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from confluent_kafka import KafkaException, Producer

from collectors.security import Security
from rules.errors import SandboxError
from service.runtime.clock import monotonic
from service.sandbox.workloads.clients import (
    clear_errors,
    client_config,
    count_delivery,
    give_up,
    is_retriable,
)
from service.sandbox.workloads.counts import Counts, Tally
from service.sandbox.workloads.producer import PRODUCER_SETTINGS, value_of

# librdkafka (its issues 5511 and 5456) waits without a limit for a group's coordinator that left
# while it was sent the offsets of a transaction; it searches for the new one when its memory has aged.
FORGET_COORDINATORS = {"metadata.max.age.ms": 5000, "connections.max.idle.ms": 5000}
ATTEMPT_SECONDS = 2.0  # short, so that a stop is noticed between two attempts
VALUE_BYTES = 100
TRANSACTION_SECONDS = 10.0
INIT_SECONDS = 60.0  # on a fresh cluster __transaction_state is created first


def call_patiently(
    call: Callable[[float], object],
    *,
    seconds: float = TRANSACTION_SECONDS,
    goes_on: Callable[[], bool] = lambda: True,
) -> None:
    """Repeat a transactional call with its time-out for as long as Kafka says that one may."""
    deadline = monotonic() + seconds
    while True:
        try:
            call(ATTEMPT_SECONDS)
        except KafkaException as exc:
            if not is_retriable(exc) or monotonic() >= deadline or not goes_on():
                raise
        else:
            return


def transactional_config(
    transactional_id: str, settings: Mapping[str, str]
) -> dict[str, str | int | bool]:
    """Return the settings of a transactional producer; `settings` win."""
    return {
        **PRODUCER_SETTINGS,
        **FORGET_COORDINATORS,
        "transactional.id": transactional_id,
        **settings,
    }


@dataclass(eq=False, kw_only=True)
class OpenTransaction:
    """A transaction that stays open until the caller decides: it pins the LSO meanwhile.

    Entering the block begins it, and `records` are appended then (the brokers confirmed them).
    Leaving the block without `commit` or `abandon` aborts it.
    """

    bootstrap_servers: str = field(kw_only=False)
    topic: str
    records: int = 1  # appended at once; 0: none, and then no partition is part of it
    transactional_id: str = field(default_factory=lambda: f"open-{uuid.uuid4()}")
    timeout_ms: int = 60_000  # transaction.timeout.ms: the coordinator aborts it after that
    tally: Tally = field(init=False, default_factory=Tally, repr=False)

    def __post_init__(self) -> None:
        self._client: Any = None
        self._offsets: list[int] = []

    @property
    def counts(self) -> Counts:
        """The totals of this time."""
        return self.tally.read()

    @property
    def is_open(self) -> bool:
        """Whether this side has neither ended nor abandoned it; a time-out is not seen here."""
        return self._client is not None

    def begin(self) -> None:
        """Begin it; an older owner of the same transactional id is fenced."""
        settings = {
            **transactional_config(self.transactional_id, {}),
            "transaction.timeout.ms": self.timeout_ms,
            "message.timeout.ms": self.timeout_ms,  # librdkafka wants it no longer than that
        }
        config = client_config(self.bootstrap_servers, Security(), self.tally, settings)
        with clear_errors(f"transaction {self.transactional_id} could not begin"):
            self._client = Producer(config)
            call_patiently(self._client.init_transactions, seconds=INIT_SECONDS)
            self._client.begin_transaction()

    def produce(self, records: int = 1, *, partition: int = 0) -> tuple[int, ...]:
        """Append records and return their offsets, once the brokers confirmed all of them."""
        client = self._require_client()
        self._offsets = []
        with clear_errors(f"transaction {self.transactional_id}, {self.topic}-{partition}"):
            for number in range(records):
                value = value_of(number, VALUE_BYTES)
                client.produce(
                    self.topic, value, partition=partition, on_delivery=self._on_delivery
                )
                self.tally.add(Counts(sent=1))
            client.flush(self.timeout_ms / 1000)
        if len(self._offsets) != records:
            raise SandboxError(
                f"{records - len(self._offsets)} of {records} records were not appended to "
                f"{self.topic}-{partition}: {self.counts.last_error}"
            )
        return tuple(self._offsets)

    def commit(self) -> None:
        """Commit it; its records become readable once the markers are written."""
        self._end(self._require_client().commit_transaction, "commit")
        self.tally.add(Counts(transactions_committed=1))

    def abort(self) -> None:
        """Abort it; its records stay in the log and are never read by read_committed."""
        self._end(self._require_client().abort_transaction, "abort")
        self.tally.add(Counts(transactions_aborted=1))

    def abandon(self) -> None:
        """Drop the client as a crash would: the transaction stays open until it times out."""
        self._require_client()
        self._client = None

    def __enter__(self) -> Self:
        with contextlib.ExitStack() as undo:
            undo.push(self)
            self.begin()
            if self.records:
                self.produce(self.records)
            undo.pop_all()
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if not self.is_open:
            return
        try:
            self.abort()
        except SandboxError as own:
            if error is None:
                raise
            error.add_note(f"and {own}")  # the error of the block comes first

    def _end(self, call: Callable[[float], object], verb: str) -> None:
        client, self._client = self._client, None
        with clear_errors(f"transaction {self.transactional_id} could not {verb}"):
            call_patiently(call)
        give_up(client, self.tally, seconds=0)

    def _require_client(self) -> Any:
        if self._client is None:
            raise SandboxError(f"transaction {self.transactional_id} is not open")
        return self._client

    def _on_delivery(self, error: Any, message: Any) -> None:
        count_delivery(self.tally, error)
        if error is None:
            self._offsets.append(message.offset())
