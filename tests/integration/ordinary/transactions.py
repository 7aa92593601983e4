"""Transactions of 30 to 40 s that remember what they wrote, and how their client saw them end."""

from __future__ import annotations

import random
import threading
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum
from typing import Any, Final

from confluent_kafka import KafkaException, Producer

from rules.errors import SandboxError
from rules.facts.identity import TopicPartition
from service.runtime.clock import monotonic
from service.sandbox.cluster.cluster import Sandbox
from service.sandbox.workloads.clients import CLIENT_ERRORS, client_config, give_up, text_of
from service.sandbox.workloads.counts import Counts
from service.sandbox.workloads.raw_cluster import RawCluster
from service.sandbox.workloads.raw_producer import Protocol, RawProducer
from service.sandbox.workloads.transactions import call_patiently, transactional_config
from service.sandbox.workloads.workload import Workload
from tests.integration.ordinary.audited import PATIENT, Place

TIMEOUT: Final = timedelta(minutes=10)  # no coordinator ends one of these by its timeout
CALL_SECONDS: Final = 150.0
RECORDS: Final = 6  # of one transaction, spread over its life
ABORTS: Final = 0.15  # of all transactions
SHORTEST, LONGEST = 30.0, 40.0  # seconds from begin to commit


class Outcome(StrEnum):
    """What the client was told of the end of a transaction."""

    COMMITTED = "committed"
    ABORTED = "aborted"
    UNKNOWN = "unknown"  # an error of the end itself: all or nothing of it is there


@dataclass(slots=True, kw_only=True)
class TransactionResult:
    """One transaction, as its client saw it: the values that it wrote, or their offsets."""

    transactional_id: str
    place: Place
    written: list[bytes | int] = field(default_factory=list)
    outcome: Outcome = Outcome.UNKNOWN


@dataclass(eq=False, kw_only=True)
class LongTransactions(Workload):
    """One transactional id: one transaction after the other in one partition, while it is wanted."""

    partition: int
    chance: random.Random
    first_after: float  # seconds: so that the ends of all fall evenly
    is_wanted: Callable[[int], bool]
    results: list[TransactionResult] = field(default_factory=list)
    is_open: bool = field(default=False, init=False)

    @property
    def transactional_id(self) -> str:
        return f"{self.topic}-{self.partition}"

    @property
    def label(self) -> str:
        return f"transactions of {self.transactional_id}"

    @abstractmethod
    def _new_client(self) -> Any:
        """Return one that owns the transactional id."""

    @abstractmethod
    def _write(self, client: Any, text: bytes, /) -> bytes | int:
        """Write a record, begin with the first; return its value or its offset."""

    @abstractmethod
    def _finish(self, client: Any, *, is_commit: bool) -> Outcome:
        """Commit or abort; raise where the client is beyond use then."""

    @abstractmethod
    def _close(self, client: Any) -> None:
        """Give it up, whatever is open."""

    def _run(self) -> None:
        client: Any = None
        self._pause(self.first_after)
        while self._is_on():
            if not self.is_wanted(self.partition):
                self._pause(0.5)
                continue
            self.is_open = True
            try:
                client = client or self._new_client()
                self._make_one(client)
            except (*CLIENT_ERRORS, SandboxError) as exc:
                own = isinstance(exc, SandboxError)
                self.tally.add(Counts(restarts=1, last_error=str(exc) if own else text_of(exc)))
                self._close(client)
                client = None
                self._pause(1.0)
            self.is_open = False
        self._close(client)

    def _is_on(self) -> bool:
        return self._goes_on(0)

    def _make_one(self, client: Any) -> None:
        number, start = len(self.results), monotonic()
        seconds = self.chance.uniform(SHORTEST, LONGEST)
        is_commit = self.chance.random() >= ABORTS
        made = TransactionResult(
            transactional_id=self.transactional_id, place=(self.topic, self.partition)
        )
        try:
            for step in range(RECORDS):
                text = f"{self.transactional_id}/{number}/{step}".encode()
                made.written.append(self._write(client, text))
                self._wait(start + seconds * (step + 1) / RECORDS)
            made.outcome = self._finish(client, is_commit=is_commit)
        finally:
            self.results.append(made)

    def _wait(self, until: float) -> None:
        while monotonic() < until and self._is_on():
            self._pause(min(1.0, max(0.0, until - monotonic())))


@dataclass(eq=False, kw_only=True)
class OfLibrdkafka(LongTransactions):
    """As librdkafka makes them, and as Java clients did before Kafka 4."""

    bootstrap_servers: str = field(kw_only=False)
    _is_begun: bool = field(default=False, init=False)

    def _new_client(self) -> Any:
        settings = {
            **transactional_config(self.transactional_id, self.settings),
            "transaction.timeout.ms": TIMEOUT // timedelta(milliseconds=1),
            **PATIENT,
        }
        client = Producer(
            client_config(self.bootstrap_servers, self.security, self.tally, settings)
        )
        self._is_begun = False
        try:
            call_patiently(client.init_transactions, seconds=CALL_SECONDS, goes_on=self._is_on)
        except CLIENT_ERRORS:
            self._close(client)
            raise
        return client

    def _write(self, client: Any, text: bytes, /) -> bytes | int:
        if not self._is_begun:
            client.begin_transaction()
            self._is_begun = True
        client.produce(self.topic, text, partition=self.partition)
        client.poll(0)
        return text

    def _finish(self, client: Any, *, is_commit: bool) -> Outcome:
        self._is_begun = False
        if is_commit:
            try:
                call_patiently(client.commit_transaction, seconds=CALL_SECONDS)
            except KafkaException as exc:
                if not exc.args[0].txn_requires_abort():
                    raise
                self.tally.note(text_of(exc))
            else:
                return Outcome.COMMITTED
        call_patiently(client.abort_transaction, seconds=CALL_SECONDS)
        return Outcome.ABORTED

    def _close(self, client: Any) -> None:
        if client is not None:
            give_up(client, self.tally, seconds=0)


@dataclass(eq=False, kw_only=True)
class OfProtocolV2(LongTransactions):
    """As Java clients make them since Kafka 4 (KIP-890), by single requests: no leader may be away."""

    cluster: Sandbox = field(kw_only=False)

    def _new_client(self) -> Any:
        producer = RawProducer(
            cluster=RawCluster(self.cluster),
            transactional_id=self.transactional_id,
            protocol=Protocol.V2,
            timeout=TIMEOUT,
        )
        try:
            producer.begin()
        except SandboxError:
            self._close(producer)
            raise
        return producer

    def _write(self, client: Any, _text: bytes, /) -> bytes | int:
        offset: int = client.produce(TopicPartition(self.topic, self.partition), 1)
        return offset

    def _finish(self, client: Any, *, is_commit: bool) -> Outcome:
        client.end(commit=is_commit)
        return Outcome.COMMITTED if is_commit else Outcome.ABORTED

    def _close(self, client: Any) -> None:
        if client is not None:
            client.cluster.close()


class Pool:
    """All long transactions, of which so many go on at once as is wanted at the time.

    The first `always` may go on whatever happens; of the others every second is of protocol v2.
    """

    def __init__(
        self, cluster: Sandbox, topic: str, *, size: int, always: int, chance: random.Random
    ) -> None:
        self._wanted = 0
        self.parts = [
            self._part(
                cluster,
                topic,
                number,
                size,
                is_v2=number >= always and number % 2 == 0,
                chance=chance,
            )
            for number in range(size)
        ]

    def _part(
        self,
        cluster: Sandbox,
        topic: str,
        number: int,
        size: int,
        *,
        is_v2: bool,
        chance: random.Random,
    ) -> LongTransactions:
        common: dict[str, Any] = {
            "topic": topic,
            "partition": number,
            "chance": random.Random(chance.random()),
            "first_after": LONGEST * number / size,
            "is_wanted": lambda partition: partition < self._wanted,
        }
        if is_v2:
            return OfProtocolV2(cluster, **common)
        return OfLibrdkafka(cluster.bootstrap_servers, **common)

    def want(self, at_once: int) -> None:
        """Let so many go on at once; what is open is ended at its own time."""
        self._wanted = at_once

    @property
    def is_as_wanted(self) -> bool:
        """Whether nothing is open beyond what may be."""
        return not any(part.is_open for part in self.parts[self._wanted :])

    @property
    def results(self) -> list[TransactionResult]:
        return [result for part in self.parts for result in list(part.results)]

    def stop(self) -> None:
        """Outcome all of them, side by side."""
        enders = [
            threading.Thread(target=part.stop, kwargs={"timeout_seconds": CALL_SECONDS})
            for part in self.parts
        ]
        for ender in enders:
            ender.start()
        for ender in enders:
            ender.join()
