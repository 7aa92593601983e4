"""Changes of replicas and leaders as brokers of every version write them: each form with its event."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import strategies as st

from rules.facts.broker_log import (
    FollowerStarted,
    IsrShrunk,
    IsrUpdated,
    LogLoaded,
    LogTruncated,
    UncleanChange,
    WatermarkWentBack,
)
from rules.facts.identity import BrokerId
from tests.log_lines import origin
from tests.property.written_lines import AROUND, BROKERS, INT32, INT64, ISRS, Draw, Written


@st.composite
def isrs(draw: Draw) -> Written:
    """Draw an ISR that shrinks."""
    around, before, after = draw(AROUND), draw(ISRS), draw(ISRS)
    has_offsets, high_watermark, end = draw(st.booleans()), draw(INT64), draw(INT64)
    offsets = (
        f". Leader: (highWatermark: {high_watermark}, endOffset: {end})."
        " Out of sync replicas: (brokerId: 2, endOffset: -1)."
    )
    message = (
        f"[Partition {around.name} broker={around.broker_id}] Shrinking ISR from"
        f" {_listed(before, ',')} to {_listed(after, ',')}{offsets if has_offsets else ''}"
    )
    event = IsrShrunk(
        origin=origin(around.at, around.broker_id),
        topic=around.topic,
        partition=around.partition,
        isr_before=before,
        isr=after,
        high_watermark=high_watermark if has_offsets else None,
        log_end_offset=end if has_offsets else None,
    )
    return around.one(message, event)


@st.composite
def updates(draw: Draw) -> Written:
    """Draw an ISR as the controller has it."""
    around, isr, epoch = draw(AROUND), draw(ISRS), draw(INT32)
    told, number = _listed(isr, ","), draw(INT32)
    form = draw(st.sampled_from(["answer", "start", "still", "still since 4.4"]))
    of_topic = f"{around.name} with topic id Some({around.topic_id})"
    message = {
        "answer": f"[Partition {around.name} broker={around.broker_id}] ISR updated to {told}  and"
        f" version updated to {number}",
        "start": f"[Broker id={around.broker_id}] Leader {of_topic} starts at leader epoch {epoch}"
        f" from offset 3 with partition epoch {number}, high watermark 3, ISR [{told}], adding"
        " replicas [] and removing replicas [] .",
        "still": f"[Broker id={around.broker_id}] Skipped the become-leader state change for"
        f" {of_topic} and partition state LeaderAndIsrPartitionState(isr=[9]) since it is already"
        f" the leader with leader epoch {epoch}. Current high watermark 3, ISR [{told}], adding",
        "still since 4.4": f"[Broker id={around.broker_id}] Skipped the become-leader state change for"
        f" {of_topic}, partition registration PartitionRegistration(isr=[9]) and isNew=false since it"
        f" is already the leader with leader epoch {epoch}. Current high watermark 3, ISR [{told}],",
    }[form]
    event = IsrUpdated(
        origin=origin(around.at, around.broker_id),
        topic=around.topic,
        partition=around.partition,
        isr=isr,
        leader_epoch=None if form == "answer" else epoch,
    )
    return around.one(message, event)


@st.composite
def loads(draw: Draw) -> Written:
    """Draw a log that is loaded."""
    around, is_old, has_id = draw(AROUND), draw(st.booleans()), draw(st.booleans())
    start, end = draw(INT64), draw(INT64)
    topic_id = f", topicId={around.topic_id}" if has_id else ""
    message = (
        f"[Log partition={around.name}, dir=/data] Completed load of log with 1 segments, log start"
        f" offset {start} and log end offset {end} in 19 ms"
        if is_old
        else f"Completed load of Log(dir=/data/{around.name}{topic_id}, topic={around.topic},"
        f" partition={around.partition}, highWatermark={start}, lastStableOffset={start},"
        f" logStartOffset={start}, logEndOffset={end}) with 1 segments in 19ms (2/10 completed in /data)"
    )
    event = LogLoaded(
        origin=origin(around.at, broker_id=None),
        topic=around.topic,
        partition=around.partition,
        topic_id=around.topic_id if has_id and not is_old else None,
        high_watermark=None if is_old else start,
        log_end_offset=end,
    )
    return around.one(message, event)


@st.composite
def followers(draw: Draw) -> Written:
    """Draw a follower that starts."""
    around, leader = draw(AROUND), draw(st.none() | BROKERS)
    epoch, end, high_watermark = draw(INT32), draw(INT64), draw(INT64)
    is_old = leader is None and draw(st.booleans())
    partition_epoch = "" if is_old else "partition epoch 2 and "
    told = "" if is_old else f" Current leader is {-1 if leader is None else leader}."
    message = (
        f"[Broker id={around.broker_id}] Follower {around.name} starts at leader epoch {epoch} from"
        f" offset {end} with {partition_epoch}high watermark {high_watermark}.{told}"
        " Previous leader epoch was 0."
    )
    event = FollowerStarted(
        origin=origin(around.at, around.broker_id),
        topic=around.topic,
        partition=around.partition,
        leader_epoch=epoch,
        log_end_offset=end,
        high_watermark=high_watermark,
        leader=leader,
    )
    return around.one(message, event)


@st.composite
def truncations(draw: Draw) -> Written:
    """Draw a log that is cut."""
    around = draw(AROUND)
    fetcher = f"[ReplicaFetcher replicaId={around.broker_id}, leaderId=2, fetcherId=0] Truncating"
    offset, epoch, end = draw(INT64), draw(INT32), draw(INT64)
    completed = draw(st.sampled_from(["true", "false"]))
    state = f"TruncationState(offset={offset}, completed={completed})"
    answer = f"EpochEndOffset(errorCode=0, partition={around.partition}, leaderEpoch={epoch}, endOffset={end})"
    by_leader = (
        f"{fetcher} partition {around.name} with {state} due to leader epoch and offset {answer}"
    )
    by_log = f"[Log partition={around.name}, dir=/data] Truncating to offset {offset}"
    forms = (
        by_leader,
        by_log,
        f"{fetcher} partition {around.name} with {state} due to local high watermark {offset}",
        f"{fetcher} partition {around.name} to local high watermark {offset}",
    )
    message = draw(st.sampled_from(forms))
    event = LogTruncated(
        origin=origin(around.at, None if message is by_log else around.broker_id),
        topic=around.topic,
        partition=around.partition,
        offset=offset,
        epoch=epoch if message is by_leader else None,
        epoch_end=end if message is by_leader else None,
    )
    return around.one(message, event)


@st.composite
def watermarks(draw: Draw) -> Written:
    """Draw a high watermark that goes back."""
    around, before, after = draw(AROUND), draw(INT64), draw(INT64)
    log = draw(st.sampled_from(["Log", "UnifiedLog"]))
    comma = draw(st.sampled_from([",", ""]))
    speaker = f"[{log} partition={around.name}, dir=/data]"
    forms = (
        f"{speaker} Non-monotonic update of high watermark from (offset={before}{comma} segment=[0:435]) to (offset={after}{comma} segment=[0:141])",
        f"{speaker} Truncating {around.name} to offset {after} below high watermark {before}",
    )
    event = WatermarkWentBack(
        origin=origin(around.at, broker_id=None),
        topic=around.topic,
        partition=around.partition,
        offset_before=before,
        offset=after,
    )
    return around.one(draw(st.sampled_from(forms)), event)


@st.composite
def elections(draw: Draw) -> Written:
    """Draw an unclean election, as it is decided and as it is taken over."""
    around, before = draw(AROUND), draw(st.none() | BROKERS)
    leader = draw(BROKERS)
    elr = draw(st.just(()) | ISRS.filter(lambda brokers: leader not in brokers))
    known = draw(st.just(()) | ISRS)
    isr = () if before is None or before == leader else (before,)
    epoch = draw(st.integers(0, 2**31 - 2))
    old = -1 if before is None else before
    if draw(st.booleans()):
        message = (
            f"Setting new leader for topicId {around.topic_id}, partition {around.partition} to"
            f" {leader} using an unclean election. Previous partition: PartitionRegistration("
            f"replicas=[1, 2], isr=[{_listed(isr)}], removingReplicas=[], addingReplicas=[],"
            f" elr=[{_listed(elr)}], lastKnownElr=[{_listed(known)}], leader={old},"
            f" leaderRecoveryState=RECOVERED, leaderEpoch={epoch}, partitionEpoch=2), change record: x"
        )
        topic, broker_id = None, None
    else:
        message = (
            f"[QuorumController id={around.broker_id}] UNCLEAN partition change for {around.name}"
            f" with topic ID {around.topic_id}: isr: [{_listed(isr)}] -> [{leader}],"
            f" leader: {old} -> {leader}, leaderEpoch: {epoch} -> {epoch + 1},"
            f" elr: [{_listed(elr)}] -> [], lastKnownElr: [{_listed(known)}] -> [],"
            " partitionEpoch: 2 -> 3"
        )
        topic, broker_id = around.topic, around.broker_id
    event = UncleanChange(
        origin=origin(around.at, broker_id),
        topic=topic,
        partition=around.partition,
        topic_id=around.topic_id,
        leader=leader,
        leader_before=before,
        leader_epoch=epoch + 1,
        isr_before=isr,
        elr_before=elr,
        last_known_elr_before=known,
    )
    return around.one(message, event)


def _listed(brokers: Sequence[BrokerId], comma: str = ", ") -> str:
    return comma.join(str(broker) for broker in brokers)
