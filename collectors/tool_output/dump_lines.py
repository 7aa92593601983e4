"""Lines of `kafka-dump-log`: batches, records, producer snapshots, indexes of aborted transactions.

A line is given without white space, see `pasting.py`. Kafka 3.3 to 4.4 print the same fields; an absent value is
`OptionalLong.empty` from 3.5, `None` before.
"""

from __future__ import annotations

import json
import re
from typing import Final

from collectors.tool_output.pasting import number
from rules.facts.tool_output import (
    DumpedAbort,
    DumpedBatch,
    DumpedCommit,
    DumpedFile,
    DumpedProducer,
    DumpedRecord,
    Marker,
)

_N: Final = r"-?\d{1,19}"
_MAYBE: Final = rf"(?:OptionalLong\[{_N}\]|OptionalLong\.empty|Some\({_N}\)|None|{_N})"
BATCH: Final = re.compile(
    rf"baseOffset:(?P<base>{_N})lastOffset:(?P<last>{_N})count:(?P<count>{_N})baseSequence:(?P<first>{_N})"
    rf"lastSequence:(?P<sequence>{_N})producerId:(?P<producer>{_N})producerEpoch:(?P<epoch>{_N})"
    rf"partitionLeaderEpoch:(?P<leader>{_N})isTransactional:(?P<transactional>true|false)"
    rf"isControl:(?P<control>true|false)(?:deleteHorizonMs:{_MAYBE})?position:{_N}"
    rf"(?:CreateTime|LogAppendTime|NoTimestampType):(?P<at>{_N})size:{_N}magic:{_N}compresscodec:\w{{2,12}}?"
    rf"crc:{_N}(?:isvalid:(?P<valid>true|false))?"
)
RECORD: Final = re.compile(
    rf"\|offset:(?P<offset>{_N})(?:isValid:\w+?crc:\w+?)?(?:CreateTime|LogAppendTime|NoTimestampType):{_N}"
    rf"key[sS]ize:{_N}value[sS]ize:{_N}sequence:(?P<sequence>{_N})headerKeys:\[.{{0,4000}}?\]"
    rf"(?:endTxnMarker:(?P<marker>COMMIT|ABORT)coordinatorEpoch:(?P<coordinator>{_N}))?(?P<rest>.*)"
)
_PRODUCER: Final = (
    rf"producerId:(?P<producer>{_N})producerEpoch:(?P<epoch>{_N})coordinatorEpoch:(?P<coordinator>{_N})"
    rf"currentTxnFirstOffset:(?P<open>{_MAYBE})lastTimestamp:(?P<at>{_N})"
)
PRODUCER: Final = re.compile(
    rf"{_PRODUCER}firstSequence:{_N}lastSequence:(?P<sequence>{_N})lastOffset:(?P<last>{_N})offsetDelta:{_N}timestamp:{_N}"
)
# Of a producer of which only markers are known: none of its batches.
BARE_PRODUCER: Final = re.compile(rf"{_PRODUCER}(?P<sequence>)(?P<last>)")
ABORT: Final = re.compile(
    rf"version:\d{{1,3}}producerId:(?P<producer>{_N})firstOffset:(?P<first>{_N})lastOffset:(?P<last>{_N})"
    rf"lastStableOffset:(?P<stable>{_N})"
)
FILE: Final = re.compile(
    r"Dumping(?P<path>\S{1,4000}\.(?:log|index|timeindex|txnindex|snapshot|checkpoint)(?:\.deleted)?)"
)
_FOLDER: Final = re.compile(
    r"(?P<topic>[\w.-]{1,249})-(?P<partition>\d{1,9})(?:\.[0-9a-f]{32}-(?:delete|stray|future))?"
)
_OLD_COMMIT: Final = re.compile(
    r"key:offset_commit::group=(?P<group>.{1,500}?),partition=(?P<topic>[\w.-]{1,249})-(?P<partition>\d{1,9})"
    r"payload:(?:offset=(?P<offset>\d{1,19})|<DELETE>)"
)


def batch_of(match: re.Match[str], line: int) -> DumpedBatch:
    """Return the header of a batch."""
    valid = match["valid"]
    return DumpedBatch(
        line=line,
        base_offset=int(match["base"]),
        last_offset=int(match["last"]),
        record_count=int(match["count"]),
        base_sequence=number(match["first"]),
        last_sequence=number(match["sequence"]),
        producer_id=number(match["producer"]),
        producer_epoch=number(match["epoch"]),
        leader_epoch=number(match["leader"]),
        is_transactional=match["transactional"] == "true",
        is_control=match["control"] == "true",
        timestamp_ms=number(match["at"]),
        is_valid=None if valid is None else valid == "true",
    )


def record_of(match: re.Match[str], line: int) -> DumpedRecord:
    """Return what a record's line says but for its key and value."""
    marker = match["marker"]
    return DumpedRecord(
        line=line,
        offset=int(match["offset"]),
        sequence=number(match["sequence"]),
        marker=None if marker is None else Marker(marker),
        coordinator_epoch=number(match["coordinator"]),
    )


def producer_of(match: re.Match[str], line: int) -> DumpedProducer:
    """Return an entry of a producer snapshot."""
    begin = re.search(r"\d+", match["open"])
    return DumpedProducer(
        line=line,
        producer_id=int(match["producer"]),
        producer_epoch=int(match["epoch"]),
        coordinator_epoch=number(match["coordinator"]),
        transaction_start_offset=None if begin is None or "-" in match["open"] else int(begin[0]),
        last_sequence=number(match["sequence"]),
        last_offset=number(match["last"]),
        timestamp_ms=number(match["at"]),
    )


def abort_of(match: re.Match[str], line: int) -> DumpedAbort:
    """Return an entry of a .txnindex."""
    return DumpedAbort(
        line=line,
        producer_id=int(match["producer"]),
        first_offset=int(match["first"]),
        last_offset=int(match["last"]),
        last_stable_offset=int(match["stable"]),
    )


def file_of(match: re.Match[str], line: int) -> DumpedFile:
    """Return the file whose lines follow, with the partition that its directory is named after."""
    path = match["path"]
    folders = re.split(r"[/\\]", path)
    folder = _FOLDER.fullmatch(folders[-2]) if len(folders) > 1 else None
    if folder is None:
        return DumpedFile(line=line, path=path)
    return DumpedFile(
        line=line, path=path, topic=folder["topic"], partition=int(folder["partition"])
    )


def commit_of(rest: str, line: int) -> DumpedCommit | None:
    """Return the committed offset in what follows a record's headers; None: it holds none."""
    match = _OLD_COMMIT.match(rest)
    if match is not None:
        return DumpedCommit(
            line=line,
            group=match["group"],
            topic=match["topic"],
            partition=int(match["partition"]),
            offset=number(match["offset"]),
            commit_ms=None,
        )
    return _json_commit(rest, line) if rest.startswith('key:{"type":"1"') else None


def _json_commit(rest: str, line: int) -> DumpedCommit | None:
    key_text, _, value_text = rest.removeprefix("key:").partition("payload:")
    try:
        key = json.loads(key_text)["data"]
        value = {} if value_text in ("null", "<DELETE>", "") else json.loads(value_text)["data"]
        return DumpedCommit(
            line=line,
            group=str(key["group"]),
            topic=str(key["topic"]),
            partition=int(key["partition"]),
            offset=None if not value else int(value["offset"]),
            commit_ms=None if not value else number(str(value.get("commitTimestamp"))),
        )
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
