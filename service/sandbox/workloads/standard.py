"""The load that `tidemark sandbox workload` and the demo share: producers, pipeline, two groups."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Self

from service.sandbox.cluster.cluster import Sandbox
from service.sandbox.workloads.clients import ensure_topics
from service.sandbox.workloads.consumer import GroupConsumer, GroupProtocol
from service.sandbox.workloads.counts import Counts
from service.sandbox.workloads.java_tool import JavaProducer
from service.sandbox.workloads.pipeline import TransactionalPipeline
from service.sandbox.workloads.producer import IdempotentProducer
from service.sandbox.workloads.workload import Workload


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadPlan:
    """What runs, and how fast. The groups read the pipeline's output, or the topic without one."""

    topic: str = "orders"
    rate: float = 200.0  # records per second of each producer
    size: int = 100  # bytes of a value of the Python producer
    partitions: int = 3  # of topics that have to be made
    pipeline: bool = True
    commit_records: int = 100  # a transaction ends after this many records ...
    commit_seconds: float = 0.5  # ... or after this time
    abort_every: int | None = None  # abort every k-th transaction on purpose
    slow_rate: float | None = 20.0  # records per second of the slow group; None: no such group
    java: bool = False  # also a Java producer

    @property
    def output_topic(self) -> str:
        """Where the groups read."""
        return f"{self.topic}-validated" if self.pipeline else self.topic


class WorkloadSet:
    """Workloads by name that start and stop together: readers first in, producers first out."""

    def __init__(self, parts: Mapping[str, Workload]) -> None:
        self.parts = dict(parts)  # in order of the records' way
        self._running = contextlib.ExitStack()

    @property
    def counts(self) -> dict[str, Counts]:
        """The totals of this time, by name."""
        return {name: part.counts for name, part in self.parts.items()}

    def start(self) -> None:
        """Start all, or none."""
        with contextlib.ExitStack() as undo:
            for part in reversed(self.parts.values()):
                undo.enter_context(part)
            self._running = undo.pop_all()

    def check(self) -> None:
        """Raise what one of them died of."""
        for part in self.parts.values():
            part.wait(0)

    def restart(self, name: str) -> None:
        """End one in order and start another like it, as a deployment does; it counts from 0."""
        self.parts[name].stop()
        self.parts[name] = replace(self.parts[name])
        self._running.enter_context(self.parts[name])

    def stop(self) -> dict[str, Counts]:
        """Stop all, also when one of them died, and return the final totals."""
        self._running.close()
        return self.counts

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._running.__exit__(kind, error, traceback)


def standard_workload(sandbox: Sandbox, plan: WorkloadPlan | None = None) -> WorkloadSet:
    """Create the topics that are missing and return the load, not started yet."""
    plan = plan or WorkloadPlan()
    servers, topic, output = sandbox.bootstrap_servers, plan.topic, plan.output_topic
    ensure_topics(servers, *dict.fromkeys((topic, output)), partitions=plan.partitions)
    parts: dict[str, Workload] = {
        "producer": IdempotentProducer(servers, topic=topic, rate=plan.rate, size=plan.size)
    }
    if plan.java:
        parts["java-producer"] = JavaProducer(sandbox, topic=topic, rate=max(1, round(plan.rate)))
    if plan.pipeline:
        parts["pipeline"] = TransactionalPipeline(
            servers,
            topic=topic,
            output_topic=output,
            commit_records=plan.commit_records,
            commit_seconds=plan.commit_seconds,
            abort_every=plan.abort_every,
        )
    parts["fast-group"] = GroupConsumer(
        servers, topic=output, group=f"{topic}-fast", protocol=GroupProtocol.CONSUMER
    )
    if plan.slow_rate is not None:
        parts["slow-group"] = GroupConsumer(
            servers, topic=output, group=f"{topic}-slow", rate=plan.slow_rate
        )
    return WorkloadSet(parts)
