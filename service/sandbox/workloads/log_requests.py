"""What a partition's leader reports of its log, and two changes that only it or the controller makes.

Log start and log end, the end of a leader epoch, deleted records, the election of the preferred
leader: single requests, as in `raw_cluster`.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any, Final

from collectors.wire import codec
from collectors.wire.api import CONSUMER, Api
from rules.facts.identity import BrokerId, TopicPartition
from service.sandbox.workloads.raw_cluster import (
    LATEST,
    LIST_OFFSETS,
    RawCluster,
    RejectedError,
    patiently,
    require,
)

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
    leader = cluster.placed(where).leader
    return _offset(cluster, where, broker_id=leader, timestamp=EARLIEST, replica_id=CONSUMER)


def log_end(cluster: RawCluster, where: TopicPartition, broker_id: BrokerId | None = None) -> int:
    """Return the next offset that the leader writes, or that the replica on one broker writes."""
    target = cluster.placed(where).leader if broker_id is None else broker_id
    return _offset(cluster, where, broker_id=target, timestamp=LATEST, replica_id=DEBUGGING)


def epoch_end(cluster: RawCluster, where: TopicPartition, epoch: int) -> int:
    """Return the offset, exclusive, at which a leader epoch ends in the present leader's log.

    The request carries the leader epoch from metadata: a leader in another epoch rejects it.
    """

    def act() -> int:
        placed = cluster.placed(where)

        def build(version: int) -> Any:
            partition = codec.message(EPOCH_END, version, "OffsetForLeaderPartition")(
                partition=where.partition,
                current_leader_epoch=placed.leader_epoch,
                leader_epoch=epoch,
            )
            topic = codec.message(EPOCH_END, version, "OffsetForLeaderTopic")(
                topic=where.topic, partitions=(partition,)
            )
            return codec.message(EPOCH_END, version, "OffsetForLeaderEpochRequest")(
                replica_id=CONSUMER, topics=(topic,)
            )

        result = cluster.ask(placed.leader, EPOCH_END, build).topics[0].partitions[0]
        require(f"end of epoch {epoch} of {where}", result.error_code)
        return int(result.end_offset)

    return patiently(act)


def delete_before(cluster: RawCluster, where: TopicPartition, offset: int) -> None:
    """Delete the records below an offset on all replicas, as an operator may."""

    def build(version: int) -> Any:
        partition = codec.message(DELETE_RECORDS, version, "DeleteRecordsPartition")(
            partition_index=where.partition, offset=offset
        )
        topic = codec.message(DELETE_RECORDS, version, "DeleteRecordsTopic")(
            name=where.topic, partitions=(partition,)
        )
        return codec.message(DELETE_RECORDS, version, "DeleteRecordsRequest")(
            topics=(topic,), timeout=CHANGE_TIMEOUT
        )

    def act() -> None:
        answer = cluster.ask(cluster.placed(where).leader, DELETE_RECORDS, build)
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

    def build(version: int) -> Any:
        entry = codec.message(ELECT_LEADERS, version, "TopicPartitions")(
            topic=topic, partitions=numbers
        )
        return codec.message(ELECT_LEADERS, version, "ElectLeadersRequest")(
            election_type=kind, topic_partitions=(entry,)
        )

    answer = cluster.ask(cluster.any_running(), ELECT_LEADERS, build)
    require(f"elections of {topic}", answer.error_code)
    for result in answer.replica_election_results[0].partition_result:
        require(f"election of {topic}-{result.partition_id}", result.error_code)


def _offset(
    cluster: RawCluster,
    where: TopicPartition,
    *,
    broker_id: BrokerId,
    timestamp: int,
    replica_id: int,
) -> int:
    def build(version: int) -> Any:
        partition = codec.message(LIST_OFFSETS, version, "ListOffsetsPartition")(
            partition_index=where.partition, timestamp=timestamp
        )
        topic = codec.message(LIST_OFFSETS, version, "ListOffsetsTopic")(
            name=where.topic, partitions=(partition,)
        )
        return codec.message(LIST_OFFSETS, version, "ListOffsetsRequest")(
            replica_id=replica_id, isolation_level=0, topics=(topic,)
        )

    answer = cluster.ask(broker_id, LIST_OFFSETS, build)
    result = answer.topics[0].partitions[0]
    require(f"offsets of {where} on broker {broker_id}", result.error_code)
    if result.offset < 0:
        raise RejectedError(f"offsets of {where} on broker {broker_id}", "UNKNOWN_OFFSET")
    return int(result.offset)
