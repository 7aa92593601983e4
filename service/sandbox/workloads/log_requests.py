"""What a partition's leader reports of its log, and two changes that only it or the controller makes.

Log start and log end, the end of a leader epoch, deleted records, the election of the preferred
leader: single requests, as in `raw_cluster`.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Final

from collectors.wire.api import CONSUMER, Api
from rules.facts.identity import BrokerId, TopicPartition
from service.sandbox.workloads.raw_cluster import RawCluster, one_partition, patiently, require

EARLIEST: Final = -2  # ListOffsets: the first offset still retained
DEBUGGING: Final = -2  # replica id: returns the log end of whichever replica gets the request
PREFERRED: Final = 0  # ElectLeaders: the first replica of the assignment
UNCLEAN: Final = 1  # likewise: one that is not in sync, where there is no leader
CHANGE_TIMEOUT: Final = timedelta(seconds=10)

DELETE_RECORDS: Final = Api(key=21, name="DeleteRecords", oldest=2, newest=2, since="2.4")
EPOCH_END: Final = Api(key=23, name="OffsetForLeaderEpoch", oldest=4, newest=4, since="2.8")
ELECT_LEADERS: Final = Api(key=43, name="ElectLeaders", oldest=2, newest=2, since="2.4")


def log_start(cluster: RawCluster, where: TopicPartition) -> int:
    """Return the first offset that the leader still retains."""
    return cluster.offset(where, timestamp=EARLIEST)


def log_end(cluster: RawCluster, where: TopicPartition, broker_id: BrokerId | None = None) -> int:
    """Return the next offset that the leader writes, or that the replica on one broker writes."""
    return cluster.offset(where, broker_id, replica_id=DEBUGGING)


def epoch_end(cluster: RawCluster, where: TopicPartition, epoch: int) -> int:
    """Return the offset, exclusive, at which a leader epoch ends in the present leader's log.

    The request carries the leader epoch from metadata: a leader in another epoch rejects it.
    """

    def act() -> int:
        placed = cluster.placed(where)
        partition = {
            "partition": where.partition,
            "current_leader_epoch": placed.leader_epoch,
            "leader_epoch": epoch,
        }
        topic = {"topic": where.topic, "partitions": [partition]}
        answer = cluster.ask(placed.leader, EPOCH_END, replica_id=CONSUMER, topics=[topic])
        result = answer.topics[0].partitions[0]
        require(f"end of epoch {epoch} of {where}", result.error_code)
        return int(result.end_offset)

    return patiently(act)


def delete_before(cluster: RawCluster, where: TopicPartition, offset: int) -> None:
    """Delete the records below an offset on all replicas, as an operator may."""
    topics = one_partition(where, offset=offset)

    def act() -> None:
        leader = cluster.placed(where).leader
        answer = cluster.ask(leader, DELETE_RECORDS, topics=topics, timeout=CHANGE_TIMEOUT)
        require(f"deletion on {where}", answer.topics[0].partitions[0].error_code)

    patiently(act)


def elect_preferred(cluster: RawCluster, partitions: Sequence[TopicPartition]) -> None:
    """Give the partitions of one topic back to their preferred leader, which has to be in sync."""
    _elect(cluster, partitions, PREFERRED)


def elect_unclean(cluster: RawCluster, partitions: Sequence[TopicPartition]) -> None:
    """Let a replica that lives lead the partitions of one topic, in sync or not."""
    _elect(cluster, partitions, UNCLEAN)


def _elect(cluster: RawCluster, partitions: Sequence[TopicPartition], kind: int) -> None:
    topic = partitions[0].topic
    numbers = tuple(where.partition for where in partitions)
    answer = cluster.ask(
        cluster.any_running(),
        ELECT_LEADERS,
        election_type=kind,
        topic_partitions=[{"topic": topic, "partitions": numbers}],
    )
    require(f"elections of {topic}", answer.error_code)
    for result in answer.replica_election_results[0].partition_result:
        require(f"election of {topic}-{result.partition_id}", result.error_code)
