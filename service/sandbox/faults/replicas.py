"""How a replica falls behind, how its leader dies, and how both come back.

A fault about losses takes two of the three brokers, a leader and a follower; the third one holds
what the cluster itself needs and answers meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from rules.errors import SandboxError
from rules.facts.identity import BrokerId, TopicPartition
from service.sandbox.cluster.processes import Liveness
from service.sandbox.cluster.readiness import await_condition, listed_brokers
from service.sandbox.cluster.state import CONTROLLER_ID
from service.sandbox.faults.fault_run import FaultRun
from service.sandbox.workloads.log_requests import elect_unclean, log_end
from service.sandbox.workloads.raw_cluster import (
    Placed,
    RawCluster,
    RejectedError,
    patiently,
)

BROKERS_NEEDED: Final = 3
NO_LEADER: Final = -1
# What an election is rejected with while the controller does not know yet who died and who is back.
NOT_ELECTED: Final = frozenset({"ELECTION_NOT_NEEDED", "ELIGIBLE_LEADERS_NOT_AVAILABLE"})


@dataclass(frozen=True, slots=True)
class Pair:
    """The two replicas of a topic that is to suffer."""

    leader: BrokerId
    follower: BrokerId


def choose_pair(run: FaultRun) -> Pair:
    """Choose two brokers that do not coordinate what has the fault's own name."""
    running = run.cluster.running()
    if len(running) < BROKERS_NEEDED:
        raise SandboxError(f"{run.fault} needs three running brokers: tidemark sandbox status")
    bystander = run.cluster.coordinator(run.new_name)
    leader, follower, *_ = (broker for broker in running if broker != bystander)
    return Pair(leader, follower)


def freeze_follower(run: FaultRun, pair: Pair, partitions: Sequence[TopicPartition]) -> None:
    """Pause the follower (SIGSTOP) at a time when it holds all that its leader does."""
    for where in partitions:
        await_condition(
            partial(patiently, partial(_is_level, run, pair, where)),
            f"broker {pair.follower} is not level on {where}",
        )
    run.sandbox.pause(pair.follower)


def await_alone(run: FaultRun, pair: Pair, partitions: Sequence[TopicPartition]) -> None:
    """Wait until the leader is the only one in sync, and no broker lists the follower."""
    await_everywhere(
        run,
        partitions,
        lambda placed: all(partition.isr == {pair.leader} for partition in placed),
        f"broker {pair.follower} is still in sync on {partitions[0].topic}",
    )
    await_condition(  # what it led, coordinators too, is led by others from here on
        lambda: not any(pair.follower in brokers for brokers in _listings(run)),
        f"broker {pair.follower} is still registered",
    )


def await_leader(
    run: FaultRun,
    partitions: Sequence[TopicPartition],
    leaders: Collection[BrokerId],
    *,
    above: Sequence[int],
) -> None:
    """Wait until one of `leaders` leads each partition, in an epoch above the one in `above`."""
    await_everywhere(
        run,
        partitions,
        lambda placed: all(
            partition.leader in leaders and partition.leader_epoch > epoch
            for partition, epoch in zip(placed, above, strict=True)
        ),
        f"none of the brokers {sorted(leaders)} became leader of {partitions[0].topic}",
    )


def ask_for_unclean(cluster: RawCluster, partitions: Sequence[TopicPartition]) -> None:
    """Ask for an unclean election as soon as there is no leader, until there is one."""

    def has_leader() -> bool:
        leaders = [partition.leader for partition in cluster.topic(partitions[0].topic)]
        if NO_LEADER not in leaders:
            return False  # the controller has not noticed yet that the old one died
        try:
            elect_unclean(cluster, partitions)
        except RejectedError as rejected:
            if rejected.error not in NOT_ELECTED:
                raise
            return False
        return True

    await_condition(has_leader, f"nobody was elected for {partitions[0].topic}")


def await_leaderless(run: FaultRun, partitions: Sequence[TopicPartition]) -> None:
    """Wait until the controller has noticed that the leader died."""
    await_everywhere(
        run,
        partitions,
        lambda placed: all(partition.leader == NO_LEADER for partition in placed),
        f"{partitions[0].topic} has a leader still",
    )


def await_in_sync(
    run: FaultRun, partitions: Sequence[TopicPartition], brokers: Collection[BrokerId]
) -> None:
    """Wait until these brokers are in sync on every partition."""
    await_everywhere(
        run,
        partitions,
        lambda placed: all(partition.isr.issuperset(brokers) for partition in placed),
        f"brokers {sorted(brokers)} are not all in sync on {partitions[0].topic}",
    )


def await_led(run: FaultRun, partitions: Sequence[TopicPartition]) -> None:
    """Wait until every partition of a new topic has a leader."""
    await_everywhere(
        run,
        partitions,
        lambda placed: all(partition.leader != NO_LEADER for partition in placed),
        f"topic {partitions[0].topic} has no leaders",
    )


def await_gone(run: FaultRun, topic: str) -> None:
    """Wait until no broker has a deleted topic any more."""
    await_condition(
        lambda: (
            not any(run.cluster.topic(topic, broker=broker) for broker in run.cluster.running())
        ),
        f"topic {topic} is still listed",
    )


def await_everywhere(
    run: FaultRun,
    partitions: Sequence[TopicPartition],
    condition: Callable[[Sequence[Placed]], bool],
    otherwise: str,
) -> None:
    """Wait until a condition holds for the partitions of a topic as every running broker reports them.

    A broker that was paused until now still reports old metadata, so one broker alone is not enough.
    """

    def holds() -> bool:
        views = (
            run.cluster.topic(partitions[0].topic, broker=broker)
            for broker in run.cluster.running()
        )
        return all(len(placed) == len(partitions) and condition(placed) for placed in views)

    await_condition(holds, otherwise)


def revive(run: FaultRun, broker: BrokerId) -> None:
    """Resume a paused broker or start a dead one; a running one stays as it is."""
    [status] = [
        node_status for node_status in run.sandbox.status() if node_status.node.id == broker
    ]
    if status.liveness is Liveness.PAUSED:
        run.sandbox.resume(broker)
    elif status.liveness is not Liveness.RUNNING:
        run.sandbox.start(broker)


def heal(run: FaultRun, brokers: Collection[BrokerId]) -> None:
    """Bring brokers back, and wait until all that run are in sync wherever they have a replica."""
    for broker in brokers:
        revive(run, broker)
    await_condition(lambda: _is_whole(run), f"brokers {sorted(brokers)} are not back in sync")


def unclean_changes(run: FaultRun, topic: str) -> int:
    """Count the controller's log lines of unclean changes of a topic."""
    log = run.sandbox.log_directory(CONTROLLER_ID) / "controller.log"
    marker = f"UNCLEAN partition change for {topic}-"
    return log.read_text(encoding="utf-8", errors="replace").count(marker)


def _is_whole(run: FaultRun) -> bool:
    """Whether every running broker reports all of them in sync."""
    running = run.cluster.running()
    return all(
        partition.leader != NO_LEADER
        and partition.isr.issuperset(set(partition.replicas).intersection(running))
        for broker in running
        for partitions in run.cluster.topics(broker=broker).values()
        for partition in partitions
    )


def _is_level(run: FaultRun, pair: Pair, where: TopicPartition) -> bool:
    ends = [log_end(run.cluster, where, broker) for broker in (pair.follower, pair.leader)]
    watermark = run.cluster.ends(where).high_watermark
    return ends == [watermark, watermark]


def _listings(run: FaultRun) -> list[frozenset[int]]:
    running = run.cluster.running()
    return [listed_brokers(run.sandbox.broker_address(broker)) for broker in running]
