"""Writes numbers into a topic, none twice and none lost: an idempotent librdkafka producer."""

from __future__ import annotations

from confluent_kafka import Producer

FLUSH_SECONDS = 180.0


class NumberProducer:
    """Sends each number as its decimal text, keyed by itself."""

    def __init__(self, servers: str, topic: str) -> None:
        self._topic = topic
        self._failed: list[str] = []
        self._producer = Producer(
            {"bootstrap.servers": servers, "enable.idempotence": True, "log_level": 2}
        )

    def send(self, numbers: range) -> None:
        for number in numbers:
            text = str(number).encode()
            self._producer.produce(self._topic, text, text, on_delivery=self._on_delivery)
        self._producer.poll(0)

    def flush(self) -> None:
        """Wait until all is acknowledged."""
        assert self._producer.flush(FLUSH_SECONDS) == 0
        assert self._failed == []

    def _on_delivery(self, error: object, _message: object) -> None:
        if error is not None:
            self._failed.append(str(error))
