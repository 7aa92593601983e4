"""Every text of brokers from 1.1 to 4.x about ISRs, logs that are loaded, followed or cut."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rules.facts.broker_log import (
    FollowerStarted,
    IsrShrunk,
    IsrUpdated,
    LogEvent,
    LogLoaded,
    LogTruncated,
    WatermarkWentBack,
)
from rules.facts.identity import BrokerId, TopicId
from tests.log_lines import AT, events_of, origin, parser, stamped

PARTITION = "[Partition orders-a-0 broker=1] "
FETCHER = "[ReplicaFetcher replicaId=1, leaderId=2, fetcherId=0] "
LOG = "[Log partition=orders-a-0, dir=/data] "
UNIFIED_LOG = "[UnifiedLog partition=orders-a-0, dir=/data] "
UNNAMED = origin(AT, broker_id=None)  # lines of logs do not name the broker
ID = TopicId("KiaE_0lvQIm-dQRXczn4Gg")

SHRUNK = IsrShrunk(
    origin=origin(),
    topic="orders-a",
    partition=0,
    isr_before=(BrokerId(1), BrokerId(2)),
    isr=(BrokerId(1),),
    high_watermark=300,
    log_end_offset=301,
)
UPDATED = IsrUpdated(
    origin=origin(), topic="orders-a", partition=0, isr=(BrokerId(1),), leader_epoch=None
)
LOADED = LogLoaded(
    origin=UNNAMED,
    topic="orders-a",
    partition=0,
    topic_id=ID,
    high_watermark=0,
    log_end_offset=37,
)
STARTED = FollowerStarted(
    origin=origin(),
    topic="orders-a",
    partition=0,
    leader_epoch=1,
    log_end_offset=37,
    high_watermark=36,
    leader=BrokerId(2),
)
CUT = LogTruncated(origin=origin(), topic="orders-a", partition=0, offset=10, epoch=0, epoch_end=10)
UNEXPLAINED = replace(CUT, epoch=None, epoch_end=None)
WENT_BACK = WatermarkWentBack(
    origin=UNNAMED, topic="orders-a", partition=0, offset_before=37, offset=10
)

READ: list[tuple[str, str, LogEvent]] = [
    (
        "1.1 to 2.1: an ISR shrinks, without offsets",
        f"{PARTITION}Shrinking ISR from 1,2 to 1",
        replace(SHRUNK, high_watermark=None, log_end_offset=None),
    ),
    (
        "2.2 to 2.8: an ISR shrinks",
        f"{PARTITION}Shrinking ISR from 1,2 to 1. Leader: (highWatermark: 300, endOffset: 301). Out of sync replicas: (brokerId: 2, endOffset: 300).",
        SHRUNK,
    ),
    (
        "3.x and 4.x: an ISR shrinks",
        f"{PARTITION}Shrinking ISR from 1,2 to 1. Leader: (highWatermark: 300, endOffset: 301). Out of sync replicas: (brokerId: 2, endOffset: -1, lastCaughtUpTimeMs: 1795299406534).",
        SHRUNK,
    ),
    (
        "the greatest broker",
        f"{PARTITION}Shrinking ISR from 2147483647,0 to 0",
        replace(
            SHRUNK,
            isr_before=(BrokerId(2**31 - 1), BrokerId(0)),
            isr=(BrokerId(0),),
            high_watermark=None,
            log_end_offset=None,
        ),
    ),
    (
        "1.1 to 2.5: a log says itself that it is loaded",
        f"{LOG}Completed load of log with 1 segments, log start offset 0 and log end offset 37 in 19 ms",
        replace(LOADED, topic_id=None, high_watermark=None),
    ),
    (
        "2.6 to 2.8: a log is loaded",
        "Completed load of Log(dir=/data/orders-a-0, topic=orders-a, partition=0, highWatermark=0, lastStableOffset=0, logStartOffset=0, logEndOffset=37) with 1 segments in 19ms (2/10 loaded in /data)",
        replace(LOADED, topic_id=None),
    ),
    (
        "3.0 to 3.5: a log is loaded",
        "Completed load of Log(dir=/data/orders-a-0, topicId=KiaE_0lvQIm-dQRXczn4Gg, topic=orders-a, partition=0, highWatermark=0, lastStableOffset=0, logStartOffset=0, logEndOffset=37) with 1 segments in 19ms (2/10 completed in /data)",
        LOADED,
    ),
    (
        "3.6 and later: a log is loaded",
        "Completed load of Log(dir=/data/orders-a-0, topicId=KiaE_0lvQIm-dQRXczn4Gg, topic=orders-a, partition=0, highWatermark=0, lastStableOffset=0, logStartOffset=0, logEndOffset=37) with 1 segments, local-log-start-offset 0 and log-end-offset 37 in 19ms (2/10 completed in /data)",
        LOADED,
    ),
    (
        "2.6 to 3.2: a follower starts",
        "[Broker id=1] Follower orders-a-0 starts at leader epoch 1 from offset 37 with high watermark 36. Previous leader epoch was 0.",
        replace(STARTED, leader=None),
    ),
    (
        "3.3 to 3.5: a follower starts",
        "[Broker id=1] Follower orders-a-0 starts at leader epoch 1 from offset 37 with partition epoch 2 and high watermark 36. Current leader is 2. Previous leader epoch was 0.",
        STARTED,
    ),
    (
        "3.6 and later: a follower starts",
        "[Broker id=1] Follower orders-a-0 starts at leader epoch 1 from offset 37 with partition epoch 2 and high watermark 36. Current leader is 2. Previous leader Some(2) and previous leader epoch was 0.",
        STARTED,
    ),
    (
        "a follower of nobody",
        "[Broker id=1] Follower orders-a-0 starts at leader epoch 1 from offset 37 with partition epoch 2 and high watermark 36. Current leader is -1. Previous leader Some(-1) and previous leader epoch was 0.",
        replace(STARTED, leader=None),
    ),
    (
        "1.1 to 3.0: a log is cut, and nobody says why",
        f"{LOG}Truncating to offset 10",
        replace(UNEXPLAINED, origin=UNNAMED),
    ),
    (
        "2.1 to 3.0: cut to its own watermark",
        f"{FETCHER}Truncating partition orders-a-0 to local high watermark 10",
        UNEXPLAINED,
    ),
    (
        "3.1 and later: cut to its own watermark",
        f"{FETCHER}Truncating partition orders-a-0 with TruncationState(offset=10, completed=true) due to local high watermark 10",
        UNEXPLAINED,
    ),
    (
        "3.1 and later: cut by what the leader answers",
        f"{FETCHER}Truncating partition orders-a-0 with TruncationState(offset=10, completed=true) due to leader epoch and offset EpochEndOffset(errorCode=0, partition=0, leaderEpoch=0, endOffset=10)",
        CUT,
    ),
    (
        "a first of several cuts",
        f"{FETCHER}Truncating partition orders-a-0 with TruncationState(offset=20, completed=false) due to leader epoch and offset EpochEndOffset(errorCode=0, partition=0, leaderEpoch=3, endOffset=40)",
        replace(CUT, offset=20, epoch=3, epoch_end=40),
    ),
    (
        "a leader that knows no such epoch",
        f"{FETCHER}Truncating partition orders-a-0 with TruncationState(offset=10, completed=true) due to leader epoch and offset EpochEndOffset(errorCode=0, partition=0, leaderEpoch=-1, endOffset=-1)",
        UNEXPLAINED,
    ),
    (
        "2.0 to 4.1: the fetcher cuts below the watermark",
        f"{FETCHER}Truncating orders-a-0 to offset 10 below high watermark 37",
        replace(WENT_BACK, origin=origin()),
    ),
    (
        "4.2 and later: the log is cut below the watermark",
        f"{UNIFIED_LOG}Truncating orders-a-0 to offset 10 below high watermark 37",
        WENT_BACK,
    ),
    (
        "2.7 to 3.0: a watermark goes back",
        f"{LOG}Non-monotonic update of high watermark from (offset=37 segment=[0:435]) to (offset=10 segment=[0:141])",
        WENT_BACK,
    ),
    (
        "3.1 to 4.x: a watermark goes back",
        f"{UNIFIED_LOG}Non-monotonic update of high watermark from (offset=37, segment=[0:435]) to (offset=10, segment=[0:141])",
        WENT_BACK,
    ),
    (
        "back to the beginning of the log",
        f"{UNIFIED_LOG}Non-monotonic update of high watermark from (offset=37, segment=[0:435]) to (offset=10, segment=[10:0])",
        WENT_BACK,
    ),
    (
        "2.2 to 2.7: the ISR is another one",
        f"{PARTITION}ISR updated to [1,2] and zkVersion updated to [5]",
        replace(UPDATED, isr=(BrokerId(1), BrokerId(2))),
    ),
    (
        "2.7 to 3.0: the ISR is another one",
        f"{PARTITION}ISR updated to 1 and version updated to [5]",
        UPDATED,
    ),
    (
        "3.1 and later: the ISR is another one",
        f"{PARTITION}ISR updated to 1  and version updated to 5",
        UPDATED,
    ),
    (
        "3.1 and later: the ISR is too small",
        f"{PARTITION}ISR updated to 1 (under-min-isr) and version updated to 5",
        UPDATED,
    ),
    (
        "2.6 to 2.8: a leader starts",
        "[Broker id=1] Leader orders-a-0 starts at leader epoch 2 from offset 10 with high watermark 10 ISR [1] addingReplicas [] removingReplicas []. Previous leader epoch was 0.",
        replace(UPDATED, leader_epoch=2),
    ),
    (
        "3.x and 4.x: a leader starts",
        "[Broker id=1] Leader orders-a-0 with topic id Some(KiaE_0lvQIm-dQRXczn4Gg) starts at leader epoch 2 from offset 10 with partition epoch 3, high watermark 10, ISR [1], adding replicas [] and removing replicas [] . Previous leader Some(2) and previous leader epoch was 0.",
        replace(UPDATED, leader_epoch=2),
    ),
    (
        "3.x and 4.x: the controller has changed the ISR by itself",
        "[Broker id=1] Skipped the become-leader state change for orders-a-0 with topic id Some(KiaE_0lvQIm-dQRXczn4Gg) and partition state LeaderAndIsrPartitionState(topicName='orders-a', partitionIndex=0, controllerEpoch=-1, leader=1, leaderEpoch=0, isr=[1], partitionEpoch=1, replicas=[1, 2], addingReplicas=[], removingReplicas=[], isNew=false, leaderRecoveryState=0) since it is already the leader with leader epoch 0. Current high watermark 136, ISR [1], adding replicas [] and removing replicas [].",
        replace(UPDATED, leader_epoch=0),
    ),
    (
        "4.4: the same, with the partition's registration",
        "[Broker id=1] Skipped the become-leader state change for orders-a-0 with topic id Some(KiaE_0lvQIm-dQRXczn4Gg), partition registration PartitionRegistration(replicas=[1, 2], directories=[oPLuZ_PRQLqRl6PVUkHurw, lkGf650cQMLvq6z_RlhcFA], isr=[1], removingReplicas=[], addingReplicas=[], elr=[], lastKnownElr=[], leader=1, leaderRecoveryState=RECOVERED, leaderEpoch=0, partitionEpoch=1) and isNew=false since it is already the leader with leader epoch 0. Current high watermark 10, ISR [1], adding replicas [] and removing replicas [].",
        replace(UPDATED, leader_epoch=0),
    ),
]

NOTHING: list[tuple[str, str]] = [
    (
        "a copy for another disk is loaded",
        "Completed load of Log(dir=/data/orders-a-0.b3a8-future, topicId=KiaE_0lvQIm-dQRXczn4Gg, topic=orders-a, partition=0, highWatermark=0, lastStableOffset=0, logStartOffset=0, logEndOffset=37) with 1 segments in 19ms (2/10 completed in /data)",
    ),
    (
        "what is to be deleted is loaded",
        "Completed load of Log(dir=/data/orders-a-0.b3a8-delete, topicId=KiaE_0lvQIm-dQRXczn4Gg, topic=orders-a, partition=0, highWatermark=0, lastStableOffset=0, logStartOffset=0, logEndOffset=37) with 1 segments in 19ms (2/10 completed in /data)",
    ),
    (
        "nothing was cut",
        f"{UNIFIED_LOG}Truncating to 11 has no effect as the largest offset in the log is 10",
    ),
    ("from 3.1 on the fetcher says it, with its reason", f"{UNIFIED_LOG}Truncating to offset 10"),
    (
        "a copy for another disk is cut",
        "[ReplicaAlterLogDirsThread-0]: Truncating partition orders-a-0 with TruncationState(offset=10, completed=true) due to local high watermark 10",
    ),
    (
        "a copy for another disk is cut below its watermark",
        f"{UNIFIED_LOG}Truncating future orders-a-0 to offset 10 below high watermark 37",
    ),
    (
        "a follower takes over an older watermark of its new leader, in a clean failover",
        f"{UNIFIED_LOG}Non-monotonic update of high watermark from (offset=5177, segment=[0:877088]) to (offset=5176, segment=[-1:-1])",
    ),
    (
        "a log that is begun anew, from one empty beginning to another",
        f"{UNIFIED_LOG}Non-monotonic update of high watermark from (offset=9, segment=[9:0]) to (offset=7, segment=[7:0])",
    ),
    (
        "the controllers' own log",
        "java.lang.IllegalArgumentException: Non-monotonic update of high watermark from 37 to 10",
    ),
    (
        "something else of a follower",
        "[RaftManager id=1] Follower end offset updated to 5 after append",
    ),
    (
        "a leader that knew of something newer",
        "[Broker id=1] Skipped the become-leader state change for orders-a-0 with topic id Some(KiaE_0lvQIm-dQRXczn4Gg) and partition state LeaderAndIsrPartitionState(topicName='orders-a', partitionIndex=0, leader=1, leaderEpoch=0, isr=[1, 2]) since the leader is already at a newer partition epoch 4.",
    ),
    ("something else of a leader", "[RaftManager id=1] Leader 100 is not reachable"),
]

BEYOND: list[tuple[str, str]] = [
    ("a broker beyond int32", f"{PARTITION}Shrinking ISR from 2147483648,2 to 2"),
    ("no partition is told", "Shrinking ISR from 1,2 to 1"),
    ("a list of something else", f"{PARTITION}Shrinking ISR from a to b"),
    ("an offset beyond int64", READ[6][1].replace("logEndOffset=37", "logEndOffset=" + "9" * 19)),
    ("a negative end", READ[6][1].replace("logEndOffset=37", "logEndOffset=-1")),
    ("no topic is told", "Completed load of Log(dir=/data/orders-a-0) with 1 segments"),
    (
        "no log speaks",
        "Completed load of log with 1 segments, log start offset 0 and log end offset 37 in 19 ms",
    ),
    ("a leader epoch beyond int32", READ[10][1].replace("epoch 1 from", "epoch 2147483648 from")),
    ("a follower of a negative leader", READ[10][1].replace("leader is 2", "leader is -2")),
    ("cut at a negative offset", READ[15][1].replace("offset=10,", "offset=-1,")),
    ("cut for no known reason", READ[15][1].replace("leader epoch and offset", "whatever")),
    ("back to a negative offset", READ[21][1].replace("(offset=10", "(offset=-1")),
]


@pytest.mark.parametrize(
    ("message", "expected"), [pytest.param(*case[1:], id=case[0]) for case in READ]
)
def test_a_line_of_a_replica_is_read(message: str, expected: LogEvent) -> None:
    assert events_of(stamped(message)) == [expected]


@pytest.mark.parametrize("message", [pytest.param(text, id=why) for why, text in NOTHING])
def test_an_ordinary_line_of_a_replica_is_no_event_and_not_counted(message: str) -> None:
    assert events_of(stamped(message)) == []


@pytest.mark.parametrize("message", [pytest.param(text, id=why) for why, text in BEYOND])
def test_what_no_broker_writes_is_no_event_and_counted(message: str) -> None:
    made = parser()
    assert made.feed([stamped(message).encode()]) == []
    assert made.unparsed == 1


@pytest.mark.parametrize("topic", ["a", "-0", "1-2-3", "x" * 249, "dots.and_underscores", "Log-1"])
@pytest.mark.parametrize("message", [pytest.param(case[1], id=case[0]) for case in READ])
def test_any_legal_name_of_a_topic_is_read(message: str, topic: str) -> None:
    (event,) = events_of(stamped(message.replace("orders-a", topic)))
    assert (event.topic, event.partition) == (topic, 0)


@pytest.mark.parametrize("message", [pytest.param(case[1], id=case[0]) for case in READ])
def test_the_line_of_another_broker_is_that_brokers_whatever_was_declared(message: str) -> None:
    (event,) = events_of(stamped(message), broker_id=9)
    assert event.origin.broker_id == (9 if "[" not in message or "Log partition" in message else 1)


@pytest.mark.parametrize("message", [pytest.param(case[1], id=case[0]) for case in READ])
def test_a_line_cut_anywhere_is_the_same_event_counted_or_none(message: str) -> None:
    whole = stamped(message)
    (event,) = events_of(whole)
    for length in range(len(whole)):
        made = parser()
        told = made.feed([whole[:length].encode()])
        assert len(told) + made.unparsed <= 1
        assert told in ([], [event]) or _is_cut_number(told[0], event), length


def _is_cut_number(told: LogEvent, event: LogEvent) -> bool:
    """Tell whether only what stood last in the line is another: no sign says that it goes on."""
    match told, event:
        case IsrShrunk(), IsrShrunk():
            return replace(event, high_watermark=None, log_end_offset=None) == replace(
                told, isr=event.isr
            )
        case FollowerStarted(), FollowerStarted():
            return told == replace(event, leader=None)
        case LogTruncated(), LogTruncated():
            return told.epoch is None and event.offset // 10 == told.offset
        case WatermarkWentBack(), WatermarkWentBack():
            return told == replace(event, offset_before=3)
        case _:
            return False
