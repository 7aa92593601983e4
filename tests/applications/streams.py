"""Kafka Streams, exactly_once_v2: two instances with a repartition topic, a store, a changelog."""

from __future__ import annotations

import logging
import random
from collections import Counter
from contextlib import ExitStack
from typing import Final

from service.sandbox.cluster.admin import SandboxAdmin
from tests.applications.application import Ground, Running
from tests.applications.java_process import JavaProcess
from tests.applications.kafka_producer import NumberProducer
from tests.applications.load import CommittedReader

logger = logging.getLogger(__name__)

PARTITIONS: Final = 4
CUSTOMERS: Final = 17  # as in OrderCounts.java
RATES: Final = (20.0, 80.0, 300.0)  # a quiet application is another one than a busy one
# Many batches of each transaction are under way at once, and some overtake its first one.
SMALL_BATCHES: Final = {"producer.batch.size": "300", "producer.linger.ms": "0"}
SHORT: Final = {"consumer.session.timeout.ms": "6000", "consumer.heartbeat.interval.ms": "1500"}


class StreamsApplication:
    """Counts what comes, by a key of its own."""

    name = "Kafka Streams"

    def start(self, ground: Ground, undo: ExitStack) -> Running:
        """Start two instances, each with a folder that its successor finds again."""
        cluster, stem = ground.clusters[0], f"streams-{ground.mark}"
        orders, counts = f"{stem}-orders", f"{stem}-counts"
        for topic in (orders, counts):
            SandboxAdmin(cluster.bootstrap_servers).create_topic(topic, partitions=PARTITIONS)
        instances = [
            JavaProcess(
                cluster=cluster,
                class_path=ground.class_path,
                folder=ground.folder / f"streams-{number}",
                main_class="OrderCounts",
                settings=settings(ground, stem, number),
                arguments=(orders, counts),
            )
            for number in (1, 2)
        ]
        for instance in instances:
            undo.callback(instance.stop)
            instance.start()
        reader = CommittedReader(cluster.bootstrap_servers, counts)
        undo.callback(reader.stop)
        self._producer = NumberProducer(cluster.bootstrap_servers, orders)
        rate = random.choice(RATES)
        logger.info("%g orders per second", rate)
        return Running(instances, ground.feed(self._producer.send, rate), reader)

    def flush(self) -> None:
        """Wait until all orders are acknowledged."""
        self._producer.flush()

    def missing(self, fed: int, running: Running) -> int:
        """Each order makes one count."""
        return fed - len(running.reader.outputs)

    def check(self, fed: int, running: Running) -> None:
        """Assert that each customer was counted 1, 2, 3 ... to the number of the orders."""
        seen: dict[bytes, list[int]] = {}
        for output in running.reader.outputs:
            assert output.key is not None
            seen.setdefault(output.key, []).append(int.from_bytes(output.value))
        ordered = Counter(b"customer-%d" % (number % CUSTOMERS) for number in range(fed))
        assert {key: len(counts) for key, counts in seen.items()} == ordered
        wrong = {k: c for k, c in seen.items() if c != list(range(1, len(c) + 1))}
        assert not wrong, wrong


def settings(ground: Ground, stem: str, number: int) -> dict[str, str]:
    return {
        "bootstrap.servers": ground.clusters[0].bootstrap_servers,
        "application.id": stem,
        "processing.guarantee": "exactly_once_v2",
        "replication.factor": "3",
        "num.stream.threads": "2",
        **SMALL_BATCHES,
        "state.dir": str(ground.folder / f"streams-{number}/state"),
        **(SHORT if ground.is_short else {}),
    }
