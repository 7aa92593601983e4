"""Read, process, write: a transactional pipeline that passes every record on exactly once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from confluent_kafka import (
    OFFSET_BEGINNING,
    Consumer,
    KafkaError,
    KafkaException,
    Producer,
    TopicPartition,
)

from rules.errors import SandboxError
from service.runtime.clock import monotonic
from service.sandbox.workloads.clients import (
    CLIENT_ERRORS,
    client_config,
    describe,
    give_up,
    is_fatal,
    is_retriable,
    kafka_error,
    text_of,
)
from service.sandbox.workloads.consumer import POLL_SECONDS, GroupProtocol, consumer_settings
from service.sandbox.workloads.counts import Counts
from service.sandbox.workloads.transactions import (
    INIT_SECONDS,
    TRANSACTION_SECONDS,
    call_patiently,
    transactional_config,
)
from service.sandbox.workloads.workload import Workload

MOST_RECORDS = 5_000  # of one transaction: they have to fit into the client's queue
# Longer than a new owner's retry (0.5 s after CONCURRENT_TRANSACTIONS): a quicker restart would
# take the transactional id back before the one that fenced us ever got it.
RESTART_SECONDS = 1.0


@dataclass(eq=False, kw_only=True)
class TransactionalPipeline(Workload):
    """Copies `topic` to `output_topic`; output and committed offsets share a transaction.

    An abortable error aborts the transaction and reads again from the committed offsets; a fatal
    one makes the transactional client anew, which ends what the old one left open. `settings`
    are the producer's.
    """

    bootstrap_servers: str = field(kw_only=False)
    output_topic: str
    group: str | None = None  # None: "<topic>-to-<output_topic>"
    transactional_id: str | None = None  # None: the same
    commit_records: int = 100  # a transaction ends after this many records ...
    commit_seconds: float = 0.5  # ... or after this time
    abort_every: int | None = None  # abort every k-th transaction on purpose, k >= 2
    protocol: GroupProtocol = GroupProtocol.CLASSIC

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 1 <= self.commit_records <= MOST_RECORDS:
            raise SandboxError(f"a transaction takes 1 to {MOST_RECORDS} records")
        if self.abort_every is not None and self.abort_every < 2:
            raise SandboxError("abort_every must be at least 2: else nothing is ever committed")
        self._consumer: Any = None
        self._began: float | None = None  # of the open transaction
        self._next: dict[int, int] = {}  # its next offset to read, by input partition
        self._taken = 0  # records in it
        self._transactions = 0
        self._revoked = False

    @property
    def label(self) -> str:
        """How a message calls this workload."""
        return f"pipeline {self.topic} to {self.output_topic}"

    @property
    def group_id(self) -> str:
        """The group that reads the input."""
        return self.group or f"{self.topic}-to-{self.output_topic}"

    def _run(self) -> None:
        self._consumer = Consumer(self._config(consumer_settings(self.group_id, self.protocol)))
        try:
            self._consumer.subscribe([self.topic], on_revoke=self._on_revoke)
            while self._goes_on(self.counts.consumed):
                self._live()
        finally:
            self._consumer.close()

    def _config(self, settings: Mapping[str, Any]) -> dict[str, Any]:
        return client_config(self.bootstrap_servers, self.security, self.tally, settings)

    def _live(self) -> None:
        """Run one transactional client until the end or until it is beyond use."""
        transactional_id = self.transactional_id or self.group_id
        client = Producer(self._config(transactional_config(transactional_id, self.settings)))
        try:
            if self._owns_id(client):
                self._forget()
                self._rewind()
                self._work(client)
        except CLIENT_ERRORS as exc:
            self.tally.add(Counts(restarts=1, last_error=text_of(exc)))
            self._pause(RESTART_SECONDS)
        finally:
            give_up(client, self.tally, seconds=0)

    def _owns_id(self, client: Any) -> bool:
        """Fence older owners of the transactional id; false when the end came first."""
        try:
            call_patiently(
                client.init_transactions,
                seconds=INIT_SECONDS,
                goes_on=lambda: self._goes_on(self.counts.consumed),
            )
        except KafkaException as exc:
            if not is_retriable(exc):  # not allowed, or a wrong setting: no use in trying again
                raise SandboxError(f"{self.label}: {text_of(exc)}") from exc
            self.tally.note(text_of(exc))
            return False
        return True

    def _work(self, client: Any) -> None:
        while self._goes_on(self.counts.consumed):
            self._or_abort(client, self._step)
        if self._began is not None:
            self._or_abort(client, self._commit)

    def _or_abort(self, client: Any, action: Any) -> None:
        try:
            action(client)
        except KafkaException as exc:
            if is_fatal(exc):
                raise
            self.tally.note(text_of(exc))
            self._abort(client)

    def _step(self, client: Any) -> None:
        message = self._consumer.poll(POLL_SECONDS)
        if self._revoked and self._began is not None:
            # Its offsets may belong to another member by now. The message is read again, too.
            self._abort(client)
            return
        self._revoked = False
        if message is not None:
            self._process(client, message)
        if self._began is not None and self._is_due(self._began):
            self._finish(client)

    def _process(self, client: Any, message: Any) -> None:
        error = message.error()
        if error is not None:
            if error.fatal():
                raise SandboxError(f"{self.label}: {describe(error)}")
            self.tally.note(describe(error))
            return
        if self._began is None:
            client.begin_transaction()
            self._began = monotonic()
        client.produce(
            self.output_topic,
            key=message.key(),
            value=message.value(),
            on_delivery=self._on_delivery,
        )
        self._next[message.partition()] = message.offset() + 1
        self._taken += 1
        self.tally.add(Counts(consumed=1, sent=1))

    def _is_due(self, began: float) -> bool:
        return self._taken >= self.commit_records or monotonic() - began >= self.commit_seconds

    def _finish(self, client: Any) -> None:
        self._transactions += 1
        if self.abort_every is not None and self._transactions % self.abort_every == 0:
            client.flush(TRANSACTION_SECONDS)  # so that the log holds what is aborted
            self._abort(client)
        else:
            self._commit(client)

    def _commit(self, client: Any) -> None:
        offsets = [TopicPartition(self.topic, p, offset) for p, offset in self._next.items()]
        member = self._consumer.consumer_group_metadata()
        call_patiently(lambda s: client.send_offsets_to_transaction(offsets, member, s))
        call_patiently(client.commit_transaction)
        self._forget()
        self.tally.add(Counts(transactions_committed=1))

    def _abort(self, client: Any) -> None:
        if self._began is not None:
            call_patiently(client.abort_transaction)
            self.tally.add(Counts(transactions_aborted=1))
        self._forget()
        self._rewind()

    def _forget(self) -> None:
        self._began, self._next, self._taken, self._revoked = None, {}, 0, False

    def _rewind(self) -> None:
        """Read on from the committed offsets: what the group has for certain passed on."""
        partitions = self._consumer.assignment()
        if not partitions:
            return
        for position in self._consumer.committed(partitions, timeout=TRANSACTION_SECONDS):
            if position.error is not None:
                raise KafkaException(position.error)
            offset = position.offset if position.offset >= 0 else OFFSET_BEGINNING
            self._seek(TopicPartition(position.topic, position.partition, offset))

    def _seek(self, position: TopicPartition) -> None:
        try:
            self._consumer.seek(position)
        except KafkaException as exc:
            error = kafka_error(exc)
            # Assigned but not begun yet: it will begin at its committed offset by itself.
            if error is None or error.code() != KafkaError._STATE:  # noqa: SLF001 - its public name
                raise

    def _on_revoke(self, _consumer: Any, _partitions: Any) -> None:
        self._revoked = True
