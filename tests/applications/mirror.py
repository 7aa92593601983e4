"""MirrorMaker 2, dedicated and exactly once, from one cluster to another."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Final

from service.sandbox.cluster import ports
from service.sandbox.cluster.admin import SandboxAdmin
from tests.applications.application import Ground, Running
from tests.applications.java_process import JavaProcess
from tests.applications.kafka_producer import NumberProducer
from tests.applications.load import CommittedReader

RATE: Final = 150.0
PARTITIONS: Final = 4
SOURCE, TARGET = "primary", "backup"


class MirrorApplication:
    """Copies a topic, with checkpoints and heartbeats."""

    name = "MirrorMaker 2"

    def start(self, ground: Ground, undo: ExitStack) -> Running:
        """Start one node, which is killed and comes back."""
        target, source = ground.clusters
        topic = f"mirror-{ground.mark}-orders"
        SandboxAdmin(source.bootstrap_servers).create_topic(topic, partitions=PARTITIONS)
        [port] = ports.choose_free(1)
        instance = JavaProcess(
            cluster=target,
            class_path=ground.class_path,
            folder=ground.folder / "mirror",
            main_class="org.apache.kafka.connect.mirror.MirrorMaker",
            settings=settings(ground, topic, port),
        )
        undo.callback(instance.stop)
        instance.start()
        reader = CommittedReader(target.bootstrap_servers, f"{SOURCE}.{topic}")
        undo.callback(reader.stop)
        self._producer = NumberProducer(source.bootstrap_servers, topic)
        return Running([instance], ground.feed(self._producer.send, RATE), reader)

    def flush(self) -> None:
        """Wait until all orders are acknowledged by the source."""
        self._producer.flush()

    def missing(self, fed: int, running: Running) -> int:
        """Each order is copied."""
        return fed - len(running.reader.outputs)

    def check(self, fed: int, running: Running) -> None:
        """Assert that each order came once."""
        assert sorted(int(one.value) for one in running.reader.outputs) == list(range(fed))


def settings(ground: Ground, topic: str, port: int) -> dict[str, str]:
    target, source = ground.clusters
    factors = ("replication", "checkpoints.topic.replication", "heartbeats.topic.replication")
    more = ("offset-syncs.topic.replication", *(f"{s}.storage.replication" for s in STORAGES))
    return {
        "clusters": f"{SOURCE}, {TARGET}",
        f"{SOURCE}.bootstrap.servers": source.bootstrap_servers,
        f"{TARGET}.bootstrap.servers": target.bootstrap_servers,
        f"{SOURCE}->{TARGET}.enabled": "true",
        f"{SOURCE}->{TARGET}.topics": topic,
        f"{TARGET}->{SOURCE}.enabled": "false",
        f"{TARGET}.exactly.once.source.support": "enabled",
        f"{SOURCE}.consumer.isolation.level": "read_committed",
        "dedicated.mode.enable.internal.rest": "true",
        "listeners": f"http://{ports.HOST}:{port}",
        "plugin.discovery": "service_load",
        "tasks.max": "2",
        "scheduled.rebalance.max.delay.ms": ground.rebalance_delay_ms,
        **{f"{name}.factor": "3" for name in (*factors, *more)},
        "offset.storage.partitions": "5",
        "status.storage.partitions": "3",
    }


STORAGES: Final = ("offset", "config", "status")
