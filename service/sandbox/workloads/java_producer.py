"""A Java producer: Kafka's VerifiableProducer, made idempotent."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from rules.errors import SandboxError
from service.sandbox.workloads.java_tool import JavaTool


@dataclass(eq=False, kw_only=True)
class JavaProducer(JavaTool):
    """Sends increasing integers as values; a record counts as sent when its fate is known.

    The tool switches retries off, and with them idempotence, unless its settings file says
    otherwise (KafkaProducer: "Idempotence will be disabled because retries is set to 0").
    """

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

    @property
    def main_class(self) -> str:
        """The tool's Java class."""
        return "org.apache.kafka.tools.VerifiableProducer"

    def client_settings(self) -> Mapping[str, str]:
        """Return what makes it idempotent."""
        return {"acks": "all", "enable.idempotence": "true", "retries": str(2**31 - 1)}

    def arguments(self, config_file: Path) -> list[str]:
        """Return the tool's own arguments."""
        return [
            *("--throughput", str(self.rate)),
            *("--repeating-keys", str(self.keys)),
            *("--producer.config", str(config_file)),
        ]
