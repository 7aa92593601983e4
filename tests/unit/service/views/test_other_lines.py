"""Lines beside a rejection, in words: what a returning replica cut away is the loss."""

from __future__ import annotations

from typing import Any

import pytest

from service.views.other_lines import WORDS
from tests.unit.service.cli.sequence.given import TOPIC_ID, reading, rejected

AT = "[2026-11-21 12:00:05,000]"
STARTS = (
    f"{AT} INFO [Broker id=1] Follower orders-0 starts at leader epoch 1 from offset 37 with "
    "partition epoch 2 and high watermark 37. Current leader is 2. Previous leader Some(1) and "
    "previous leader epoch was 0. (state.change.logger)"
)
CUT = (
    f"{AT} INFO [ReplicaFetcher replicaId=1, leaderId=2, fetcherId=0] Truncating partition orders-0 "
    "with TruncationState(offset=10, completed=true) due to leader epoch and offset "
    "EpochEndOffset(errorCode=0, partition=0, leaderEpoch=0, endOffset=10) "
    "(kafka.server.ReplicaFetcherThread)"
)
ORDINARY_CUT = (
    f"{AT} INFO [ReplicaFetcher replicaId=1, leaderId=2, fetcherId=0] Truncating partition orders-0 "
    "with TruncationState(offset=10, completed=true) due to local high watermark 10 "
    "(kafka.server.ReplicaFetcherThread)"
)
BACK = (
    f"{AT} WARN [UnifiedLog partition=orders-0, dir=/data] Non-monotonic update of high watermark "
    "from (offset=37, segment=[0:435]) to (offset=10, segment=[0:141]) "
    "(org.apache.kafka.storage.internals.log.UnifiedLog)"
)
SHRUNK = (
    f"{AT} INFO [Partition orders-0 broker=1] Shrinking ISR from 1,2 to 1. Leader: (highWatermark: "
    "300, endOffset: 301). Out of sync replicas: (brokerId: 2, endOffset: 300, "
    "lastCaughtUpTimeMs: 1) (kafka.cluster.Partition)"
)
UPDATED = (
    f"{AT} INFO [Partition orders-0 broker=1] ISR updated to 1 (under-min-isr) and version updated "
    "to 7 (kafka.cluster.Partition)"
)
LOADED = (
    f"{AT} INFO Completed load of Log(dir=/data/orders-0, topicId={TOPIC_ID}, topic=orders, "
    "partition=0, highWatermark=0, lastStableOffset=0, logStartOffset=0, logEndOffset=37) with 1 "
    "segments, local-log-start-offset 0 and log-end-offset 37 in 33ms (18/24 completed in /data) "
    "(kafka.log.LogManager)"
)
OLD_EPOCH = (
    "org.apache.kafka.common.errors.InvalidProducerEpochException: Epoch of producer 2007 at "
    "offset 3 in orders-0 is 0, which is smaller than the last seen epoch 1"
)
UNCLEAN = (
    f"{AT} INFO [QuorumController id=100] UNCLEAN partition change for orders-0 with topic ID "
    f"{TOPIC_ID}: isr: [1] -> [2], leader: 1 -> 2, leaderRecoveryState: RECOVERED -> RECOVERING, "
    "leaderEpoch: 0 -> 1, partitionEpoch: 2 -> 3 "
    "(org.apache.kafka.controller.ReplicationControlManager)"
)


def beside(*lines: str) -> list[dict[str, Any]]:
    (event,) = reading([*lines, *rejected(27, 2)]).events
    rows: list[dict[str, Any]] = event.row["other_lines"]
    return rows


@pytest.mark.parametrize(
    ("line", "kind", "explanation"),
    [
        (STARTS, "follower_started", "a broker follows in leader epoch 1, and its own log ends"),
        (
            CUT,
            "log_truncated",
            "a replica truncated its log to 10, where leader epoch 0 ends for its",
        ),
        (ORDINARY_CUT, "log_truncated", "a replica truncated its log to 10, which is usual"),
        (BACK, "high_watermark_went_back", "went back from 37 to 10: it truncated 27 offsets"),
        (SHRUNK, "isr_shrunk", "a leader requests an ISR of 1, which the controller may reject"),
        (UPDATED, "isr_updated", "the ISR is 1: from then on records that all of these have"),
        (LOADED, "log_loaded", "a broker has started, and its log ends at 37"),
        (OLD_EPOCH, "epoch_rejected", "a batch of the older producer epoch 0 was rejected"),
        (UNCLEAN, "unclean_change", "broker 2 became leader after broker 1 by an unclean"),
    ],
)
def test_each_kind_of_line_is_told_in_words(line: str, kind: str, explanation: str) -> None:
    (row,) = beside(line)
    assert row["kind"] == kind
    assert explanation in row["explanation"]


def test_every_kind_has_a_word() -> None:
    assert len(set(WORDS.values())) == len(WORDS) == 9


@pytest.mark.parametrize("end", [STARTS, LOADED.replace("INFO Comp", "INFO [Broker id=1] Comp")])
def test_what_a_returning_leader_cut_away_is_a_range(end: str) -> None:
    *_, row = beside(end, CUT)
    assert row["explanation"].endswith(
        ": [10, 37) is gone there, 27 offsets that its leader does not have"
    )


def test_lines_of_several_files_are_put_in_the_order_of_their_times() -> None:
    later = CUT.replace("12:00:05", "12:00:06")
    assert [row["kind"] for row in beside(later, STARTS)] == ["follower_started", "log_truncated"]


def test_a_cut_at_its_own_end_takes_nothing_away() -> None:
    *_, row = beside(STARTS.replace("from offset 37", "from offset 10"), CUT)
    assert row["explanation"].endswith(": nothing, its own log ended at 10")


def test_the_end_of_another_broker_s_log_says_nothing() -> None:
    *_, row = beside(STARTS.replace("Broker id=1", "Broker id=3"), CUT)
    assert row["explanation"].endswith("ends for its leader")
