"""Elections that a release of Kafka does not hold by itself."""

from __future__ import annotations

from rules.facts.identity import TopicPartition
from service.sandbox.cluster.cluster import Sandbox
from service.sandbox.faults.replicas import ask_for_unclean
from service.sandbox.workloads.raw_cluster import RawCluster


def let_stale_lead(faults: Sandbox, topic: str) -> None:
    """See that a replica that is out of sync leads a topic's one partition, whose leader was killed.

    Controllers before 3.9 wait for somebody to ask, though `unclean.leader.election.enable` is set.
    """
    if not faults.state.release.elects_unclean:
        with RawCluster(faults) as cluster:
            ask_for_unclean(cluster, [TopicPartition(topic, 0)])
