"""Members of groups in Java: Kafka's own verifiable consumers of a group and of a share group."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from service.sandbox.workloads.consumer import GroupProtocol
from service.sandbox.workloads.java_tool import JavaTool


@dataclass(eq=False, kw_only=True)
class JavaConsumer(JavaTool):
    """One Java member of a consumer group; it commits after every poll."""

    main_class = "org.apache.kafka.tools.VerifiableConsumer"
    config_option = "--consumer.config"
    group: str
    protocol: GroupProtocol = GroupProtocol.CLASSIC

    @property
    def label(self) -> str:
        """How a message calls this workload."""
        return f"Java group {self.group} on {self.topic}"

    def client_settings(self) -> Mapping[str, str]:
        """Return what a reader of transactional topics needs."""
        return {"isolation.level": "read_committed"}

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
