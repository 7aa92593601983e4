"""A Java producer all of whose records are rejected, with the JMX exporter's agent that serves its metrics."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from service.sandbox.cluster.admin import SandboxAdmin
from service.sandbox.cluster.cluster import Sandbox
from service.sandbox.cluster.jars import agent_jar, read_lock
from service.sandbox.cluster.ports import HOST, choose_free
from service.sandbox.workloads.java_tool import JavaProducer

CLIENT: Final = 'orders/1:blue "x"'  # which JMX takes in quotes alone
RATE: Final = 5  # records per second
# A record that is a millisecond old is rejected, and not sent again.
NEVER_NEW_ENOUGH: Final = {"message.timestamp.before.max.ms": "0"}
SETTINGS: Final = {"client.id": CLIENT, "max.in.flight.requests.per.connection": "1"}
AGENTS_OWN: Final = 'rules: [{pattern: ".*"}]'


def failing_producer(
    cluster: Sandbox, admin: SandboxAdmin, topic: str, folder: Path, *, rules: str = AGENTS_OWN
) -> tuple[JavaProducer, str]:
    """Return a producer that is not started yet, with a topic on broker 1, and its metrics' address."""
    admin.create_topic(topic, assignment=[[1]], configs=NEVER_NEW_ENOUGH)
    config = folder / "agent.yaml"
    config.write_text(rules, encoding="utf-8")
    (port,) = choose_free(1)
    jar = agent_jar(Path(cluster.state.cache) / "jars", read_lock(cluster.state.release.lock_file))
    agent = f"-javaagent:{jar}={HOST}:{port}:{config}"
    producer = JavaProducer(cluster, topic=topic, rate=RATE, settings=SETTINGS, jvm=(agent,))
    return producer, f"{HOST}:{port}"
