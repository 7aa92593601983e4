"""Producers as applications use them, whose caller says when they get how many records.

They write to one topic of one partition: numbers as values, from 0 on, in their order. What they do
with the records, with errors and with their sequences is the client library's own business.

Two are Java's, which are in the sandbox's jars and need no compiler: Kafka's console producer sends
each line that it reads, and knows no transactions. Its load tool does; it is held by SIGSTOP between
two steps.
"""

from __future__ import annotations

import signal
import subprocess
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Final, Protocol

from confluent_kafka import Producer

from collectors.security import Security
from rules.errors import SandboxError
from service.sandbox.cluster.cluster import Sandbox
from service.sandbox.cluster.commands import marker, scratch_folder, tool_command
from service.sandbox.cluster.processes import last_words
from service.sandbox.cluster.properties import render
from service.sandbox.workloads.client_log import ClientLog
from service.sandbox.workloads.clients import (
    CLIENT_ERRORS,
    clear_errors,
    client_config,
    count_delivery,
    drain,
    give_up,
)
from service.sandbox.workloads.counts import Counts, Tally
from service.sandbox.workloads.java_tool import HEAP
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
BATCH_BYTES: Final = 61  # of a v2 batch header (KIP-98)
RECORD_BYTES: Final = VALUE_BYTES + 8  # with what the format adds to so short a record
# What a tool prints of an error that its callback gets: whichever, such as NetworkException where the broken
# connection is seen before the time-out of the delivery.
GIVEN_UP: Final = (
    "OutOfOrderSequenceException",
    "TimeoutException: Expiring",
    "Error when sending message to topic",
)
REQUEST_MS: Final = 4000
RATE: Final = 5  # records per second of the load tool; it catches up on what it was held for
FOR_EVER: Final = 2**31 - 1


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

    def __init__(  # noqa: PLR0913 - what its caller chooses
        self,
        bootstrap_servers: str,
        topic: str,
        *,
        batch: int,
        transactional_id: str | None = None,
        delivery_ms: int = DELIVERY_MS,
        transaction_ms: int | None = None,
    ) -> None:
        """`transaction_ms` is the timeout of its transactions; None: the library's own."""
        self._topic = topic
        self._clear_errors = partial(clear_errors, f"producer to {topic}")
        self._is_transactional = transactional_id is not None
        self._tally = Tally()
        whose = f"topic {topic}"
        if transactional_id is not None:
            whose = f"transactional.id={transactional_id}"
        self._log = ClientLog(whose)
        own: dict[str, Any] = {"message.timeout.ms": delivery_ms, **self._log.settings()}
        if transactional_id is not None:  # which has a shorter timeout of its own, and needs it so
            own = {"transactional.id": transactional_id, **self._log.settings()}
        if transaction_ms is not None:
            own |= {"transaction.timeout.ms": transaction_ms, "message.timeout.ms": transaction_ms}
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
        self.abort()
        with self._clear_errors():
            self._client.begin_transaction()
        self.hand_over(count)

    def logged(self) -> tuple[str, ...]:
        """Return the errors that it wrote into its application's log, in their order."""
        return self._log.lines

    def abort(self) -> None:
        """Abort the transaction, as applications have to after an error."""
        with self._clear_errors():
            self._client.abort_transaction(SETTLE_SECONDS)

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


@dataclass(eq=False, kw_only=True)
class JavaStepwise(ABC):
    """A Java child, idempotent and patient, that starts with its first records."""

    main_class: ClassVar[str]  # of the tool
    sandbox: Sandbox = field(kw_only=False)
    bootstrap_servers: str = field(kw_only=False)
    topic: str = field(kw_only=False)
    batch: int  # records at most in one batch
    delivery_ms: int = DELIVERY_MS

    def __post_init__(self) -> None:
        self._folder = scratch_folder(self.sandbox.directory, "client-")
        self._scratch = Path(self._folder.name)
        self._config = self._scratch / "client.properties"
        self._config.write_text(render(_settings(self.batch, self.delivery_ms)), encoding="ascii")
        self._process: subprocess.Popen[bytes] | None = None

    @abstractmethod
    def arguments(self) -> list[str]:
        """Return the tool's own arguments."""

    def has_given_up(self) -> bool:
        """Whether the application got an error for records; what came so far counts."""
        # The second file is where the sandbox's log settings put what the client library says.
        said = (self._scratch / name for name in ("output.log", "server.log"))
        texts = [
            path.read_text(encoding="utf-8", errors="replace") for path in said if path.exists()
        ]
        return any(words in text for words in GIVEN_UP for text in texts)

    def close(self) -> None:
        """Kill it: an orderly end would wait for what it cannot send."""
        if self._process is not None:
            self._process.kill()
            self._process.wait(END_SECONDS)
            if self._process.stdin is not None:
                self._process.stdin.close()
        self._folder.cleanup()

    def _running(self) -> subprocess.Popen[bytes]:
        """Return the process, which is started when it is first needed."""
        if self._process is None:
            self._process = self._start()
        if self._process.poll() is not None:
            raise SandboxError(f"the Java producer to {self.topic} has ended: {self._last_words()}")
        return self._process

    def _start(self) -> subprocess.Popen[bytes]:
        options = (HEAP, marker(self.sandbox.directory))
        command = tool_command(
            self.sandbox.state, self.main_class, scratch=self._scratch, options=options
        )
        with (self._scratch / "output.log").open("wb") as output:
            return subprocess.Popen(
                [*command, *self.arguments()],
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=subprocess.STDOUT,
                cwd=self._scratch,
                start_new_session=True,  # Ctrl-C is for us: we end it in order
                bufsize=0,
            )

    def _last_words(self) -> str:
        output = self._scratch / "output.log"
        return last_words(output.read_text(encoding="utf-8", errors="replace"))


@dataclass(eq=False, kw_only=True)
class JavaConsoleProducer(JavaStepwise):
    """Sends each record as a line that it is given; without transactions."""

    main_class = "org.apache.kafka.tools.ConsoleProducer"
    _handed: int = field(default=0, init=False)

    def arguments(self) -> list[str]:
        """Return the tool's own arguments."""
        return [
            *("--bootstrap-server", self.bootstrap_servers),
            *("--topic", self.topic),
            *("--producer.config", str(self._config)),
        ]

    def hand_over(self, count: int) -> None:
        """Give it so many records more."""
        pipe, numbers = self._running().stdin, range(self._handed, self._handed + count)
        if pipe is None:
            raise SandboxError("the console producer reads nothing")
        try:
            pipe.write(b"".join(value_of(number, VALUE_BYTES) + b"\n" for number in numbers))
        except BrokenPipeError as exc:
            raise SandboxError(f"the console producer: {self._last_words()}") from exc
        self._handed += count

    def hold(self) -> None:
        """Do nothing: it sends what it was given, and no more."""


@dataclass(eq=False, kw_only=True)
class JavaTransactionalProducer(JavaStepwise):
    """Writes random letters in one long transaction, for as long as it is not held."""

    main_class = "org.apache.kafka.tools.ProducerPerformance"
    transactional_id: str

    def arguments(self) -> list[str]:
        """Return the tool's own arguments."""
        return [
            *("--topic", self.topic),
            *("--num-records", str(FOR_EVER)),
            *("--record-size", str(VALUE_BYTES)),
            *("--throughput", str(RATE)),
            *("--transactional-id", self.transactional_id),
            *("--transaction-duration-ms", str(FOR_EVER)),
            *("--producer-props", f"bootstrap.servers={self.bootstrap_servers}"),
            *("--producer.config", str(self._config)),
        ]

    def hand_over(self, _count: int) -> None:
        """Let it write; the count cannot be set."""
        self._running().send_signal(signal.SIGCONT)

    def hold(self) -> None:
        """Freeze it."""
        self._running().send_signal(signal.SIGSTOP)


def _settings(batch: int, delivery_ms: int) -> dict[str, str]:
    return {
        "acks": "all",
        "batch.size": str(BATCH_BYTES + RECORD_BYTES * batch),
        "delivery.timeout.ms": str(delivery_ms),
        "enable.idempotence": "true",
        "linger.ms": str(LINGER_MS),
        "max.in.flight.requests.per.connection": str(IN_FLIGHT),
        "metadata.max.age.ms": str(METADATA_MS),
        "request.timeout.ms": str(REQUEST_MS),  # the console producer's own would be 1.5 s
        "retries": str(FOR_EVER),
    }
