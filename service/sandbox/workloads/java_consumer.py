"""Java consumers: Kafka's VerifiableConsumer (a group) and VerifiableShareConsumer (KIP-932)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from service.sandbox.workloads.consumer import GroupProtocol, IsolationLevel
from service.sandbox.workloads.java_tool import JavaTool


@dataclass(eq=False, kw_only=True)
class JavaConsumer(JavaTool):
    """One Java member of a consumer group; it commits after every poll."""

    group: str
    protocol: GroupProtocol = GroupProtocol.CLASSIC
    isolation_level: IsolationLevel = IsolationLevel.READ_COMMITTED

    @property
    def label(self) -> str:
        """How a message calls this workload."""
        return f"Java group {self.group} on {self.topic}"

    @property
    def main_class(self) -> str:
        """The tool's Java class."""
        return "org.apache.kafka.tools.VerifiableConsumer"

    def client_settings(self) -> Mapping[str, str]:
        """Return what a reader of transactional topics needs."""
        return {"isolation.level": self.isolation_level.value}

    def arguments(self, config_file: Path) -> list[str]:
        """Return the tool's own arguments."""
        return [
            *("--group-id", self.group),
            *("--group-protocol", self.protocol.name),
            *("--consumer.config", str(config_file)),
        ]


@dataclass(eq=False, kw_only=True)
class ShareConsumer(JavaTool):
    """One member of a share group; reads from the beginning.

    It acknowledges what it read in its next poll, up to five seconds later.
    """

    group: str

    @property
    def label(self) -> str:
        """How a message calls this workload."""
        return f"share group {self.group} on {self.topic}"

    @property
    def main_class(self) -> str:
        """The tool's Java class."""
        return "org.apache.kafka.tools.VerifiableShareConsumer"

    def arguments(self, config_file: Path) -> list[str]:
        """Return the tool's own arguments."""
        return [
            *("--group-id", self.group),
            *("--offset-reset-strategy", "earliest"),
            *("--command-config", str(config_file)),
        ]
