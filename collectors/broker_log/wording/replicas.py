"""Lines about replicas: an ISR that changes, a log that is loaded, cut or followed, a watermark.

Source: Partition, LogManager, UnifiedLog (to Kafka 3.0: Log) and AbstractFetcherThread of Kafka 1.1 to
4.4, and lines of real 4.1 brokers.
"""

from __future__ import annotations

import re
from typing import Final

from collectors.broker_log.wording.fields import (
    NUMBER,
    TOPIC,
    TOPIC_ID,
    TOPIC_PARTITION,
    LineUnreadableError,
    broker_if_any,
    brokers,
    compile_pattern,
    int32,
    int32_if_any,
    int64,
    int64_if_any,
    match_start,
    partition_of,
    topic_id_if_any,
)
from collectors.broker_log.wording.line import Line, log_before, partition_before, place_of
from rules.facts.broker_log import (
    FollowerStarted,
    IsrShrunk,
    IsrUpdated,
    LogLoaded,
    LogTruncated,
    WatermarkWentBack,
)
from rules.facts.identity import TopicPartition

SHRINKING: Final = "Shrinking ISR from "
UPDATED: Final = "ISR updated to "
LEADER: Final = "Leader "
STILL_LEADER: Final = "Skipped the become-leader state change for "
LOADED: Final = "Completed load of "
FOLLOWER: Final = "Follower "
TRUNCATING: Final = "Truncating "
NON_MONOTONIC: Final = "Non-monotonic update of high watermark from "

_LIST: Final = r"[\d,]{1,2000}"
_SHRINKING: Final = compile_pattern(
    rf"{SHRINKING}(?P<before>{_LIST}) to (?P<after>{_LIST})(?:\. Leader: "
    rf"\(highWatermark: (?P<high_watermark>{NUMBER}), endOffset: (?P<end>{NUMBER})\))?"
    r"(?=\.| \(|\s*$)"
)
_ISR: Final = r"(?P<isr>[\d,]{0,2000})"
_UPDATED: Final = compile_pattern(  # in brackets to Kafka 2.8
    rf"{UPDATED}\[?{_ISR}\]? ? ?(?:\(under-min-isr\) )?and (?:zkV|v)ersion updated to \[?\d"
)
_TOPIC_ID: Final = r"(?: with topic id (?:Some\([A-Za-z0-9_-]{1,30}\)|None))?"
_LEADER: Final = compile_pattern(
    rf"{LEADER}{TOPIC_PARTITION}{_TOPIC_ID} starts at leader epoch (?P<epoch>{NUMBER}) from offset"
    rf" {NUMBER} with (?:partition epoch {NUMBER}, )?high watermark {NUMBER},? ISR \[{_ISR}\]"
)
_STILL_LEADER: Final = compile_pattern(
    rf"{STILL_LEADER}{TOPIC_PARTITION}{_TOPIC_ID}(?: and partition state |, partition registration )"
)
_STILL: Final = compile_pattern(
    rf"since it is already the leader with leader epoch (?P<epoch>{NUMBER})\. Current high watermark"
    rf" {NUMBER}, ISR \[{_ISR}\]"
)
# To Kafka 2.5 the log itself says that it is loaded, also when it was just made.
_LOADED_ITSELF: Final = compile_pattern(
    rf"{LOADED}log with \d{{1,10}} segments, log start offset {NUMBER} and"
    rf" log end offset (?P<end>{NUMBER}) in "
)
_DIRECTORY: Final = f"{LOADED}Log(dir="
_LOADED: Final = compile_pattern(
    rf"(?:, topicId={TOPIC_ID})?, topic=(?P<topic>{TOPIC}), partition=(?P<partition>\d{{1,10}}),"
    rf" highWatermark=(?P<high_watermark>{NUMBER}), lastStableOffset={NUMBER},"
    rf" logStartOffset={NUMBER}, logEndOffset=(?P<end>{NUMBER})\)"
)
# Folders beside the replica's own: a copy for another disk, and what is to be deleted.
_OTHER_COPIES: Final = ("-future", "-delete", "-stray")
_FOLLOWER: Final = compile_pattern(
    rf"{FOLLOWER}{TOPIC_PARTITION} starts at leader epoch (?P<epoch>{NUMBER}) from offset"
    rf" (?P<end>{NUMBER}) with (?:partition epoch {NUMBER} and )?high watermark"
    rf" (?P<high_watermark>{NUMBER})\.(?: Current leader is (?P<leader>{NUMBER})\.)?"
)
_CUT: Final = compile_pattern(
    rf"{TRUNCATING}partition {TOPIC_PARTITION} with TruncationState\(offset=(?P<offset>{NUMBER}),"
    rf" completed=(?:true|false)\) due to (?:local high watermark {NUMBER}|leader epoch and offset"
    rf" EpochEndOffset\(errorCode={NUMBER}, partition={NUMBER}, leaderEpoch=(?P<epoch>{NUMBER}),"
    rf" endOffset=(?P<end>{NUMBER})\))"
)
_CUT_TO_WATERMARK: Final = compile_pattern(  # Kafka 2.1 to 3.0
    rf"{TRUNCATING}partition {TOPIC_PARTITION} to local high watermark (?P<offset>{NUMBER})"
)
_CUT_AT: Final = compile_pattern(rf"{TRUNCATING}to offset (?P<offset>{NUMBER})")
_BELOW_WATERMARK: Final = compile_pattern(
    rf"{TRUNCATING}{TOPIC_PARTITION} to offset (?P<offset>{NUMBER}) below high watermark"
    rf" (?P<high_watermark>{NUMBER})"
)
_MOVED_TO_ANOTHER_DISK: Final = "ReplicaAlterLogDirs"
_OLD_LOG: Final = "Log"
_NON_MONOTONIC: Final = compile_pattern(
    rf"{NON_MONOTONIC}\(offset=(?P<before>{NUMBER}),? segment=\[(?P<before_segment>[\d:-]{{3,41}})\]\)"
    rf" to \(offset=(?P<after>{NUMBER}),? segment=\[(?P<after_segment>[\d:-]{{3,41}})\]\)"
)
_NOWHERE: Final = "-1:-1"


def shrinking(line: Line) -> IsrShrunk:
    """Read a request for a smaller ISR; to Kafka 2.1 without offsets."""
    match = match_start(_SHRINKING, line.message)
    return IsrShrunk(
        **place_of(line, partition_before(line.head)),
        isr_before=brokers(match["before"]),
        isr=brokers(match["after"]),
        high_watermark=int64_if_any(match["high_watermark"]),
        log_end_offset=int64_if_any(match["end"]),
    )


def updated(line: Line) -> IsrUpdated:
    """Read an answer of the controller about an ISR."""
    match, name = match_start(_UPDATED, line.message), partition_before(line.head)
    return _build_update(line, match, name, epoch=None)


def leader(line: Line) -> IsrUpdated | None:
    """Read a leader that begins, to Kafka 3.5 also with each smaller ISR; None: something else."""
    if " starts at leader epoch " not in line.message:
        return None
    match = match_start(_LEADER, line.message)
    return _build_update(line, match, partition_of(match), epoch=int32(match["epoch"]))


def still_leader(line: Line) -> IsrUpdated | None:
    """Read what a leader takes over from the metadata; None: it knew of something newer."""
    name = partition_of(match_start(_STILL_LEADER, line.message))
    match = _STILL.search(line.message)
    return None if match is None else _build_update(line, match, name, epoch=int32(match["epoch"]))


def loaded(line: Line) -> LogLoaded | None:
    """Read a log that was loaded; None: not that of the replica itself."""
    if not line.message.startswith(_DIRECTORY):
        return _loaded_itself(line)
    start = line.message.find(", topic")
    match = _LOADED.match(line.message, max(start, 0))
    if match is None:
        raise LineUnreadableError(line.message)
    if line.message[:start].endswith(_OTHER_COPIES):
        return None
    return LogLoaded(
        **place_of(line, partition_of(match)),
        topic_id=topic_id_if_any(match["topic_id"]),
        high_watermark=int64_if_any(match["high_watermark"]),
        log_end_offset=int64(match["end"]),
    )


def follower(line: Line) -> FollowerStarted | None:
    """Read a replica that begins to follow a leader; None: a line of something else."""
    if " starts at leader epoch " not in line.message:
        return None
    match = match_start(_FOLLOWER, line.message)
    return FollowerStarted(
        **place_of(line, partition_of(match)),
        leader_epoch=int32(match["epoch"]),
        log_end_offset=int64(match["end"]),
        high_watermark=int64_if_any(match["high_watermark"]),
        leader=broker_if_any(match["leader"]),
    )


def truncating(line: Line) -> LogTruncated | WatermarkWentBack | None:
    """Read a log that is cut; None: nothing was, or it is a copy that moves to another disk."""
    if _MOVED_TO_ANOTHER_DISK in line.head:
        return None
    below = _BELOW_WATERMARK.match(line.message)
    if below is not None:
        return _went_back(line, partition_of(below), below["high_watermark"], below["offset"])
    if line.message.startswith(f"{TRUNCATING}partition "):
        match = _CUT_TO_WATERMARK.match(line.message) or match_start(_CUT, line.message)
        return _cut(line, match, partition_of(match))
    # A log says it itself; from Kafka 3.1 on the fetcher says it too, and why.
    by_log = _CUT_AT.match(line.message)
    name, speaker = log_before(line.head)
    if by_log is None or name is None or speaker != _OLD_LOG:
        return None
    return _cut(line, by_log, name)


def non_monotonic(line: Line) -> WatermarkWentBack | None:
    """Read a high watermark that went back; None where nothing that was in the log went with it.

    A follower that knew more than its new leader takes over the leader's watermark, which says
    nothing of segments: that happens in every other clean failover. A log that is begun anew at
    another offset sets it from one empty beginning to another.
    """
    name, _ = log_before(line.head)
    if name is None:
        return None  # the controllers' own log says the same of itself
    match = match_start(_NON_MONOTONIC, line.message)
    before, after = match["before"], match["after"]
    begins = (f"{before}:0", f"{after}:0")
    segments = (match["before_segment"], match["after_segment"])
    if segments[1] == _NOWHERE or segments == begins:
        return None
    return _went_back(line, name, before, after)


def _build_update(
    line: Line, match: re.Match[str], name: TopicPartition, *, epoch: int | None
) -> IsrUpdated:
    return IsrUpdated(
        **place_of(line, name),
        isr=brokers(match["isr"]),
        leader_epoch=epoch,
    )


def _loaded_itself(line: Line) -> LogLoaded:
    match = match_start(_LOADED_ITSELF, line.message)
    name, _ = log_before(line.head)
    if name is None:
        raise LineUnreadableError(line.head)
    return LogLoaded(
        **place_of(line, name),
        topic_id=None,
        high_watermark=None,
        log_end_offset=int64(match["end"]),
    )


def _cut(line: Line, match: re.Match[str], name: TopicPartition) -> LogTruncated:
    fields = match.groupdict()
    return LogTruncated(
        **place_of(line, name),
        offset=int64(fields["offset"]),
        epoch=int32_if_any(fields.get("epoch")),
        epoch_end=int64_if_any(fields.get("end")),
    )


def _went_back(line: Line, name: TopicPartition, before: str, after: str) -> WatermarkWentBack:
    return WatermarkWentBack(
        **place_of(line, name),
        offset_before=int64(before),
        offset=int64(after),
    )
