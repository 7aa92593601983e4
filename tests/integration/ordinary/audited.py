"""Producers and transactions that remember what the brokers promised them: the truth of a run."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any, Final

from confluent_kafka import KafkaException, Producer

from service.clock import monotonic, utc_now
from service.sandbox.workloads.clients import CLIENT_ERRORS, client_config, give_up, text_of
from service.sandbox.workloads.counts import Counts
from service.sandbox.workloads.producer import IdempotentProducer
from service.sandbox.workloads.transactions import call_patiently, transactional_config
from service.sandbox.workloads.workload import Workload

# A frozen broker is left after ten seconds, and no record is given up before the run is over.
PATIENT: Final = {
    "socket.timeout.ms": "10000",
    "topic.metadata.refresh.interval.ms": "2000",
    "message.timeout.ms": "600000",
}
TRANSACTION_TIMEOUT_MS: Final = 600_000  # no coordinator ends one of these by its timeout
CALL_SECONDS: Final = 150.0
RECORDS: Final = 6  # of one transaction, spread over its life
ABORTS: Final = 0.15  # of all transactions

Place = tuple[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Pause:
    """A time in which nothing was acknowledged to a producer on a partition."""

    place: Place
    begin: datetime
    end: datetime


@dataclass(eq=False, kw_only=True)
class AuditedProducer(IdempotentProducer):
    """Numbered records, each remembered with the place that the brokers gave it."""

    acknowledged: dict[tuple[int, int], bytes] = field(default_factory=dict)  # (partition, offset)
    next_offset: dict[int, int] = field(default_factory=dict)
    pauses: list[Pause] = field(default_factory=list)
    pause_seconds: float = 20.0  # shorter ones are not remembered
    _last: dict[int, datetime] = field(default_factory=dict, init=False)

    def ends(self) -> dict[int, int]:
        """Return the offset behind the last acknowledged record of each partition."""
        return dict(self.next_offset)

    def _on_delivery(self, error: Any, message: Any) -> None:
        super()._on_delivery(error, message)
        if error is not None:
            return
        partition, now = message.partition(), utc_now()
        self.acknowledged[partition, message.offset()] = message.value()
        self.next_offset[partition] = max(self.next_offset.get(partition, 0), message.offset() + 1)
        last = self._last.get(partition, now)
        if (now - last).total_seconds() > self.pause_seconds:
            self.pauses.append(Pause(place=(self.topic, partition), begin=last, end=now))
        self._last[partition] = now


class End(StrEnum):
    """What the client was told of the end of a transaction."""

    COMMITTED = "committed"
    ABORTED = "aborted"
    NOT_TOLD = "not told"  # an error of the end itself: all or nothing of it is there


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """One transaction, as its client saw it."""

    transactional_id: str
    place: Place
    values: tuple[bytes, ...]
    began: datetime
    ended: datetime
    end: End
    error: str | None = None


@dataclass(eq=False, kw_only=True)
class LongTransactions(Workload):
    """One transactional id: transactions of 30 to 40 s, one after the other, while it is wanted."""

    bootstrap_servers: str = field(kw_only=False)
    partition: int
    chance: random.Random
    first_after: float  # seconds: so that the ends of all fall evenly
    is_wanted: Callable[[int], bool]
    shortest: float = 30.0
    longest: float = 40.0
    ended: list[Ended] = field(default_factory=list)

    @property
    def transactional_id(self) -> str:
        return f"{self.topic}-{self.partition}"

    @property
    def label(self) -> str:
        return f"transactions of {self.transactional_id}"

    def _run(self) -> None:
        client: Any = None
        self._pause(self.first_after)
        while self._goes_on(0):
            if not self.is_wanted(self.partition):
                self._pause(0.5)
                continue
            try:
                client = client or self._new_client()
                self._one(client)
            except CLIENT_ERRORS as exc:
                self.tally.add(Counts(restarts=1, last_error=text_of(exc)))
                self._closed(client)
                client = None
                self._pause(1.0)
        self._closed(client)

    def _new_client(self) -> Any:
        settings = {
            **transactional_config(self.transactional_id, self.settings),
            "transaction.timeout.ms": TRANSACTION_TIMEOUT_MS,
            **PATIENT,
        }
        client = Producer(
            client_config(self.bootstrap_servers, self.security, self.tally, settings)
        )
        try:
            call_patiently(client.init_transactions, seconds=CALL_SECONDS, goes_on=self._is_on)
        except CLIENT_ERRORS:
            self._closed(client)
            raise
        return client

    def _closed(self, client: Any) -> None:
        if client is not None:
            give_up(client, self.tally, seconds=0)

    def _is_on(self) -> bool:
        return self._goes_on(0)

    def _one(self, client: Any) -> None:
        """Make one transaction; raise where the client is beyond use then."""
        number, began, start = len(self.ended), utc_now(), monotonic()
        seconds = self.chance.uniform(self.shortest, self.longest)
        is_commit = self.chance.random() >= ABORTS
        values: list[bytes] = []
        end, error = End.NOT_TOLD, None
        try:
            client.begin_transaction()
            for step in range(RECORDS):
                values.append(f"{self.transactional_id}/{number}/{step}".encode())
                client.produce(self.topic, values[-1], partition=self.partition)
                self._wait(client, start + seconds * (step + 1) / RECORDS)
            end = self._end(client, is_commit=is_commit)
        except CLIENT_ERRORS as exc:
            error = text_of(exc)
            raise
        finally:
            self.ended.append(
                Ended(
                    transactional_id=self.transactional_id,
                    place=(self.topic, self.partition),
                    values=tuple(values),
                    began=began,
                    ended=utc_now(),
                    end=end,
                    error=error,
                )
            )

    def _wait(self, client: Any, until: float) -> None:
        while monotonic() < until and self._is_on():
            client.poll(0)
            self._pause(min(0.5, max(0.0, until - monotonic())))

    def _end(self, client: Any, *, is_commit: bool) -> End:
        if is_commit:
            try:
                call_patiently(client.commit_transaction, seconds=CALL_SECONDS)
            except KafkaException as exc:
                if not exc.args[0].txn_requires_abort():
                    raise
                self.tally.note(text_of(exc))
            else:
                self.tally.add(Counts(transactions_committed=1))
                return End.COMMITTED
        call_patiently(client.abort_transaction, seconds=CALL_SECONDS)
        self.tally.add(Counts(transactions_aborted=1))
        return End.ABORTED


class Pool:
    """All long transactions, of which so many go on at once as is wanted at the time."""

    def __init__(self, servers: str, topic: str, *, size: int, chance: random.Random) -> None:
        self._wanted = 0
        self.parts = [
            LongTransactions(
                servers,
                topic=topic,
                partition=number,
                chance=random.Random(chance.random()),
                first_after=40.0 * number / max(size, 1),
                is_wanted=lambda partition: partition < self._wanted,
            )
            for number in range(size)
        ]

    def want(self, at_once: int) -> None:
        """Let so many go on at once; what is open is ended at its own time."""
        self._wanted = at_once

    @property
    def ended(self) -> list[Ended]:
        return [one for part in self.parts for one in list(part.ended)]

    @property
    def replaced(self) -> dict[str, int]:
        """How often a new client took over, by transactional id."""
        return {part.transactional_id: part.counts.restarts for part in self.parts}

    def stop(self) -> None:
        """End all of them, side by side."""
        enders = [
            threading.Thread(target=part.stop, kwargs={"timeout_seconds": CALL_SECONDS})
            for part in self.parts
        ]
        for ender in enders:
            ender.start()
        for ender in enders:
            ender.join()
