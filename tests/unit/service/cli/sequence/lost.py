"""What brokers write of the textbook loss: broker 1 alone had [3, 27), and broker 2 led without it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC
from typing import Final

from collectors.broker_log.parser import LineParser
from rules.facts.broker_log import LogEvent
from tests.unit.service.cli.sequence.given import TOPIC_ID

UNCLEAN: Final = (
    "[2026-11-21 12:00:01,000] INFO [QuorumController id=100] UNCLEAN partition change for orders-0 "
    f"with topic ID {TOPIC_ID}: isr: [1] -> [2], leader: 1 -> 2, leaderRecoveryState: RECOVERED "
    "-> RECOVERING, leaderEpoch: 0 -> 1, partitionEpoch: 2 -> 3 "
    "(org.apache.kafka.controller.ReplicationControlManager)"
)
ASKED: Final = (
    "[2026-11-21 11:59:00,000] INFO [Partition orders-0 broker=1] Shrinking ISR from 1,2 to 1. Leader: "
    "(highWatermark: 3, endOffset: 27). Out of sync replicas: (brokerId: 2, endOffset: 3, "
    "lastCaughtUpTimeMs: 0). (kafka.cluster.Partition)"
)
ALONE: Final = (
    "[2026-11-21 11:59:00,030] INFO [Partition orders-0 broker=1] ISR updated to 1  and version "
    "updated to 2 (kafka.cluster.Partition)"
)
FOLLOWS: Final = (
    "[2026-11-21 12:20:00,000] INFO [Broker id=1] Follower orders-0 starts at leader epoch 1 from "
    "offset 27 with partition epoch 4 and high watermark 27. Current leader is 2. Previous leader "
    "epoch was 0. (state.change.logger)"
)
CUT: Final = (
    "[2026-11-21 12:20:00,100] INFO [ReplicaFetcher replicaId=1, leaderId=2, fetcherId=0] Truncating "
    "partition orders-0 with TruncationState(offset=3, completed=true) due to leader epoch and offset "
    "EpochEndOffset(errorCode=0, partition=0, leaderEpoch=0, endOffset=3) "
    "(kafka.server.ReplicaFetcherThread)"
)
WENT_BACK: Final = (
    "[2026-11-21 12:20:00,101] WARN [UnifiedLog partition=orders-0, dir=/d] Non-monotonic update of "
    "high watermark from (offset=27, segment=[0:435]) to (offset=3, segment=[0:141]) "
    "(org.apache.kafka.storage.internals.log.UnifiedLog)"
)
CONTROLLER: Final = {"controller.log": [UNCLEAN]}
OLD_LEADER: Final = {"broker-1.log": [ASKED, ALONE, FOLLOWS, CUT, WENT_BACK]}


def line_events(logs: Mapping[str, Sequence[str]]) -> list[LogEvent]:
    """Return what is read of logs."""
    return [
        event
        for name, lines in logs.items()
        for event in LineParser(name, None, UTC).feed([line.encode() for line in lines])
    ]
