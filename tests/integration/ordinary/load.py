"""Everything that writes, reads and commits beside the error."""

from __future__ import annotations

import random
from contextlib import ExitStack
from typing import Final

from rules.facts.identity import TopicPartition
from service.runtime.clock import wait_until
from service.sandbox.cluster.cluster import Sandbox
from service.sandbox.workloads.consumer import GroupConsumer, GroupProtocol
from service.sandbox.workloads.log_reading import committed_offset
from service.sandbox.workloads.pipeline import TransactionalPipeline
from tests.integration.ordinary.audited import PATIENT, AuditedProducer, Place
from tests.integration.ordinary.groups import Committers
from tests.integration.ordinary.plan import PLAN
from tests.integration.ordinary.topics import OFFSETS, PARTITIONS, Topics
from tests.integration.ordinary.transactions import Pool

COMMITTERS: Final = 12  # groups on each of two topics
OFFSETS_PARTITIONS: Final = 50  # of Kafka; the sandbox has fewer
DRAIN_SECONDS: Final = 120.0


class Load:
    """Everything that writes, reads and commits; `running` is for as long as the block lasts."""

    def __init__(self, cluster: Sandbox, topics: Topics, chance: random.Random) -> None:
        servers, stem = cluster.bootstrap_servers, topics.orders
        self.cluster, self.topics = cluster, topics
        self.orders, self.pairs = (
            AuditedProducer(servers, topic=topic, rate=PLAN.rate / 2, settings=PATIENT)
            for topic in (topics.orders, topics.pairs)
        )
        self.pipeline = TransactionalPipeline(
            servers, topic=topics.orders, output_topic=topics.validated, abort_every=7
        )
        self.pool = Pool(
            cluster,
            topics.long,
            size=max(PLAN.transactions_at_once, PLAN.transactions_beside),
            always=PLAN.transactions_beside,
            chance=chance,
        )
        self.committers = [
            Committers(
                servers,
                topic=producer.topic,
                groups=[f"{stem}-committer-{producer.topic}-{n}" for n in range(COMMITTERS)],
                ends=producer.ends,
            )
            for producer in self.producers
        ]
        self.readers = [
            GroupConsumer(servers, topic=topic, group=f"{topic}-readers", protocol=protocol)
            for topic, protocol in (
                (topics.validated, GroupProtocol.CONSUMER),
                (topics.orders, GroupProtocol.CONSUMER),
                (topics.pairs, GroupProtocol.CLASSIC),
                (topics.long, GroupProtocol.CLASSIC),
            )
        ]

    @property
    def groups(self) -> list[str]:
        """Groups that commit all the time."""
        members = [reader.group for reader in self.readers]
        return [*members, *(group for part in self.committers for group in part.groups)]

    @property
    def producers(self) -> tuple[AuditedProducer, ...]:
        return self.orders, self.pairs

    @property
    def writers(self) -> dict[Place, str]:
        """Return the transactional id that writes to each partition."""
        pipeline, topics = self.pipeline.group_id, self.topics
        validated = [(topics.validated, number) for number in range(PARTITIONS)]
        commits = [(OFFSETS, number) for number in range(OFFSETS_PARTITIONS)]
        own = {(topics.long, part.partition): part.transactional_id for part in self.pool.parts}
        return dict.fromkeys([*validated, *commits], pipeline) | own

    def start(self, undo: ExitStack) -> None:
        undo.callback(self.pool.stop)
        for part in (*self.readers, self.pipeline, self.pairs, self.orders, *self.committers):
            undo.enter_context(part)
        for part in self.pool.parts:
            part.start()

    def stop(self) -> None:
        """Let the pipeline pass on what is acknowledged, and end everything."""
        for producer in self.producers:
            producer.stop(timeout_seconds=DRAIN_SECONDS)
        self.pool.stop()
        assert wait_until(self._is_drained, timeout_seconds=DRAIN_SECONDS, poll_seconds=1.0), (
            f"the pipeline does not come to the end: {self.pipeline.counts}"
        )

    def _is_drained(self) -> bool:
        servers, group = self.cluster.bootstrap_servers, self.pipeline.group_id
        return all(
            (committed_offset(servers, group, TopicPartition(self.topics.orders, number)) or 0)
            >= end
            for number, end in self.orders.next_offset.items()
        )
