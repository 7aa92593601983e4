"""Topics of the workloads."""

from __future__ import annotations

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from rules.errors import SandboxError
from service.sandbox.cluster.admin import SandboxAdmin
from service.sandbox.workloads.clients import QUIET, text_of

ANSWER_SECONDS = 15.0


def ensure_topics(bootstrap_servers: str, *names: str, partitions: int) -> None:
    """Create the topics that are missing, with 3 replicas; those that exist stay as they are."""
    client = AdminClient({"bootstrap.servers": bootstrap_servers, "log_level": QUIET})
    try:
        existing = client.list_topics(timeout=ANSWER_SECONDS).topics
    except KafkaException as exc:
        raise SandboxError(f"the brokers do not answer: {text_of(exc)}") from exc
    for name in names:
        if name not in existing:
            SandboxAdmin(bootstrap_servers).create_topic(name, partitions=partitions)
