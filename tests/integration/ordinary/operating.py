"""What an operator does to a cluster, by single requests, and how the cluster is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Final, Self

from collectors.wire.api import Api
from rules.errors import SandboxError
from rules.facts.identity import BrokerId, TopicPartition
from service.runtime.clock import pause, wait_until
from service.sandbox.cluster import processes
from service.sandbox.cluster.cluster import Sandbox
from service.sandbox.cluster.processes import Liveness
from service.sandbox.workloads.log_requests import elect_preferred
from service.sandbox.workloads.raw_cluster import Placed, RawCluster, RejectedError, require

REASSIGN: Final = Api(key=45, name="AlterPartitionReassignments", oldest=0, newest=0, since="2.4")
WHOLE_SECONDS: Final = 150.0
SHUTDOWN_SECONDS: Final = 180.0


class Operator:
    """Changes one cluster; each method returns when it is done, and none has to be undone."""

    def __init__(self, cluster: Sandbox) -> None:
        self.cluster = cluster
        self._raw = RawCluster(cluster)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._raw.close()

    def placed(self, topic: str) -> list[Placed]:
        return self._raw.topic(topic)

    def wait_whole(self) -> None:
        """Wait until every running broker says that every ISR is whole, and all of them run."""
        assert wait_until(self._is_whole, timeout_seconds=WHOLE_SECONDS, poll_seconds=0.5), (
            "the cluster did not heal"
        )

    def _is_whole(self) -> bool:
        brokers = [node.id for node in self.cluster.state.brokers]
        if self._raw.running() != brokers:
            return False
        try:
            views = [self._raw.topics(broker=BrokerId(broker)) for broker in brokers]
        except SandboxError:
            return False
        return all(
            placed.leader in brokers and placed.isr == frozenset(placed.replicas)
            for view in views
            for partitions in view.values()
            for placed in partitions
        ) and all(view == views[0] for view in views)

    def reassign(self, topic: str, moves: Mapping[int, Sequence[int]]) -> None:
        """Give partitions other replicas, and wait until they have them and all are in sync."""
        parts = [
            {
                "partition_index": number,
                "replicas": tuple(BrokerId(broker) for broker in replicas),
            }
            for number, replicas in moves.items()
        ]
        answer = self._raw.ask(
            self._raw.any_running(),
            REASSIGN,
            topics=[{"name": topic, "partitions": parts}],
            timeout=timedelta(seconds=10),
        )
        require(f"reassignment of {topic}", answer.error_code)
        for result in answer.responses[0].partitions:
            require(f"reassignment of {topic}-{result.partition_index}", result.error_code)

        def is_done() -> bool:
            placed = self.placed(topic)
            return all(
                placed[number].replicas == tuple(replicas)
                and placed[number].isr == frozenset(replicas)
                for number, replicas in moves.items()
            )

        assert wait_until(is_done, timeout_seconds=WHOLE_SECONDS, poll_seconds=0.3), moves

    def elect_preferred(self, topics: Sequence[str]) -> int:
        """Let each partition's first replica lead it; return how many leaders changed."""
        changed = 0
        for topic in topics:
            away = [
                TopicPartition(topic, number)
                for number, placed in enumerate(self.placed(topic))
                if placed.leader != placed.replicas[0]
            ]
            try:
                if away:
                    elect_preferred(self._raw, away)
                    changed += len(away)
            except RejectedError as rejected:
                if rejected.error != "ELECTION_NOT_NEEDED":
                    raise
        return changed

    def freeze(self, broker: int, seconds: float) -> None:
        """Stop a broker for so long, as a stall of its machine does."""
        self.cluster.pause(broker)
        try:
            pause(seconds)
        finally:
            self.cluster.resume(broker)

    def kill(self, broker: int, seconds: float) -> None:
        """Kill a broker and start it again so much later."""
        self.cluster.kill(broker)
        pause(seconds)
        self.cluster.start(broker)

    def restart(self, broker: int) -> None:
        """Restart a broker in order."""
        process = self.cluster.state.node(broker).process
        assert process is not None
        processes.terminate(process)
        assert wait_until(
            lambda: processes.liveness(process) is Liveness.DEAD, timeout_seconds=SHUTDOWN_SECONDS
        ), f"broker {broker} did not shut down"
        self.cluster.start(broker)
