"""What Kafka's own kafka-dump-log.sh prints of files, as the values that Tidemark reads from them."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from collectors.translate import present
from rules.facts.log_files import (
    CONTROL_BIT,
    LOG_APPEND_TIME_BIT,
    TRANSACTIONAL_BIT,
    ControlType,
    LogBatch,
)
from rules.facts.log_states import AbortedEntry, ProducerEntry
from service.sandbox.cluster.cluster import Sandbox
from service.sandbox.cluster.tools import run_quietly

_FILE: Final = re.compile(r"^Dumping (?P<path>.+)$", re.MULTILINE)
_BATCH: Final = re.compile(
    r"^baseOffset: (?P<base_offset>\d+) lastOffset: (?P<last_offset>\d+) count: (?P<record_count>\d+) "
    r"baseSequence: (?P<base_sequence>-?\d+) lastSequence: (?P<last_sequence>-?\d+) "
    r"producerId: (?P<producer_id>-?\d+) producerEpoch: (?P<producer_epoch>-?\d+) "
    r"partitionLeaderEpoch: (?P<leader_epoch>-?\d+) isTransactional: (?P<is_transactional>\w+) "
    r"isControl: (?P<is_control>\w+) .*?position: (?P<position>\d+) (?P<time>\w+): (?P<max_timestamp_ms>-?\d+) "
    r"size: (?P<size>\d+) magic: 2 compresscodec: (?P<codec>\w+) crc: (?P<crc>\d+) isvalid: true",
    re.ASCII | re.MULTILINE,
)
_MARKER: Final = re.compile(
    r"^\| offset: (\d+) .*endTxnMarker: (COMMIT|ABORT) coordinatorEpoch: (-?\d+)",
    re.ASCII | re.MULTILINE,
)
_PRODUCER: Final = re.compile(
    r"^producerId: (?P<producer_id>\d+) producerEpoch: (?P<producer_epoch>\d+) "
    r"coordinatorEpoch: (?P<coordinator_epoch>-?\d+) currentTxnFirstOffset: (?P<start>\S+) "
    r"lastTimestamp: (?P<timestamp_ms>-?\d+) "
    r"(?:firstSequence: (?P<first_sequence>-?\d+) lastSequence: (?P<last_sequence>-?\d+) "
    r"lastOffset: (?P<last_offset>-?\d+) offsetDelta: (?P<offset_delta>\d+) )?",
    re.ASCII | re.MULTILINE,
)
_ABORTED: Final = re.compile(
    r"^version: 0 producerId: (\d+) firstOffset: (\d+) lastOffset: (\d+) lastStableOffset: (\d+)",
    re.ASCII | re.MULTILINE,
)
_DECODED: Final = re.compile(
    r"^\| offset: (\d+) .* key: (\{.*?\}) payload: (\{.*\}|null|<DELETE>)?$", re.MULTILINE
)

_VALUES: Final = {None: "null", "<DELETE>": "null"}


def dump(sandbox: Sandbox, files: Sequence[Path], *options: str) -> dict[Path, str]:
    """Return what the tool prints of each file."""
    paths = ",".join(map(str, files))
    text = run_quietly(sandbox, "kafka-dump-log.sh", ["--files", paths, *options])
    heads = list(_FILE.finditer(text))
    assert [Path(head["path"]) for head in heads] == list(files)
    ends = [*(head.start() for head in heads[1:]), len(text)]
    return {
        Path(head["path"]): text[head.end() : end] for head, end in zip(heads, ends, strict=True)
    }


def batches(path: Path, text: str) -> list[dict[str, Any]]:
    """Return what the tool says of each batch, by Tidemark's names."""
    rows = []
    for line in _BATCH.finditer(text):
        words = line.groupdict()
        kinds = {
            name: words.pop(name) for name in ("is_transactional", "is_control", "time", "codec")
        }
        numbers: dict[str, Any] = {name: int(value) for name, value in words.items()}
        for name in (
            "base_sequence",
            "last_sequence",
            "producer_id",
            "producer_epoch",
            "leader_epoch",
        ):
            numbers[name] = present(numbers[name])
        rows.append(
            {
                "path": str(path),
                **numbers,
                "codec": kinds["codec"],
                "is_transactional": kinds["is_transactional"] == "true",
                "is_control": kinds["is_control"] == "true",
                "is_append_time": kinds["time"] == "LogAppendTime",
            }
        )
    return rows


def as_dumped(batch: LogBatch) -> dict[str, Any]:
    """Return a batch as `batches` returns the tool's."""
    names = (
        "path", "base_offset", "last_offset", "record_count", "base_sequence", "last_sequence", "producer_id",
        "producer_epoch", "leader_epoch", "position", "max_timestamp_ms", "size", "crc",
    )  # fmt: skip
    return {
        **{name: getattr(batch, name) for name in names},
        "codec": str(batch.codec),
        "is_transactional": bool(batch.attributes & TRANSACTIONAL_BIT),
        "is_control": bool(batch.attributes & CONTROL_BIT),
        "is_append_time": bool(batch.attributes & LOG_APPEND_TIME_BIT),
    }


def markers(text: str) -> dict[int, tuple[ControlType, int]]:
    """Return the markers that the tool printed, by offset; needs --deep-iteration."""
    return {int(row[1]): (ControlType(row[2]), int(row[3])) for row in _MARKER.finditer(text)}


def producers(text: str) -> tuple[ProducerEntry, ...]:
    """Return the producers of a snapshot."""
    return tuple(map(_producer, _PRODUCER.finditer(text)))


def _producer(line: re.Match[str]) -> ProducerEntry:
    start = re.fullmatch(r"OptionalLong\[(\d+)\]", line["start"])
    return ProducerEntry(
        producer_id=int(line["producer_id"]),
        producer_epoch=int(line["producer_epoch"]),
        last_sequence=present(int(line["last_sequence"] or -1)),
        last_offset=present(int(line["last_offset"] or -1)),
        offset_delta=int(line["offset_delta"] or 0),
        timestamp_ms=present(int(line["timestamp_ms"])),
        coordinator_epoch=present(int(line["coordinator_epoch"])),
        current_transaction_start_offset=None if start is None else int(start[1]),
    )


def aborted(text: str) -> tuple[AbortedEntry, ...]:
    """Return the entries of a transaction index."""
    return tuple(AbortedEntry(*map(int, row.groups())) for row in _ABORTED.finditer(text))


def decoded(text: str) -> dict[int, tuple[Any, Any]]:
    """Return key and value of each record by offset, None for a tombstone; needs a decoder of the tool."""
    return {
        int(row[1]): (json.loads(row[2]), json.loads(_VALUES.get(row[3], row[3])))
        for row in _DECODED.finditer(text)
    }


def near(texts: Mapping[Path, str], offset: int) -> list[str]:
    """Return the lines with this offset, for a message."""
    lines = (line for text in texts.values() for line in text.splitlines())
    return [line for line in lines if re.search(rf"\b(baseOffset|offset): {offset}\b", line)]
