"""Observes a topic by others than those who made a fault there.

The literal lines of the brokers' logs, a client library that reads, what a leader remembers.
"""

from __future__ import annotations

from typing import Final

from confluent_kafka import Consumer, TopicPartition

from rules.facts.identity import TopicPartition as Place
from service.sandbox.cluster.cluster import Sandbox
from service.sandbox.faults import SequenceEpisode, SequenceTruth
from service.sandbox.workloads.raw_cluster import ProducerOn, RawCluster

SOON: Final = 180.0
KEPT: Final = 10  # records that all replicas have before anything happens
EXCEPTION: Final = "org.apache.kafka.common.errors.OutOfOrderSequenceException: "


def values_on(cluster: Sandbox, topic: str, isolation: str = "read_uncommitted") -> list[int]:
    """Return the records that can be read, committed or not, behind those of others."""
    reader = Consumer(
        {
            "bootstrap.servers": cluster.bootstrap_servers,
            "group.id": f"outside-{topic}",
            "enable.auto.commit": False,  # its commit would be one more that is beyond the log
            "enable.partition.eof": True,
            "isolation.level": isolation,
        }
    )
    found: list[int] = []
    try:
        reader.assign([TopicPartition(topic, 0, KEPT)])
        while (message := reader.poll(SOON)) is not None and message.error() is None:
            found.append(int(message.value() or b""))
    finally:
        reader.close()
    return found


def lines_with(cluster: Sandbox, broker: int, text: str) -> int:
    """Count the physical lines of a broker's log that are exactly this."""
    files = cluster.log_directory(broker).glob("server.log*")
    return sum(file.read_text().splitlines().count(text) for file in files)


def on_leader(cluster: Sandbox, truth: SequenceTruth) -> list[ProducerOn]:
    """Ask the leader which producers it remembers."""
    with RawCluster(cluster) as brokers:
        return brokers.producers(Place(truth.topic, 0))


def only(truth: SequenceTruth) -> SequenceEpisode:
    [episode] = truth.episodes
    return episode
