"""What tests do to Kafka so that rules have something to find within a round."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient

from service.sandbox.cluster.admin import SandboxAdmin
from tests.integration.clients import commit_offset, produce

RECORDS: Final = 10
ANSWER_SECONDS: Final = 180.0


@dataclass(frozen=True)
class Kafka:
    """One topic with one partition and ten records, and its groups."""

    bootstrap: str
    admin: SandboxAdmin
    topic: str

    @classmethod
    def with_topic(cls, bootstrap: str, admin: SandboxAdmin, topic: str) -> Kafka:
        admin.create_topic(topic)
        produce(bootstrap, topic, RECORDS)
        return cls(bootstrap, admin, topic)

    def group(self, stem: str) -> str:
        return f"{self.topic}-{stem}"

    def commit(self, stem: str, offset: int) -> None:
        commit_offset(self.bootstrap, self.group(stem), self.topic, offset)

    def expire_below(self, offset: int) -> None:
        """Delete the records below an offset, as retention does."""
        client = AdminClient({"bootstrap.servers": self.bootstrap, "log_level": 2})
        place = TopicPartition(self.topic, 0, offset)
        for answer in client.delete_records([place]).values():
            answer.result(timeout=ANSWER_SECONDS)
