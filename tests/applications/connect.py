"""Kafka Connect, distributed: two workers with a source connector that delivers exactly once.

The connector is Kafka's own for files. It reads lines that are appended, and its position in the
file is committed in the transaction of the records.
"""

from __future__ import annotations

from contextlib import ExitStack
from http import HTTPStatus
from pathlib import Path
from typing import Final

import httpx2

from service.runtime.clock import wait_until
from service.sandbox.cluster import ports
from service.sandbox.cluster.admin import SandboxAdmin
from tests import loopback
from tests.applications.application import Ground, Running
from tests.applications.java_process import JavaProcess
from tests.applications.load import CommittedReader

RATE: Final = 100.0
PARTITIONS: Final = 3
START_SECONDS: Final = 120.0
CONNECTOR: Final = "org.apache.kafka.connect.file.FileStreamSourceConnector"
STRINGS: Final = "org.apache.kafka.connect.storage.StringConverter"


class ConnectApplication:
    """Writes each line of a growing file into a topic."""

    name = "Kafka Connect"

    def start(self, ground: Ground, undo: ExitStack) -> Running:
        """Start two workers and hand them the connector."""
        cluster, stem = ground.clusters[0], f"connect-{ground.mark}"
        topic, numbers = f"{stem}-lines", ports.choose_free(2)
        SandboxAdmin(cluster.bootstrap_servers).create_topic(topic, partitions=PARTITIONS)
        instances = [
            JavaProcess(
                cluster=cluster,
                class_path=ground.class_path,
                folder=ground.folder / f"connect-{port}",
                main_class="org.apache.kafka.connect.cli.ConnectDistributed",
                settings=settings(ground, stem, port),
            )
            for port in numbers
        ]
        for instance in instances:
            undo.callback(instance.stop)
            instance.start()
        self._file = ground.folder / "lines.txt"
        self._file.touch()
        create_connector(f"http://{ports.HOST}:{numbers[0]}", stem, self._file, topic)
        reader = CommittedReader(cluster.bootstrap_servers, topic)
        undo.callback(reader.stop)
        return Running(instances, ground.feed(self._append, RATE), reader)

    def _append(self, numbers: range) -> None:
        with self._file.open("a", encoding="ascii") as file:
            file.write("".join(f"{number}\n" for number in numbers))

    def flush(self) -> None:
        """Do nothing: what is in the file is in the file."""

    def missing(self, fed: int, running: Running) -> int:
        """Each line makes one record."""
        return fed - len(running.reader.outputs)

    def check(self, fed: int, running: Running) -> None:
        """Assert that each line came once."""
        assert sorted(int(one.value) for one in running.reader.outputs) == list(range(fed))


def settings(ground: Ground, stem: str, port: int) -> dict[str, str]:
    storages = ("config", "offset", "status")
    return {
        "bootstrap.servers": ground.clusters[0].bootstrap_servers,
        "group.id": stem,
        "key.converter": STRINGS,
        "value.converter": STRINGS,
        **{f"{one}.storage.topic": f"{stem}-{one}" for one in storages},
        **{f"{one}.storage.replication.factor": "3" for one in storages},
        "offset.storage.partitions": "5",
        "status.storage.partitions": "3",
        "exactly.once.source.support": "enabled",
        "listeners": f"http://{ports.HOST}:{port}",
        "plugin.discovery": "service_load",
        "scheduled.rebalance.max.delay.ms": ground.rebalance_delay_ms,
    }


def create_connector(address: str, name: str, file: Path, topic: str) -> None:
    """Create the connector, once the worker can."""
    body = {
        "connector.class": CONNECTOR,
        "tasks.max": "1",
        "file": str(file),
        "topic": topic,
        "exactly.once.support": "required",
    }

    def is_created() -> bool:
        try:
            with loopback.client() as client:
                answer = client.put(f"{address}/connectors/{name}/config", json=body)
        except httpx2.TransportError:
            return False
        return answer.status_code in (HTTPStatus.CREATED, HTTPStatus.OK)

    assert wait_until(is_created, timeout_seconds=START_SECONDS, poll_seconds=1.0), (
        f"{name} was not created at {address}"
    )
