"""Reads checkpoints: text, a version, a number of lines, then the lines.

`replication-offset-checkpoint` has high watermarks, which a broker writes every five seconds; the others are
`log-start-offset-checkpoint`, `recovery-point-offset-checkpoint` and `cleaner-offset-checkpoint`. A partition has its
own `leader-epoch-checkpoint`. A line that cannot be read costs nothing of the others.
Source: CheckpointFile, OffsetCheckpointFile, LeaderEpochCheckpointFile of the broker (version 0).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from collectors.log_files.opening import read_bytes
from rules.facts.identity import TopicPartition
from rules.facts.log_files import FileProblem, ProblemKind
from rules.facts.log_states import EpochCheckpoint, EpochStart, OffsetCheckpoint

HIGH_WATERMARKS: Final = "replication-offset-checkpoint"
LOG_STARTS: Final = "log-start-offset-checkpoint"
RECOVERY_POINTS: Final = "recovery-point-offset-checkpoint"
CLEANED: Final = "cleaner-offset-checkpoint"
EPOCHS: Final = "leader-epoch-checkpoint"
VERSION: Final = b"0"
_HEAD_LINES: Final = 2
_OFFSET: Final = re.compile(rb"(\S+) (\d{1,10}) (\d{1,19})", re.ASCII)
_EPOCH: Final = re.compile(rb"(\d{1,10}) (\d{1,19})", re.ASCII)

_Line = tuple[int, bytes]  # its first byte, its text


def read_offsets(path: Path) -> OffsetCheckpoint:
    """Read a checkpoint of offsets by partition."""
    lines, problems = _lines(path)
    offsets: dict[TopicPartition, int] = {}
    for position, line in lines:
        match = _OFFSET.fullmatch(line)
        if match is None:
            problems.append(_no_line(path, position, line))
            continue
        topic = match[1].decode(errors="backslashreplace")
        offsets[TopicPartition(topic, int(match[2]))] = int(match[3])
    return OffsetCheckpoint(path=str(path), offsets=offsets, problems=tuple(problems))


def read_epochs(path: Path) -> EpochCheckpoint:
    """Read the leader epochs of a partition."""
    lines, problems = _lines(path)
    epochs: list[EpochStart] = []
    for position, line in lines:
        match = _EPOCH.fullmatch(line)
        if match is None:
            problems.append(_no_line(path, position, line))
            continue
        epochs.append(EpochStart(int(match[1]), int(match[2])))
    return EpochCheckpoint(path=str(path), epochs=tuple(epochs), problems=tuple(problems))


def _lines(path: Path) -> tuple[list[_Line], list[FileProblem]]:
    """Return the lines behind the head, and what is wrong with the file as a whole."""
    data = read_bytes(path)
    if isinstance(data, FileProblem):
        return [], [data]
    lines = list(_split(data))
    if not lines:
        return [], []  # a broker makes the file before it has anything to write
    if lines[0][1].strip() != VERSION:
        first = lines[0][1][:40].decode(errors="backslashreplace")
        why = f"is no checkpoint: its first line is {first!r}, not the version {VERSION.decode()}"
        return [], [
            FileProblem(kind=ProblemKind.UNKNOWN_FORMAT, path=str(path), position=0, why=why)
        ]
    rest = [line for line in lines[_HEAD_LINES:] if line[1]]
    count = lines[1][1] if len(lines) > 1 else b""
    if count.strip().isdigit() and int(count[:20]) == len(rest):
        return rest, []
    why = f"{len(rest):,} lines are there, its second line says {count[:20].decode(errors='backslashreplace')!r}"
    return rest, [
        FileProblem(kind=ProblemKind.TRUNCATED, path=str(path), position=len(data), why=why)
    ]


def _split(data: bytes) -> Iterator[_Line]:
    position = 0
    for line in data.splitlines(keepends=True):
        yield position, line.rstrip(b"\r\n")
        position += len(line)


def _no_line(path: Path, position: int, line: bytes) -> FileProblem:
    text = line[:60].decode(errors="backslashreplace")
    why = f"a line of the checkpoint cannot be read: {text!r}"
    return FileProblem(kind=ProblemKind.BAD_RECORD, path=str(path), position=position, why=why)
