"""What others than the maker of a fault of lost records say of it, for its truth to be held against."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from confluent_kafka import Consumer, TopicPartition

from service.observe.cluster_reader import ClusterReader, Scope
from service.sandbox.cluster.cluster import Sandbox
from service.sandbox.cluster.processes import Liveness
from service.sandbox.faults import LossName, LossTruth
from service.views.snapshot_rows import partition_rows
from tests.integration.conftest import missing_from
from tests.integration.observing import ends, only, partition, why_of

SOON = 180.0
KEPT = 10  # records that all replicas have before anything happens

Check = Callable[[Sandbox, ClusterReader, LossTruth], None]


def records_on(cluster: Sandbox, topic: str, number: int = 0) -> list[int | None]:
    """Return the offsets of all records that can be read now."""
    reader = Consumer(
        {
            "bootstrap.servers": cluster.bootstrap_servers,
            "group.id": f"outside-{topic}",
            "enable.partition.eof": True,
        }
    )
    found: list[int | None] = []
    try:
        reader.assign([TopicPartition(topic, number, 0)])
        while (message := reader.poll(SOON)) is not None and message.error() is None:
            found.append(message.offset())
    finally:
        reader.close()
    return found


def is_down(cluster: Sandbox, broker: int) -> bool:
    [status] = [one for one in cluster.status() if one.node.id == broker]
    return status.liveness is Liveness.DEAD


def assert_healed(cluster: Sandbox, reader: ClusterReader, topic: str) -> None:
    """Undoing has returned: all run, all are in sync, and the fault's own topic is gone."""
    assert {one.liveness for one in cluster.status()} == {Liveness.RUNNING}
    snapshot = reader.read(Scope())
    assert why_of(snapshot) == ""
    assert missing_from(snapshot) == []
    assert all(row["topic"] != topic for row in partition_rows(snapshot))


def assert_lost(truth: LossTruth, lost: tuple[int | None, int | None]) -> None:
    assert {(one.lost_from, one.lost_to) for one in truth.partitions} == {lost}


def check_two_leader_changes(faults: Sandbox, reader: ClusterReader, truth: LossTruth) -> None:
    """Records are lost, and the old leader leads again."""
    [told] = truth.partitions
    assert_lost(truth, (KEPT, KEPT + 24))
    assert told.after.leader == told.before.leader
    assert told.after.leader_epoch >= told.before.leader_epoch + 2
    row = partition(reader.read(only(truth.topic)), truth.topic)
    assert (row["leader"], row["leader_epoch"]) == (told.after.leader, told.after.leader_epoch)
    assert records_on(faults, truth.topic) == [*range(KEPT)]
    assert truth.undo == ()


def check_leader_alone_had_them(faults: Sandbox, reader: ClusterReader, truth: LossTruth) -> None:
    """A clean election loses what the leader alone had taken."""
    [told] = truth.partitions
    assert_lost(truth, (KEPT, KEPT + 24))
    assert (told.committed_to, truth.was_unclean) == (None, False)
    assert is_down(faults, told.before.leader)
    assert ends(reader, truth.topic) == (KEPT, KEPT, KEPT)


def check_nothing_lost(faults: Sandbox, _reader: ClusterReader, truth: LossTruth) -> None:
    """An unclean election may lose nothing."""
    assert truth.was_unclean
    assert_lost(truth, (None, None))
    assert "committed_records_lost" in truth.silent
    assert records_on(faults, truth.topic) == [*range(KEPT + 24)]


def check_clean_failover(faults: Sandbox, _reader: ClusterReader, truth: LossTruth) -> None:
    """A clean election under load loses nothing that was acknowledged."""
    [told] = truth.partitions
    assert told.after.leader != told.before.leader
    assert (told.committed_to, truth.was_unclean) == (None, False)
    assert is_down(faults, told.before.leader)
    assert told.epoch_end >= told.before.high_watermark
    assert len(records_on(faults, truth.topic)) == told.after.high_watermark >= KEPT + 48


CHECKS: Final[Mapping[LossName, Check]] = {
    "double-failover": check_two_leader_changes,
    "unreplicated-loss": check_leader_alone_had_them,
    "unclean-without-loss": check_nothing_lost,
    "clean-failover-under-load": check_clean_failover,
}
