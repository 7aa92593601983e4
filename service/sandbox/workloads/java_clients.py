"""Java clients: Kafka's verifiable producer, made idempotent, and its group and share consumers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rules.errors import SandboxError
from service.sandbox.workloads.consumer import GroupProtocol, IsolationLevel
from service.sandbox.workloads.java_tool import JavaTool


@dataclass(eq=False, kw_only=True)
class JavaProducer(JavaTool):
    """Sends increasing integers as values; a record counts as sent when its fate is known.

    The tool switches retries off, and with them idempotence, unless its settings file says
    otherwise (KafkaProducer: "Idempotence will be disabled because retries is set to 0").
    """

    main_class = "org.apache.kafka.tools.VerifiableProducer"
    config_option = "--producer.config"
    rate: int = 200  # records per second, about
    keys: int = 1000  # distinct keys

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.rate < 1 or self.keys < 1:
            raise SandboxError("rate (records/s) and keys of a producer must be at least 1")

    @property
    def label(self) -> str:
        """How a message calls this workload."""
        return f"Java producer to {self.topic}"

    def client_settings(self) -> Mapping[str, str]:
        """Return what makes it idempotent."""
        return {"acks": "all", "enable.idempotence": "true", "retries": str(2**31 - 1)}

    def arguments(self) -> list[str]:
        """Return the pace, and how many keys there are."""
        return ["--throughput", str(self.rate), "--repeating-keys", str(self.keys)]


@dataclass(eq=False, kw_only=True)
class JavaConsumer(JavaTool):
    """One Java member of a consumer group; it commits after every poll."""

    main_class = "org.apache.kafka.tools.VerifiableConsumer"
    config_option = "--consumer.config"
    group: str
    protocol: GroupProtocol = GroupProtocol.CLASSIC
    isolation_level: IsolationLevel = IsolationLevel.READ_COMMITTED

    @property
    def label(self) -> str:
        """How a message calls this workload."""
        return f"Java group {self.group} on {self.topic}"

    def client_settings(self) -> Mapping[str, str]:
        """Return what a reader of transactional topics needs."""
        return {"isolation.level": self.isolation_level.value}

    def arguments(self) -> list[str]:
        """Return the group and its protocol."""
        return ["--group-id", self.group, "--group-protocol", self.protocol.name]


@dataclass(eq=False, kw_only=True)
class ShareConsumer(JavaTool):
    """One member of a share group (KIP-932); reads from the beginning.

    It acknowledges what it read in its next poll, up to five seconds later.
    """

    main_class = "org.apache.kafka.tools.VerifiableShareConsumer"
    config_option = "--command-config"
    group: str

    @property
    def label(self) -> str:
        """How a message calls this workload."""
        return f"share group {self.group} on {self.topic}"

    def arguments(self) -> list[str]:
        """Return the group, and where it begins."""
        return ["--group-id", self.group, "--offset-reset-strategy", "earliest"]
