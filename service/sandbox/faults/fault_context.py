"""The topic of a fault: written, observed before the fault, and described afterwards.

The truth is verified here: the end of the old leader epoch, as the new leader has it, against
the records that can be read before and after.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from rules.errors import SandboxError
from rules.facts.identity import BrokerId, TopicId, TopicPartition
from service.sandbox.cluster.processes import Liveness
from service.sandbox.cluster.readiness import await_condition
from service.sandbox.faults.fault_run import FaultRun
from service.sandbox.faults.loss_truth import (
    GroupTruth,
    LossTruth,
    LostTransaction,
    PartitionState,
    PartitionTruth,
    require_agreement,
    require_expected,
)
from service.sandbox.faults.replicas import (
    Pair,
    await_gone,
    await_led,
    choose_pair,
    heal,
    unclean_changes,
)
from service.sandbox.workloads.log_reading import read_records
from service.sandbox.workloads.log_requests import epoch_end, log_end, log_start
from service.sandbox.workloads.raw_cluster import RawCluster, patiently
from service.sandbox.workloads.raw_producer import ALL_IN_SYNC, append_plain

KEPT: Final = 10  # records that every replica has before anything happens

UNCLEAN_ALLOWED: Final = "unclean.leader.election.enable"

Injection = Callable[[], LossTruth]


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The rules that a monitor has to fire, those that would be wrong, and when it is over."""

    rule: str | None = None
    also: tuple[str, ...] = ()
    silent: tuple[str, ...] = ()
    ends: str


@dataclass(slots=True, kw_only=True)
class Before:
    """The topic just before the fault; one entry per partition."""

    topic_id: TopicId
    states: list[PartitionState]
    records: list[dict[int, bytes]]  # by offset


@dataclass(slots=True, kw_only=True)
class FaultContext:
    """One topic, its two brokers, and who had read and written what is to be lost."""

    run: FaultRun
    pair: Pair
    partitions: tuple[TopicPartition, ...]
    replicas: tuple[BrokerId, ...]  # of each partition, the leader first
    settings: Mapping[str, str]  # of the topic
    groups: dict[TopicPartition, list[GroupTruth]] = field(default_factory=dict)
    transactions: dict[TopicPartition, list[LostTransaction]] = field(default_factory=dict)

    @property
    def topic(self) -> str:
        """The topic's name."""
        return self.where.topic

    @property
    def where(self) -> TopicPartition:
        """The first partition, the only one of faults about sequences."""
        return self.partitions[0]

    @property
    def is_unclean(self) -> bool:
        """Whether a replica that is not in sync may lead."""
        return self.settings[UNCLEAN_ALLOWED] == "true"

    def write(self, count: int, *, acks: int = ALL_IN_SYNC) -> None:
        """Append so many records to each partition, in batches; all are acknowledged."""
        for where in self.partitions:
            for size in self.batches(count):
                first = self._state(where).log_end_offset
                append_plain(self.run.cluster, where, size, first=first, acks=acks)

    def batches(self, count: int) -> Iterator[int]:
        """Cut a number of records into batches."""
        whole, rest = divmod(count, self.run.options.batch)
        yield from [self.run.options.batch] * whole
        if rest:
            yield rest

    def read(self) -> list[dict[int, bytes]]:
        """Return the values on each partition by offset, as far as readers may see them."""
        running = self.run.cluster.running()  # a paused one would never answer
        servers = ",".join(self.run.sandbox.broker_address(broker) for broker in running)
        return [read_records(servers, where) for where in self.partitions]

    def observe(self) -> list[PartitionState]:
        """Ask the leaders for the state of each partition."""
        return [self._state(where) for where in self.partitions]

    def before(self) -> Before:
        """Note everything, the states last."""
        topic_id, records = self.topic_id(), self.read()
        return Before(topic_id=topic_id, records=records, states=self.observe())

    def topic_id(self) -> TopicId:
        """Return the id that the topic has now."""
        topic_id = self.run.cluster.topic_id(self.topic)
        if topic_id is None:
            raise SandboxError(f"topic {self.topic} is gone")
        return topic_id

    def truth(self, before: Before, verdict: Verdict) -> LossTruth:
        """Observe, read and compare; return what is certain, or raise when it does not agree."""
        self._await_replicated()
        topic_id = self.topic_id()
        is_same = topic_id == before.topic_id
        records = self.read()
        partitions = [
            self._build_partition(where, state, is_same_topic=is_same)
            for where, state in zip(self.partitions, before.states, strict=True)
        ]
        if is_same:
            for partition, old, new in zip(partitions, before.records, records, strict=True):
                require_agreement(partition, old, new)
        truth = LossTruth(
            fault=self.run.fault,
            topic=self.topic,
            topic_id=before.topic_id,
            new_topic_id=topic_id,
            rule=verdict.rule,
            also=verdict.also,
            silent=verdict.silent,
            was_unclean=unclean_changes(self.run, self.topic) > 0,
            partitions=tuple(partitions),
            ends=verdict.ends,
            undo=self._start_commands(),
        )
        require_expected(truth)
        return truth

    def _start_commands(self) -> tuple[str, ...]:
        """Return what starts the brokers that are down."""
        nodes = self.run.sandbox.status()
        down = [status.node.id for status in nodes if status.liveness is Liveness.DEAD]
        return tuple(self.run.command("start", str(broker)) for broker in down)

    def _build_partition(
        self, where: TopicPartition, before: PartitionState, *, is_same_topic: bool
    ) -> PartitionTruth:
        end = epoch_end(self.run.cluster, where, before.leader_epoch)
        is_cut = is_same_topic and end < before.log_end_offset
        return PartitionTruth(
            partition=where.partition,
            before=before,
            after=self._state(where),
            epoch_end=end,
            lost_from=end if is_cut else None,
            lost_to=before.log_end_offset if is_cut else None,
            groups=tuple(self.groups.get(where, ())),
            transactions=tuple(self.transactions.get(where, ())) if is_cut else (),
        )

    def _state(self, where: TopicPartition) -> PartitionState:
        """Ask the leader; one that was just elected may reject the request at first."""
        return patiently(lambda: _state_of(self.run.cluster, where))

    def _await_replicated(self) -> None:
        """Wait until readers may see the whole log, which a new leader lets them only then."""
        await_condition(
            lambda: all(state.high_watermark == state.log_end_offset for state in self.observe()),
            f"{self.topic} is not replicated",
        )


def make_context(
    run: FaultRun, *, is_unclean: bool = False, min_isr: int = 1, has_bystander: bool = False
) -> FaultContext:
    """Create the topic on a leader and a follower, with some records that all replicas have.

    `has_bystander` puts a third replica on the other broker.
    """
    pair, topic = choose_pair(run), run.where.topic
    if run.cluster.topic(topic):
        raise SandboxError(f"topic {topic} is there already: {run.fault} makes one of its own")
    both = (pair.leader, pair.follower)
    others = [broker for broker in run.cluster.running() if broker not in both]
    context = FaultContext(
        run=run,
        pair=pair,
        partitions=tuple(TopicPartition(topic, n) for n in range(run.options.partitions)),
        replicas=(*both, *(others if has_bystander else ())),
        settings={
            "min.insync.replicas": str(min_isr),
            UNCLEAN_ALLOWED: str(is_unclean).lower(),
        },
    )
    if run.options.topic is None:
        run.undo.callback(await_gone, run, topic)
        run.undo.callback(run.remove_topic, topic)
    run.undo.callback(heal, run, both)
    create_topic(context)
    context.write(KEPT)
    return context


def create_topic(context: FaultContext) -> None:
    """Create the topic of the fault, and wait until each partition has a leader."""
    assignment = [context.replicas for _ in context.partitions]
    context.run.admin.create_topic(context.topic, assignment=assignment, configs=context.settings)
    await_led(context.run, context.partitions)


def _state_of(cluster: RawCluster, where: TopicPartition) -> PartitionState:
    placed, start = cluster.placed(where), log_start(cluster, where)
    ends = cluster.ends(where)
    return PartitionState(
        leader=placed.leader,
        leader_epoch=placed.leader_epoch,
        isr=tuple(sorted(placed.isr)),
        log_start_offset=start,
        last_stable_offset=ends.last_stable_offset,
        high_watermark=ends.high_watermark,
        log_end_offset=log_end(cluster, where),
    )


def epochs(before: Before) -> list[int]:
    """Return the leader epoch of each partition before the fault."""
    return [state.leader_epoch for state in before.states]


def commit_as_reader(context: FaultContext) -> None:
    """Let a group have read every partition to its end, and commit that with the leader epoch."""
    run = context.run
    group = f"{run.new_name}-readers"
    if group not in run.groups:
        run.undo.callback(run.admin.delete_group, group)
        run.groups.append(group)
    for where, state in zip(context.partitions, context.observe(), strict=True):
        group_truth = GroupTruth(
            group=group, committed_offset=state.high_watermark, leader_epoch=state.leader_epoch
        )
        commit(context, where, group_truth)
        context.groups[where] = [group_truth]


def commit(context: FaultContext, where: TopicPartition, group_truth: GroupTruth) -> None:
    """Commit the offset and leader epoch of a group's truth."""
    context.run.cluster.commit(
        group_truth.group,
        where,
        group_truth.committed_offset,
        leader_epoch=group_truth.leader_epoch,
    )
