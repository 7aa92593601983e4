"""Consumer groups, quick or slow, of the classic protocol or of KIP-848's."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException

from rules.errors import SandboxError
from service.runtime.clock import monotonic
from service.sandbox.workloads.clients import client_config, describe, kafka_error, text_of
from service.sandbox.workloads.counts import Counts
from service.sandbox.workloads.pacing import Pace
from service.sandbox.workloads.workload import Workload

POLL_SECONDS = 0.1
COMMIT_SECONDS = 1.0  # interval of commits


class GroupProtocol(StrEnum):
    """Kafka's group.protocol."""

    CLASSIC = "classic"
    CONSUMER = "consumer"  # KIP-848


def consumer_settings(
    group: str, protocol: GroupProtocol, settings: Mapping[str, str] = MappingProxyType({})
) -> dict[str, Any]:
    """Return the settings of a group's member that commits by itself; `settings` win.

    Members subscribe and never assign: on a fresh cluster an assignment without offsets can
    wait 40 seconds for the group's coordinator.
    """
    # A killed member holds up a classic group for so long; KIP-848 takes it from the broker.
    session = {"session.timeout.ms": 10_000} if protocol is GroupProtocol.CLASSIC else {}
    return {
        **session,
        "group.id": group,
        "group.protocol": protocol.value,
        "enable.auto.commit": False,
        "auto.offset.reset": "earliest",
        "isolation.level": "read_committed",
        **settings,
    }


@dataclass(eq=False, kw_only=True)
class GroupConsumer(Workload):
    """One member of a consumer group; it commits what it has read, also when it ends.

    Start several with the same `group` for several members.
    """

    bootstrap_servers: str = field(kw_only=False)
    group: str
    rate: float | None = None  # records per second at most; None: as fast as it goes
    delay_seconds: float = 0.0  # work that each record takes
    protocol: GroupProtocol = GroupProtocol.CLASSIC

    def __post_init__(self) -> None:
        super().__post_init__()
        self._pace = Pace(self.rate)

    @property
    def label(self) -> str:
        """How a message calls this workload."""
        return f"group {self.group} on {self.topic}"

    def _run(self) -> None:
        client = self._make_client()
        committed_at = monotonic()
        try:
            client.subscribe([self.topic], on_revoke=lambda owner, _lost: self._commit(owner))
            while self._goes_on(self.counts.consumed):
                self._read(client)
                if monotonic() - committed_at >= COMMIT_SECONDS:
                    self._commit(client)
                    committed_at = monotonic()
        finally:
            client.close()  # leaves the group; revokes, and so commits, first

    def _make_client(self) -> Any:
        settings = consumer_settings(self.group, self.protocol, self.settings)
        settings["on_commit"] = self._on_commit
        return Consumer(client_config(self.bootstrap_servers, self.security, self.tally, settings))

    def _read(self, client: Any) -> None:
        if not self._pace.due(monotonic(), at_most=1):
            self._pause(self._pace.wait_seconds())
            return
        message = client.poll(POLL_SECONDS)
        if message is None:
            return
        if message.error() is not None:
            self._judge(message.error())
            return
        self.tally.add(Counts(consumed=1))
        if self.delay_seconds:
            self._pause(self.delay_seconds)

    def _on_commit(self, error: Any, _positions: Any) -> None:
        if error is not None and error.code() != KafkaError._NO_OFFSET:  # noqa: SLF001 - its public name
            self.tally.note(describe(error))

    def _judge(self, error: Any) -> None:
        if error.fatal():
            raise SandboxError(f"{self.label}: {describe(error)}")
        self.tally.note(describe(error))

    def _commit(self, client: Any) -> None:
        """Send a commit; its answer is not awaited.

        librdkafka waits without a limit for an answer while the coordinator is away. The request
        goes out before whatever leaves the group, on the same connection, and so is served first.
        """
        try:
            client.commit(asynchronous=True)
        except KafkaException as exc:  # a rebalance took the partitions, or a broker is away
            error = kafka_error(exc)
            if error is None or error.code() != KafkaError._NO_OFFSET:  # noqa: SLF001 - its public name
                self.tally.note(text_of(exc))
